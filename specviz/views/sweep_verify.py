"""What a pass over more rows costs, measured; and how near predictions came to measurements."""

from collections.abc import Mapping, Sequence
from statistics import median

import altair as alt

from specviz.cost.reasons import title
from specviz.metrics.sweep import Point
from specviz.views.hardware_drawn import QUIET, Drawn, looks
from specviz.views.prompts import class_name
from specviz.views.sweep_lines import SHORT, columns, row
from specviz.views.sweep_looks import scheme_looks
from specviz.words import _

NEAR = 0.10  # a prediction within this of the measurement is called near
Curve = Mapping[int, float]


def verify_chart(curves: Mapping[str, Curve]) -> Drawn:
    """Draw v(rows)/v(1) over rows, a line for each named model."""
    names = list(curves)
    hues, dashes, _shapes = looks(names)
    data = [
        {"model": name, "rows": rows, "cost": cost}
        for name, curve in curves.items()
        for rows, cost in curve.items()
    ]
    legend = alt.Legend(orient="bottom", columns=2, title=None, symbolStrokeWidth=0)
    lines = (
        alt.Chart(alt.InlineData(values=data))
        .mark_line(strokeWidth=2, point=alt.OverlayMarkDef(size=16))
        .encode(
            x=alt.X("rows:Q", title=_("rows of the pass, 1 + D"), axis=alt.Axis(tickMinStep=1)),
            y=alt.Y("cost:Q", title=_("v(rows) / v(1)"), scale=alt.Scale(zero=True)),
            color=alt.Color("model:N", scale=alt.Scale(domain=names, range=hues), legend=legend),
            strokeDash=alt.StrokeDash(
                "model:N", scale=alt.Scale(domain=names, range=dashes), legend=None
            ),
            tooltip=[
                alt.Tooltip("model:N", title=_("model")),
                alt.Tooltip("rows:Q", title=_("rows")),
                alt.Tooltip("cost:Q", format=".2f", title="v"),
            ],
        )
    )
    one = alt.InlineData(values=[{"one": 1.0}])
    level = alt.Chart(one).mark_rule(color=QUIET, strokeDash=[4, 4]).encode(y="one:Q")
    reading = _verify_reading(names[0], curves[names[0]])
    return Drawn(
        name="sweep-verify",
        title=_("Cost of verifying"),
        chart=alt.layer(level, lines).properties(height=SHORT),
        reading=reading,
        alt=_("Measured cost of a pass over the number of rows. {reading}").format(reading=reading),
        columns=(_("Model"), _("Rows"), "v"),
        rows=tuple(
            (name, str(rows), f"{cost:.3f}")
            for name, curve in curves.items()
            for rows, cost in curve.items()
        ),
    )


def _verify_reading(name: str, curve: Curve) -> str:
    last = max(curve)
    middle = min(curve, key=lambda rows: abs(rows - 8))
    text = _(
        "{name}: {middle} rows cost {x} plain passes and {last} rows cost {y}. A flat line means "
        "that drafts are verified for nothing."
    )
    return text.format(
        name=name, middle=middle, x=f"{curve[middle]:.2f}", last=last, y=f"{curve[last]:.2f}"
    )


def prediction_chart(points: Sequence[Point]) -> Drawn | None:
    """Draw predicted against measured speedup; None before anything is predicted."""
    known = [p for p in points if p.predicted is not None]
    if not known:
        return None
    look = scheme_looks(p.cell.scheme for p in known)
    data = [
        {
            "scheme": title(p.cell.scheme),
            "D": p.cell.draft_length,
            "prompts": class_name(p.prompt_class),
            "measured": p.speedup,
            "predicted": p.predicted,
            "remainder": p.remainder,
        }
        for p in known
    ]
    dots = (
        alt.Chart(alt.InlineData(values=data))
        .mark_point(filled=True, size=60)
        .encode(
            x=alt.X("measured:Q", title=_("measured speedup"), scale=alt.Scale(zero=False)),
            y=alt.Y("predicted:Q", title=_("predicted speedup"), scale=alt.Scale(zero=False)),
            color=look.color,
            shape=look.shape,
            tooltip=[
                alt.Tooltip("scheme:N", title=_("scheme")),
                alt.Tooltip("D:Q"),
                alt.Tooltip("prompts:N", title=_("prompts")),
                alt.Tooltip("measured:Q", format=".2f", title=_("measured")),
                alt.Tooltip("predicted:Q", format=".2f", title=_("predicted")),
                alt.Tooltip("remainder:Q", format=".2f", title=_("remainder")),
            ],
        )
    )
    values = [v for p in known for v in (p.speedup, p.predicted or p.speedup)]
    ends = alt.InlineData(values=[{"v": min(values)}, {"v": max(values)}])
    same = alt.Chart(ends).mark_line(color=QUIET, strokeDash=[4, 4]).encode(x="v:Q", y="v:Q")
    reading = prediction_reading(known)
    return Drawn(
        name="sweep-prediction",
        title=_("Predicted against measured"),
        chart=alt.layer(same, dots).properties(height=SHORT),
        reading=reading,
        alt=_("Predicted over measured speedup with the line where both are equal. {reading}")
        .format(reading=reading),
        columns=columns(),
        rows=tuple(row(p) for p in known),
    )  # fmt: skip


def prediction_reading(known: Sequence[Point]) -> str:
    """Say how far predictions are off, and what they leave out."""
    errors = [abs(p.error) for p in known if p.error is not None]
    rest = [p.remainder for p in known if p.remainder is not None]
    text = _(
        "Predictions are off by {error} (median of {n} points), {near} of them within 10%. They "
        "leave out a remainder of {rest} plain rounds per round (median)."
    )
    return text.format(
        error=f"{median(errors):.0%}",
        n=len(errors),
        near=sum(e <= NEAR for e in errors),
        rest=f"{median(rest):.2f}",
    )
