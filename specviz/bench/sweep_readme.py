"""A sweep as the README shows it: one table in Markdown, two pictures as SVG."""

from collections.abc import Sequence
from pathlib import Path

from specviz.bench.gpu_plot import Chart
from specviz.bench.sweep_log import Head, Results
from specviz.bench.sweep_points import median_error, pass_times, points, verify_curve
from specviz.bench.sweep_report import best_points
from specviz.cost.reasons import title
from specviz.errors import ConfigError
from specviz.metrics.sweep import ALL, Point
from specviz.models.store import cache_errors
from specviz.words import _

TABLE, VERIFY, SPEEDUP = "sweep.md", "sweep-verify.svg", "sweep-speedup.svg"
Line = Sequence[tuple[float, float]]


def write(results: Results, folder: Path) -> tuple[Path, ...]:
    """Write the table and both pictures; return their paths.

    Raises:
        ConfigError: Nothing was measured that could be shown.
        CacheError: The folder cannot be written.
    """
    found = _own(results)
    if results.head is None or not found:
        raise ConfigError(_("the sweep holds no point yet; measure one before it is drawn"))
    files = {
        TABLE: table(found, results.head),
        VERIFY: verify_picture(results).svg(),
        SPEEDUP: speedup_picture(found).svg(),
    }
    with cache_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, "utf-8")
    return tuple(folder / name for name in files)


def _own(results: Results) -> list[Point]:
    """Points of the target as it is, at the lowest temperature that was measured."""
    own = results.head.group_size if results.head else 0
    found = [p for p in points(results.samples, results.passes)
             if (p.cell.mode, p.cell.group_size) == ("exact", own)]  # fmt: skip
    coldest = min((p.cell.temperature for p in found), default=0.0)
    return [p for p in found if p.cell.temperature == coldest]


def table(found: Sequence[Point], head: Head) -> str:
    """Return a row for each scheme: its best D of each prompt class, with the interval."""
    classes = [name for name in dict.fromkeys(p.prompt_class for p in found) if name != ALL]
    columns = [*classes, ALL]
    best = {name: best_points([p for p in found if p.prompt_class == name]) for name in columns}
    lines = [
        f"| scheme | {' | '.join(columns)} |",
        f"| --- | {' | '.join('---' for _name in columns)} |",
    ]
    for scheme in (p.cell.scheme for p in best[ALL]):
        cells = [next(p for p in best[name] if p.cell.scheme == scheme) for name in columns]
        lines.append(f"| {scheme} | {' | '.join(map(_cell, cells))} |")
    return "\n".join([_where(found, head), "", *lines, ""])


def _cell(point: Point) -> str:
    span = f"{point.low:.2f}-{point.high:.2f}" + (", busy" if point.busy else "")
    length = f"E[L] {point.acceptance_length:.2f}"
    return f"{point.speedup:.2f} ({span}) at D = {point.cell.draft_length}, {length}"


def _where(found: Sequence[Point], head: Head) -> str:
    env, error = head.environment, median_error(found)
    prompts = max(p.prompts for p in found)
    said = (
        f"{head.created[:10]}, {env.device_name}, threads: {env.threads}, {env.dtype}, "
        f"{head.model}, torch {env.torch}, batch 1, {head.tokens} tokens, prompts: {prompts}; "
        "speedup over plain decoding of the same run at the best D of each class, median over "
        "prompts (95% interval)."
    )
    if error is not None:
        said += f" Predicted and measured speedup differ by {error:.0%} (median of {len(found)})."
    return said


def verify_picture(results: Results) -> Chart:
    """Return v(rows) / v(1) of every model that was timed."""
    models = dict.fromkeys((p.mode, p.group_size) for p in results.passes if p.mode != "kernel")
    lines: dict[str, Line] = {}
    for mode, group in models:
        curve = verify_curve(pass_times(results.passes, mode, group))
        lines[f"{mode}, G = {group}"] = [(float(rows), cost) for rows, cost in curve.items()]
    return Chart(
        title="Cost of verifying: v(rows) / v(1), measured",
        x_title="rows of the pass, 1 + D",
        y_title="plain passes",
        lines={name: line for name, line in lines.items() if line},
    )


def speedup_picture(found: Sequence[Point]) -> Chart:
    """Return speedup over D for each scheme, all prompts, with plain decoding at 1."""
    whole = sorted((p for p in found if p.prompt_class == ALL), key=lambda p: p.cell.draft_length)
    lines: dict[str, Line] = {}
    for p in whole:
        name = title(p.cell.scheme)
        lines[name] = [*lines.get(name, ()), (float(p.cell.draft_length), p.speedup)]
    last = float(max(p.cell.draft_length for p in whole))
    plain: dict[str, Line] = {title("none"): [(0.0, 1.0), (last, 1.0)]}
    return Chart(
        title="Speedup over D, measured, median over prompts",
        x_title="D, drafted tokens per round",
        y_title="times plain decoding",
        lines=lines | plain,
    )
