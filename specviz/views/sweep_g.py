"""A sweep over G: speedup by group size, the map of D and G, and the attention operation alone."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.reasons import title
from specviz.cost.tiles import TILE
from specviz.metrics.sweep import Point
from specviz.views import theme
from specviz.views.hardware_drawn import QUIET, Drawn, looks
from specviz.views.sweep_lines import SHORT, columns, mode_name, row
from specviz.views.sweep_looks import scheme_looks
from specviz.words import _

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Times = Mapping[tuple[int, int], float]  # attention: relative time by (G, rows)


def group_chart(points: Sequence[Point], length: int) -> Drawn:
    """Draw speedup over G at one D; filled marks are exact, hollow ones timed twins."""
    shown = sorted(points, key=lambda p: p.cell.group_size)
    look = scheme_looks(p.cell.scheme for p in shown)
    data = [
        {
            "scheme": title(p.cell.scheme),
            "G": str(p.cell.group_size),
            "speedup": p.speedup,
            "low": p.low,
            "high": p.high,
            "mode": mode_name(p.cell.mode),
            "exact": p.cell.mode == "exact",
        }
        for p in shown
    ]
    groups = [str(g) for g in sorted({p.cell.group_size for p in shown})]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X(
            "G:O", title=_("G, query heads per KV head"), sort=groups, axis=alt.Axis(labelAngle=0)
        ),
        color=look.color,
    )
    y = alt.Y("speedup:Q", title=_("measured speedup"), scale=alt.Scale(zero=False, padding=8))
    tips = [
        alt.Tooltip("scheme:N", title=_("scheme")),
        alt.Tooltip("G:N"),
        alt.Tooltip("mode:N", title=_("mode")),
        alt.Tooltip("speedup:Q", format=".2f", title=_("speedup")),
    ]
    lines = base.mark_line(strokeWidth=1.5).encode(y=y, strokeDash=look.dash)
    spread = base.mark_rule().encode(y=alt.Y("low:Q"), y2="high:Q")
    exact = base.transform_filter("datum.exact").mark_point(filled=True, size=90)
    twin = base.transform_filter("!datum.exact").mark_point(filled=False, size=90, strokeWidth=2)
    marks = [m.encode(y=y, shape=look.shape, tooltip=tips) for m in (exact, twin)]
    reading = _group_reading(shown, length)
    return Drawn(
        name="sweep-groups",
        title=_("Speedup over G at D = {d}").format(d=length),
        chart=alt.layer(lines, spread, *marks).properties(height=SHORT),
        reading=reading,
        alt=_("Speedup over query heads per KV head. {reading}").format(reading=reading),
        columns=columns(),
        rows=tuple(row(p) for p in shown),
    )


def _group_reading(points: Sequence[Point], length: int) -> str:
    first = points[0].cell.scheme
    same = [p for p in points if p.cell.scheme == first]
    low, high = min(same, key=lambda p: p.speedup), max(same, key=lambda p: p.speedup)
    text = _(
        "{scheme} at D = {d}: from {low}x at G = {g} to {high}x at G = {h}. Filled marks are exact "
        "(the same function, real acceptance and time); hollow ones are timed twins (random "
        "weights for the time, acceptance of the measured target)."
    )
    return text.format(
        scheme=title(first),
        d=length,
        low=f"{low.speedup:.2f}",
        g=low.cell.group_size,
        high=f"{high.speedup:.2f}",
        h=high.cell.group_size,
    )


def map_chart(points: Sequence[Point]) -> Drawn:
    """Draw speedup over D and G of one scheme, with the edge G (1 + D) = tile on it."""
    lengths = sorted({p.cell.draft_length for p in points})
    groups = sorted({p.cell.group_size for p in points})
    known = {(p.cell.group_size, p.cell.draft_length): p for p in points}
    grid = [[_at(known, group, d) for d in lengths] for group in groups]
    best = max(points, key=lambda p: p.speedup)
    reading = _map_reading(points, best, lengths, groups)
    return Drawn(
        name="sweep-map",
        title=_("D and G together: {scheme}").format(scheme=title(best.cell.scheme)),
        chart=_figure(lengths, groups, grid),
        reading=reading,
        alt=_("Heatmap of speedup over draft length and G. {reading}").format(reading=reading),
        columns=("G", *(f"D = {d}" for d in lengths)),
        rows=tuple(
            (str(g), *("-" if x is None else f"{x:.2f}" for x in values))
            for g, values in zip(groups, grid, strict=True)
        ),
    )


def _at(known: Mapping[tuple[int, int], Point], group: int, length: int) -> float | None:
    point = known.get((group, length))
    return None if point is None else point.speedup


def _map_reading(
    points: Sequence[Point], best: Point, lengths: Sequence[int], groups: Sequence[int]
) -> str:
    crossed = [g for g in groups if g * (1 + lengths[-1]) > TILE]
    text = _("Highest: {x}x at D = {d}, G = {g} ({mode}). {edge}")
    edge = (
        _("The edge G (1 + D) = {tile} is crossed for G = {groups}.").format(
            tile=TILE, groups=", ".join(map(str, crossed))
        )
        if crossed
        else _("The edge G (1 + D) = {tile} lies outside what was measured.").format(tile=TILE)
    )
    return text.format(
        x=f"{best.speedup:.2f}",
        d=best.cell.draft_length,
        g=best.cell.group_size,
        mode=mode_name(best.cell.mode),
        edge=edge,
    )


def _figure(
    lengths: Sequence[int], groups: Sequence[int], grid: Sequence[Sequence[float | None]]
) -> "Figure":
    from plotly.graph_objects import Figure, Heatmap, Scatter

    names = [str(group) for group in groups]
    edge = [(TILE / group - 1, name) for group, name in zip(groups, names, strict=True)]
    edge = [(d, name) for d, name in edge if lengths[0] - 0.5 <= d <= lengths[-1] + 0.5]
    figure = Figure(
        [
            Heatmap(
                x=list(lengths),
                y=names,
                z=[list(values) for values in grid],
                text=[["" if x is None else f"{x:.2f}" for x in values] for values in grid],
                texttemplate="%{text}",
                colorscale="Cividis",
                colorbar={"title": {"text": _("speedup")}, "thickness": 12, "len": 0.9},
                hovertemplate="D = %{x}, G = %{y}: %{z:.2f}x<extra></extra>",
            ),
            Scatter(
                x=[d for d, _name in edge],
                y=[name for _d, name in edge],
                mode="lines+markers",
                line={"color": theme.HUES[1], "width": 3, "dash": "dash"},
                marker={"symbol": "x", "size": 8},
                name=_("G (1 + D) = {tile}").format(tile=TILE),
                showlegend=True,
                hovertemplate="D = %{x:.0f}, G = %{y}<extra></extra>",
            ),
        ]
    )
    figure.update_layout(
        height=110 + 46 * len(groups) + 60,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        xaxis={
            "title": {"text": _("D, drafted tokens per round")},
            "fixedrange": True,
            "dtick": max(1, (lengths[-1] - lengths[0]) // 8),
            "range": [lengths[0] - 0.5, lengths[-1] + 0.5],
        },
        yaxis={
            "title": {"text": _("G, query heads per KV head")},
            "type": "category",
            "fixedrange": True,
        },
    )
    return figure


def kernel_chart(times: Times, context: int) -> Drawn:
    """Draw the relative time of the attention operation over its rows, a line for each G."""
    groups = sorted({group for group, _rows in times})
    names = [f"G = {g}" for g in groups]
    hues, dashes, shapes = looks(names)
    data = [
        {"G": f"G = {g}", "packed": g * rows, "rows": rows, "time": t}
        for (g, rows), t in sorted(times.items())
    ]
    legend = alt.Legend(orient="bottom", columns=5, title=None, symbolStrokeWidth=0)
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("rows:Q", title=_("rows, 1 + D"), axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("time:Q", title=_("time / time of one row")),
        color=alt.Color("G:N", scale=alt.Scale(domain=names, range=hues), legend=legend),
        tooltip=[
            alt.Tooltip("G:N"),
            alt.Tooltip("rows:Q", title=_("rows")),
            alt.Tooltip("packed:Q", title=_("packed rows")),
            alt.Tooltip("time:Q", format=".2f", title=_("relative time")),
        ],
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=alt.StrokeDash("G:N", scale=alt.Scale(domain=names, range=dashes), legend=None)
    )
    dots = base.mark_point(filled=True, size=40).encode(
        shape=alt.Shape("G:N", scale=alt.Scale(domain=names, range=shapes), legend=None)
    )
    last = max(rows for _group, rows in times)
    ends = ", ".join(f"{times[g, last]:.1f}x (G = {g})" for g in groups if (g, last) in times)
    text = _("Attention alone over {context} cached tokens: {rows} rows against one row, {ends}.")
    reading = text.format(context=context, rows=last, ends=ends)
    level = alt.Chart(alt.InlineData(values=[{"one": 1.0}])).mark_rule(
        color=QUIET, strokeDash=[4, 4]
    )
    return Drawn(
        name="sweep-kernel",
        title=_("The attention operation alone"),
        chart=alt.layer(level.encode(y="one:Q"), lines, dots).properties(height=SHORT),
        reading=reading,
        alt=_("Relative time of attention over rows, one line per G. {reading}").format(
            reading=reading
        ),
        columns=("G", _("Rows"), _("Relative time")),
        rows=tuple((str(g), str(rows), f"{t:.3f}") for (g, rows), t in sorted(times.items())),
    )
