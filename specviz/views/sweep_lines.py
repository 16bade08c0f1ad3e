"""A sweep over D: measured speedup with its interval and the model beside it, and E[L]."""

from collections.abc import Sequence
from typing import Literal

import altair as alt

from specviz.cost.reasons import title
from specviz.metrics.sweep import Point
from specviz.views.hardware_drawn import QUIET, Drawn
from specviz.views.prompts import class_name
from specviz.views.sweep_looks import Looks, scheme_looks
from specviz.words import _

PICK = "pick"  # the selection that a click on a point makes
SHORT = 380  # height of a chart with its legend, px
APART = 0.4  # of a step of D: how wide the schemes of one D lie, so that intervals stay apart

Record = dict[str, object]


def speedup_chart(points: Sequence[Point]) -> Drawn:
    """Draw measured speedup over D: points with intervals, the prediction as a line.

    `points` are of one prompt class and one G.
    """
    look, data, shown = _looks(points), _records(points), _shown()
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=_lengths(points),
        color=look.color,
        opacity=alt.condition(shown, alt.value(1.0), alt.value(0.15)),
    )
    hand: Literal["pointer", "default"] = "pointer" if any(p.traces for p in points) else "default"
    y = alt.Y("speedup:Q", title=_("measured speedup"), scale=alt.Scale(zero=False, padding=8))
    dots = (
        base.mark_point(filled=True, size=80, cursor=hand)
        .encode(x="place:Q", y=y, shape=look.shape, tooltip=_tooltip())
        .add_params(alt.selection_point(name=PICK, fields=["trace"], empty=False))
    )
    model = (
        base.transform_filter("isValid(datum.predicted)")
        .mark_line(strokeWidth=1.5)
        .encode(y=alt.Y("predicted:Q"), strokeDash=look.dash)
    )
    spread = base.mark_rule(strokeWidth=1.5).encode(x="place:Q", y=alt.Y("low:Q"), y2="high:Q")
    layers = [_break_even(), model, spread, dots.add_params(shown)]
    reading = speedup_reading(points)
    return Drawn(
        name="sweep-speedup",
        title=_("Speedup over D"),
        chart=alt.layer(*layers).properties(height=SHORT),
        reading=reading,
        alt=_("Measured speedup over draft length with intervals and model. {reading}").format(
            reading=reading
        ),
        columns=columns(),
        rows=tuple(row(p) for p in points),
    )


def length_chart(points: Sequence[Point]) -> Drawn:
    """Draw E[L] over D."""
    look, data, shown = _looks(points), _records(points), _shown()
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=_lengths(points),
        y=alt.Y(
            "length:Q", title=_("E[L], tokens per round"), scale=alt.Scale(zero=False, padding=8)
        ),
        color=look.color,
        opacity=alt.condition(shown, alt.value(1.0), alt.value(0.15)),
    )
    lines = base.mark_line(strokeWidth=2).encode(strokeDash=look.dash)
    dots = base.mark_point(filled=True, size=70).encode(shape=look.shape, tooltip=_tooltip())
    longest = max(points, key=lambda p: p.acceptance_length)
    text = _(
        "Longest: {scheme} with {length} tokens per round at D = {d}. A longer round pays only "
        "where it costs less than it adds."
    )
    reading = text.format(
        scheme=title(longest.cell.scheme),
        length=f"{longest.acceptance_length:.2f}",
        d=longest.cell.draft_length,
    )
    return Drawn(
        name="sweep-length",
        title=_("Tokens per round over D"),
        chart=alt.layer(lines, dots.add_params(shown)).properties(height=SHORT),
        reading=reading,
        alt=_("Measured tokens per round over draft length. {reading}").format(reading=reading),
        columns=columns(),
        rows=tuple(row(p) for p in points),
    )


