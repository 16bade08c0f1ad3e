"""A sweep as lines of JSON, as a table, and as the speculation profile that other tools read."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median

from specviz.bench.sweep_log import Head, Results
from specviz.bench.sweep_points import median_error, pass_times, points, verify_curve
from specviz.cost.reasons import title
from specviz.cost.verdict import Measured
from specviz.metrics.sweep import ALL, Point
from specviz.models.store import cache_errors
from specviz.traces.profile import Acceptance
from specviz.traces.profile import profile as written

Json = Mapping[str, object]
COLUMNS = (
    *("scheme", "draft_length", "group_size", "mode", "prompt_class", "temperature"),
    *("acceptance_length", "acceptance_rate", "measured_speedup", "low", "high"),
    *("predicted_speedup", "remainder", "plain_round", "draft", "verify", "other", "prompts"),
    *("repeats", "busy", "same_text"),
)


def lines(results: Results) -> list[Json]:
    """Return one object per point, then one per number of rows of the attention operation."""
    found = points(results.samples, results.passes)
    return [*map(line, found), *kernel_lines(results)]


def line(point: Point) -> Json:
    """Return a point as one flat object; seconds are means per round."""
    cell, timing = point.cell, point.timing
    return {
        "scheme": cell.scheme,
        "draft_length": cell.draft_length,
        "group_size": cell.group_size,
        "mode": cell.mode,
        "prompt_class": point.prompt_class,
        "temperature": cell.temperature,
        "acceptance_length": point.acceptance_length,
        "acceptance_rate": point.acceptance_rate,
        "measured_speedup": point.speedup,
        "interval": [point.low, point.high],
        "predicted_speedup": point.predicted,
        "remainder": point.remainder,
        "timing": {
            "plain_round": point.plain_round,
            "draft": timing.draft,
            "verify": timing.score + timing.verify + timing.commit,
            "other": timing.other,
            "total": timing.total,
        },
        "conditional": list(point.conditional),
        "marginal": list(point.marginal),
        "prompts": point.prompts,
        "repeats": point.repeats,
        "busy": point.busy,
        "same_text": point.same_text,
        "is_block": point.is_block,
        "how": "modelled from measured passes" if cell.mode == "twin" else "measured",
    }


def kernel_lines(results: Results) -> list[Json]:
    """Return one object per G, rows, context and batch of the attention operation."""
    seen: dict[tuple[int, int, int, int], list[float]] = {}
    for one in results.passes:
        if one.mode == "kernel":
            key = (one.group_size, one.rows, one.context, one.batch)
            seen.setdefault(key, []).append(one.seconds)
    times = {key: median(found) for key, found in seen.items()}
    return [
        {
            "scheme": "attention",
            "draft_length": rows - 1,
            "group_size": group,
            "mode": "kernel",
            "prompt_class": None,
            "acceptance_length": None,
            "measured_speedup": None,
            "interval": None,
            "predicted_speedup": None,
            "context": context,
            "batch": batch,
            "timing": {
                "seconds": seconds,
                "relative": seconds / times[group, 1, context, batch]
                if (group, 1, context, batch) in times
                else None,
            },
            "how": "measured",
        }
        for (group, rows, context, batch), seconds in sorted(times.items())
    ]


def as_json(results: Results) -> str:
    """Return the whole sweep as one object, with where it was measured."""
    found = points(results.samples, results.passes)
    groups = dict.fromkeys((p.mode, p.group_size) for p in results.passes if p.mode != "kernel")
    curves = [
        {
            "mode": mode,
            "group_size": group,
            "seconds": (times := pass_times(results.passes, mode, group)),
            "relative": verify_curve(times),
        }
        for mode, group in groups
    ]
    return json.dumps(
        {
            "format": "specviz-sweep-summary",
            "sweep": asdict(results.head) if results.head else None,
            "unavailable": results.unavailable,
            "points": lines(results),
            "verify": curves,
            "median_prediction_error": median_error(found),
            "busy": any(point.busy for point in found),
        },
        allow_nan=False,
    )


def as_csv(results: Results) -> str:
    """Return every point as one row."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for point in points(results.samples, results.passes):
        known = dict(line(point))
        timing = known["timing"]
        assert isinstance(timing, dict)
        writer.writerow(known | timing | {"low": point.low, "high": point.high})
    return out.getvalue()


def profile(results: Results) -> str:
    """Return the acceptance of every scheme and D as `speculation_profile.json`, schema 1.0.

    The top is the fastest point over all prompts, as other tools read it; `profiles` has all
    points in the same form.
    """
    found = [p for p in points(results.samples, results.passes) if p.cell.mode == "exact"]
    whole = [p for p in found if p.prompt_class == ALL]
    best = max(whole, key=lambda p: p.speedup, default=None)
    top = _profile(best, results.head) if best else {"schema_version": "1.0", "measured": False}
    profiles = [_profile(p, results.head) for p in found]
    return json.dumps(top | {"profiles": profiles}, allow_nan=False)


def _profile(point: Point, head: Head | None) -> dict[str, object]:
    acceptance = Acceptance(
        method=point.cell.scheme,
        draft_length=point.cell.draft_length,
        marginal=point.marginal,
        length=point.acceptance_length,
        extrapolates=not point.is_block,
    )
    conditions: dict[str, object] = {
        "category": point.prompt_class,
        "temperature": point.cell.temperature,
        "num_prompts": point.prompts,
        "repeats": point.repeats,
    }
    if head is not None:
        conditions |= {"created": head.created, **asdict(head.environment)}
    return written(acceptance, target=head.model if head else None, conditions=conditions)


def measured(point: Point) -> Measured:
    """Return a point as the verdict function takes it."""
    timing, cell = point.timing, point.cell
    return Measured(
        scheme=cell.scheme,
        title=title(cell.scheme),
        draft_length=cell.draft_length,
        speedup=point.speedup,
        low=point.low,
        high=point.high,
        prompts=point.prompts,
        acceptance_length=point.acceptance_length,
        plain_round=point.plain_round,
        draft=timing.draft,
        verify=timing.score + timing.verify + timing.commit,
        other=timing.other,
        busy=point.busy,
        same_text=point.same_text is not False,
    )


def best_points(found: Sequence[Point]) -> list[Point]:
    """Return every scheme's fastest point."""
    best: dict[str, Point] = {}
    for point in found:
        known = best.get(point.cell.scheme)
        if known is None or point.speedup > known.speedup:
            best[point.cell.scheme] = point
    return sorted(best.values(), key=lambda p: -p.speedup)


def write(results: Results, folder: Path) -> None:
    """Write `sweep.json`, `sweep.csv` and `speculation_profile.json` beside the log."""
    with cache_errors(folder):
        (folder / "sweep.json").write_text(as_json(results), "utf-8")
        (folder / "sweep.csv").write_text(as_csv(results), "utf-8")
        (folder / "speculation_profile.json").write_text(profile(results), "utf-8")
