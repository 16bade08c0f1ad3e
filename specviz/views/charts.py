"""Bars of the decision panel, stacked time and rounds as Plotly figures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from specviz.views.decision import Decision
from specviz.views.html import chart_text
from specviz.views.theme import PARTS, SERIES
from specviz.words import _

if TYPE_CHECKING:
    from plotly.graph_objects import Bar, Figure

_MARGIN = {"l": 8, "r": 8, "t": 8, "b": 8}
_LEGEND = {"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0}


def decision_chart(shown: Decision) -> "Figure":
    """Draw q, p, what they share and what is left, per token, the likeliest on top."""
    from plotly.graph_objects import Figure

    # Positions are numbers: two tokens that look the same must not share a bar.
    places = list(range(len(shown.bars)))
    labels = [
        bar.label if bar.token is None else ("▸ " if bar.chosen else "") + chart_text(bar.label)
        for bar in shown.bars
    ]
    figure = Figure(_decision_bars(shown, labels))
    figure.update_layout(
        barmode="group",
        bargroupgap=0.12,
        height=90 + (10 + 9 * len(shown.series)) * len(places),
        margin=_MARGIN,
        legend=_LEGEND,
        xaxis={"title": {"text": _("probability")}, "range": [0, 1], "fixedrange": True},
        yaxis={
            "tickmode": "array",
            "tickvals": places,
            "ticktext": labels,
            "autorange": "reversed",
            "automargin": True,
            "fixedrange": True,
        },
    )
    return figure


def _decision_bars(shown: Decision, labels: list[str]) -> "list[Bar]":
    from plotly.graph_objects import Bar

    names = {
        "q": _("q, draft"),
        "p": _("p, model's own") if shown.own else _("p, target"),
        "overlap": _("min(p, q)"),
        "residual": _("max(p - q, 0)"),
    }
    return [
        Bar(
            y=list(range(len(shown.bars))),
            x=[getattr(bar, series) for bar in shown.bars],
            name=names[series],
            orientation="h",
            marker={"color": colour, "pattern": _pattern(pattern)},
            customdata=labels,
            hovertemplate="%{customdata}: %{x:.3g}<extra>" + names[series] + "</extra>",
        )
        for series, (colour, pattern) in SERIES.items()
        if series in shown.series
    ]


def time_chart(parts: Mapping[str, float], labels: Mapping[str, str]) -> "Figure":
    """Draw the milliseconds of a mean round as one stacked bar; `parts` in spending order."""
    from plotly.graph_objects import Bar, Figure

    figure = Figure(
        [
            Bar(
                y=[""],
                x=[parts[part]],
                name=labels[part],
                orientation="h",
                marker={"color": PARTS[part][0], "pattern": _pattern(PARTS[part][1])},
                hovertemplate="%{x:.2f} ms<extra>" + labels[part] + "</extra>",
            )
            for part in parts
        ]
    )
    figure.update_layout(
        barmode="stack",
        height=130,
        margin=_MARGIN,
        legend=_LEGEND | {"traceorder": "normal"},
        xaxis={"title": {"text": _("ms per round")}, "fixedrange": True},
        yaxis={"fixedrange": True, "showticklabels": False},
    )
    return figure


def lengths_chart(lengths: Sequence[int], mean: float, first: int = 0) -> "Figure":
    """Draw tokens committed per round, from round `first` on, with the mean as a line.

    `first` is an index; the axis counts rounds from 1.
    """
    from plotly.graph_objects import Bar, Figure

    figure = Figure(
        [
            Bar(
                x=list(range(first + 1, first + 1 + len(lengths))),
                y=list(lengths),
                marker={"color": SERIES["overlap"][0]},
            )
        ]
    )
    figure.add_hline(
        y=mean,
        line_dash="dot",
        annotation_text=f"E[L] = {mean:.2f}",
        annotation_position="top left",
    )
    figure.update_layout(
        height=180,
        bargap=0.15,
        margin=_MARGIN,
        xaxis={
            "title": {"text": _("round")},
            "tick0": first + 1,
            "dtick": max(1, len(lengths) // 8),
            "fixedrange": True,
        },
        yaxis={
            "title": {"text": _("tokens committed")},
            "rangemode": "tozero",
            "nticks": 5,
            "fixedrange": True,
        },
    )
    return figure


def _pattern(shape: str) -> dict[str, str | float]:
    return {"shape": shape, "fillmode": "overlay", "size": 6, "solidity": 0.25}