def speedup_reading(points: Sequence[Point]) -> str:
    """Say which point is highest and how many stay above plain decoding, interval and all."""
    best = max(points, key=lambda p: p.speedup)
    sure = sum(p.low > 1 for p in points)
    text = _(
        "Highest: {scheme} at D = {d}, {x}x ({low}-{high}). {n} of {all} points stay above plain "
        "decoding with their whole interval. Lines: predicted from v, draft cost and acceptance; "
        "grey dashes: break-even."
    )
    return text.format(
        scheme=title(best.cell.scheme),
        d=best.cell.draft_length,
        x=f"{best.speedup:.2f}",
        low=f"{best.low:.2f}",
        high=f"{best.high:.2f}",
        n=sure,
        all=len(points),
    )


def columns() -> tuple[str, ...]:
    """Return the headings of a table of points."""
    return (
        _("Scheme"),
        "D",
        "G",
        _("Mode"),
        _("Prompts"),
        "E[L]",
        _("Measured"),
        _("Interval"),
        _("Predicted"),
        _("Remainder"),
    )


def row(point: Point) -> tuple[str, ...]:
    """Return a point as text."""
    cell = point.cell
    return (
        title(cell.scheme),
        str(cell.draft_length),
        str(cell.group_size),
        mode_name(cell.mode),
        class_name(point.prompt_class),
        f"{point.acceptance_length:.2f}",
        f"{point.speedup:.2f}x",
        f"{point.low:.2f}-{point.high:.2f}",
        "-" if point.predicted is None else f"{point.predicted:.2f}x",
        "-" if point.remainder is None else f"{point.remainder:.2f}",
    )


def mode_name(mode: str) -> str:
    """Say where a G comes from."""
    return {"exact": _("exact"), "twin": _("timed twin"), "kernel": _("kernel")}[mode]


def _looks(points: Sequence[Point]) -> Looks:
    return scheme_looks(p.cell.scheme for p in points)


def _records(points: Sequence[Point]) -> list[Record]:
    names = _looks(points).names
    step = APART / max(1, len(names) - 1)
    first = -APART / 2 if len(names) > 1 else 0.0
    return [_record(p, first + step * names.index(title(p.cell.scheme))) for p in points]


def _record(point: Point, aside: float) -> Record:
    return {
        "place": point.cell.draft_length + aside,
        "scheme": title(point.cell.scheme),
        "D": point.cell.draft_length,
        "speedup": point.speedup,
        "low": point.low,
        "high": point.high,
        "predicted": point.predicted,
        "length": point.acceptance_length,
        "prompts": point.prompts,
        "trace": point.traces[0] if point.traces else "",
    }


def _lengths(points: Sequence[Point]) -> alt.X:
    """Return an axis with a tick for every D, and room beside the ends for what lies apart."""
    known = sorted({p.cell.draft_length for p in points})
    return alt.X(
        "D:Q",
        title=_("D, drafted tokens per round"),
        axis=alt.Axis(values=known, format="d", labelOverlap=True),
        scale=alt.Scale(domain=[known[0] - APART, known[-1] + APART], nice=False),
    )


def _shown() -> alt.Parameter:
    """A click on a name in the legend dims all others."""
    return alt.selection_point(name="shown", fields=["scheme"], bind="legend")


def _tooltip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("scheme:N", title=_("scheme")),
        alt.Tooltip("D:Q"),
        alt.Tooltip("speedup:Q", format=".2f", title=_("measured")),
        alt.Tooltip("low:Q", format=".2f", title=_("from")),
        alt.Tooltip("high:Q", format=".2f", title=_("to")),
        alt.Tooltip("predicted:Q", format=".2f", title=_("predicted")),
        alt.Tooltip("length:Q", format=".2f", title="E[L]"),
        alt.Tooltip("prompts:Q", title=_("prompts")),
    ]


def _break_even() -> alt.Chart:
    data = alt.InlineData(values=[{"one": 1.0}])
    chart: alt.Chart = alt.Chart(data).mark_rule(color=QUIET, strokeDash=[4, 4]).encode(y="one:Q")
    return chart
