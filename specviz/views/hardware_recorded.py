"""What GPUs measured and what others published: cost over rows, each with where it is from."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import altair as alt

from specviz.cost.published import FACTOR_SOURCE, MLA, MLA_SOURCE, factors
from specviz.recordings.gpu import Compiled, GpuRun, Point
from specviz.views.hardware_drawn import QUIET, Drawn, looks
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

EDGES = (16, 32, 64, 128, 256)
Series = tuple[int, int, int]  # G, cached tokens, batch
Lines = Mapping[str, Mapping[int, float]]


def series_of(run: GpuRun) -> tuple[Series, ...]:
    """Return what was swept, in the order of the file: G, cached tokens, batch."""
    return tuple(dict.fromkeys((p.group, p.context, p.batch) for p in run.points))


def attention_chart(run: GpuRun, series: Series) -> Drawn:
    """Draw microseconds of attention over packed rows, a line for each backend."""
    group, context, batch = series
    points = [p for p in run.points if (p.group, p.context, p.batch) == series]
    lines = {
        name: {p.packed: 1e6 * p.seconds for p in points if p.backend == name}
        for name in dict.fromkeys(p.backend for p in points)
    }
    found = {b: text for b, g, c, n, text in run.fits if (g, c, n) == series}
    said = "; ".join(f"{name}: {text}" for name, text in found.items())
    reading = _("Recorded on {label}. {said}.").format(
        label=run.label, said=said or _("too few points to say where steps are")
    )
    return Drawn(
        name="fit-recorded",
        title=_("Attention, recorded: G = {g}, {context} cached, batch {batch}").format(
            g=group, context=context, batch=batch
        ),
        chart=_chart(lines, _("packed rows G (1 + D)"), _("microseconds")),
        reading=reading,
        alt=_("Microseconds of attention over packed rows by backend. {reading}").format(
            reading=reading
        ),
        columns=(_("Backend"), "1 + D", _("Packed rows"), _("Microseconds"), "BLOCK_M"),
        rows=tuple(_cells(p) for p in points),
    )


def _cells(p: Point) -> tuple[str, ...]:
    tile = "-" if p.block_m is None else str(p.block_m)
    return p.backend, str(p.rows), str(p.packed), f"{1e6 * p.seconds:.1f}", tile


def recorded_curves(runs: Sequence[GpuRun]) -> dict[str, dict[int, float]]:
    """Return v(rows)/v(1) of every recorded model, named with device and date."""
    return {
        f"{one.target}, {run.label}": one.relative
        for run in runs
        for one in run.passes
        if 1 in one.seconds
    }


def passes_chart(run: GpuRun) -> Drawn:
    """Draw v(rows)/v(1) of whole passes, a line for each random target."""
    lines = {one.target: one.relative for one in run.passes if 1 in one.seconds}
    reading = _(
        "Recorded on {label}, random weights of real shapes. A flat line means that drafts are "
        "verified for nothing."
    ).format(label=run.label)
    return Drawn(
        name="fit-recorded-passes",
        title=_("Cost of verifying, recorded"),
        chart=_chart(lines, _("rows of the pass, 1 + D"), _("v(rows) / v(1)"), edges=()),
        reading=reading,
        alt=_("Cost of a pass over its rows by model. {reading}").format(reading=reading),
        columns=(_("Model"), _("Rows"), _("Milliseconds"), "v"),
        rows=tuple(
            (one.target, str(rows), f"{1e3 * t:.3f}", f"{one.relative[rows]:.3f}")
            for one in run.passes
            for rows, t in one.seconds.items()
        ),
    )


def mla_chart() -> Drawn:
    """Draw NVIDIA's measured ladder of MLA attention, over one row."""
    reading = _(
        "Published, not measured here. {source}. The same SMs with more bandwidth show a larger "
        "step: compare H100 and H200."
    ).format(source=_(MLA_SOURCE))
    return Drawn(
        name="fit-published-mla",
        title=_("MLA attention over rows, measured by NVIDIA"),
        chart=_chart(
            {one.title: one.relative for one in MLA},
            _("rows (heads of one KV head)"),
            _("time over one row"),
            log=True,
        ),
        reading=reading,
        alt=_("Time over rows of MLA attention on six GPUs. {reading}").format(reading=reading),
        columns=(_("Part"), *(_("{n} rows, us").format(n=n) for n in MLA[0].us), _("Note")),
        rows=tuple((one.title, *(f"{t:g}" for t in one.us.values()), _(one.note)) for one in MLA),
    )


