"""S(D) of every scheme with its best point, the break-even line and the rule's D."""

from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.advise import Advice, Choice
from specviz.cost.reasons import headline, title
from specviz.cost.speedup import Point
from specviz.views.hardware_drawn import QUIET, Drawn, looks
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

SHOWN = 32  # longest D drawn: beyond, curves only fall


def speedup_chart(advice: Advice) -> Drawn:
    """Draw the modelled speedup over D."""
    choices = advice.choices
    data = [_record(choice, point) for choice in choices for point in _points(choice)]
    names = [title(choice.scheme) for choice in choices]
    hues, dashes, shapes = looks(names)
    picked = alt.selection_point(fields=["scheme"], bind="legend")
    legend = alt.Legend(orient="bottom", columns=3, title=None, symbolStrokeWidth=3)
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("D:Q", title=_("D, drafted tokens per round"), axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("speedup:Q", title=_("speedup over plain decoding (modelled)")),
        color=alt.Color("scheme:N", scale=alt.Scale(domain=names, range=hues), legend=legend),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.15)),
        tooltip=[
            alt.Tooltip("scheme:N", title=_("scheme")),
            alt.Tooltip("D:Q"),
            alt.Tooltip("speedup:Q", format=".2f", title=_("speedup")),
            alt.Tooltip("length:Q", format=".2f", title="E[L]"),
            alt.Tooltip("verify:Q", format=".2f", title="v(D)"),
            alt.Tooltip("draft:Q", format=".2f", title=_("draft")),
        ],
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        strokeDash=alt.StrokeDash(
            "scheme:N", scale=alt.Scale(domain=names, range=dashes), legend=None
        )
    )
    best = (
        base.transform_filter("datum.best")
        .mark_point(filled=True, size=110)
        .encode(
            shape=alt.Shape("scheme:N", scale=alt.Scale(domain=names, range=shapes), legend=None)
        )
    )
    layers = [lines.add_params(picked), best, _break_even(), *_rule(advice)]
    chart = alt.layer(*layers).properties(height=420)
    return Drawn(
        name="fit-speedup",
        title=_("Speedup over D"),
        chart=chart,
        reading=headline(advice),
        alt=_("Lines of modelled speedup over draft length, one per scheme. {reading}").format(
            reading=headline(advice)
        ),
        columns=(_("Scheme"), "D", _("Speedup"), "E[L]", "v(D)", _("Draft")),
        rows=tuple(
            (
                title(choice.scheme),
                str(point.draft_length),
                f"{point.speedup:.3f}",
                f"{point.expected_length:.3f}",
                f"{point.verify:.3f}",
                f"{point.draft:.3f}",
            )
            for choice in choices
            for point in _points(choice)
        ),
    )


def _points(choice: Choice) -> list[Point]:
    return [p for p in choice.points if p.draft_length <= min(SHOWN, choice.most)]


def _record(choice: Choice, point: Point) -> dict[str, object]:
    return {
        "scheme": title(choice.scheme),
        "D": point.draft_length,
        "speedup": point.speedup,
        "length": point.expected_length,
        "verify": point.verify,
        "draft": point.draft,
        "best": point == choice.best,
    }


def _break_even() -> "Layers":
    data = alt.InlineData(values=[{"one": 1.0, "text": _("break-even")}])
    line = alt.Chart(data).mark_rule(color=QUIET, strokeDash=[4, 4]).encode(y="one:Q")
    text = (
        alt.Chart(data)
        .mark_text(align="right", baseline="bottom", color=QUIET, dx=-4, dy=-5)
        .encode(y="one:Q", x=alt.value("width"), text="text:N")
    )
    return alt.layer(line, text)


def _rule(advice: Advice) -> "list[Layers]":
    length = advice.rule.draft_length
    if not 0 < length <= SHOWN:
        return []
    label = _("{tile}/G - 1 = {d}").format(tile=advice.tile, d=length)
    data = alt.InlineData(values=[{"D": length, "text": label}])
    line = alt.Chart(data).mark_rule(color=QUIET, strokeWidth=1.5).encode(x="D:Q")
    text = (
        alt.Chart(data)
        .mark_text(align="right", baseline="bottom", color=QUIET)
        .encode(x="D:Q", y=alt.value(-4), text="text:N")
    )
    return [alt.layer(line, text)]