def factors_chart() -> Drawn:
    """Draw the ladder of tiles in NVIDIA's own timing model."""
    steps = factors()
    lines = {
        _("main loop, per key"): {tile: main for tile, (main, _red) in steps.items()},
        _("reduction of splits"): {tile: red for tile, (_main, red) in steps.items()},
    }
    reading = _(
        "Derived from source, not measured here. {source}. A tile of 128 rows costs 2.2 times one "
        "of 8: sixteen times the rows; beyond 128, every further tile costs the same again."
    ).format(source=_(FACTOR_SOURCE))
    return Drawn(
        name="fit-published-factors",
        title=_("Cost of a tile in NVIDIA's timing model"),
        chart=_chart(
            lines, _("rows of the tile"), _("cost, 8 rows = 1"), edges=(), path="step-before"
        ),
        reading=reading,
        alt=_("Relative cost over the rows of a tile. {reading}").format(reading=reading),
        columns=(_("Rows of the tile"), _("Main loop"), _("Reduction")),
        rows=tuple((str(t), f"{main:g}", f"{red:g}") for t, (main, red) in steps.items()),
    )


def compiled_table(
    lines: Sequence[Compiled],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return headings and rows of what was compiled: one row for each tile and architecture."""
    columns = (
        _("Architecture"),
        "BLOCK_M",
        _("Splits"),
        _("Registers"),
        _("Spilled, bytes"),
        _("Shared memory, KiB"),
        _("Warps"),
        _("Matrix instruction"),
    )
    rows = tuple(
        (
            line.arch,
            str(line.block_m),
            _("one") if line.final else _("several"),
            str(line.registers),
            str(line.spilled),
            f"{line.shared / 1024:.0f}",
            str(line.warps),
            ", ".join(line.instructions) or "-",
        )
        for line in lines
        if line.block_m is not None
    )
    return columns, rows


def _chart(
    lines: Lines,
    x_title: str,
    y_title: str,
    edges: Sequence[int] = EDGES,
    log: bool = False,
    path: Literal["linear", "step-before"] = "linear",
) -> "Layers":
    names = list(lines)
    hues, dashes, shapes = looks(names)
    data = [
        {"line": name, "rows": rows, "value": value}
        for name, line in lines.items()
        for rows, value in line.items()
    ]
    most = max((rows for line in lines.values() for rows in line), default=1)
    scale = alt.Scale(type="log", base=2) if log else alt.Scale(zero=True)
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("rows:Q", title=x_title, scale=scale),
        y=alt.Y("value:Q", title=y_title, scale=scale),
        color=alt.Color(
            "line:N",
            scale=alt.Scale(domain=names, range=hues),
            legend=alt.Legend(orient="bottom", columns=1, title=None, labelLimit=320),
        ),
        tooltip=[
            alt.Tooltip("line:N", title=" "),
            alt.Tooltip("rows:Q", title=x_title),
            alt.Tooltip("value:Q", format=".3g", title=y_title),
        ],
    )
    drawn = base.mark_line(strokeWidth=2, interpolate=path).encode(
        strokeDash=alt.StrokeDash(
            "line:N", scale=alt.Scale(domain=names, range=dashes), legend=None
        )
    )
    dots = base.mark_point(filled=True, size=30).encode(
        shape=alt.Shape("line:N", scale=alt.Scale(domain=names, range=shapes), legend=None)
    )
    rules = (
        alt.Chart(alt.InlineData(values=[{"edge": e} for e in edges if e <= most]))
        .mark_rule(color=QUIET, strokeDash=[2, 4])
        .encode(x="edge:Q")
    )
    return alt.layer(rules, drawn, dots).properties(height=340)
