"""Operating points: throughput per GPU against speed per user, and the two ways to read them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.operating import Operating, Plan, Ratios, points
from specviz.cost.reasons import title
from specviz.views.hardware_drawn import HUES, QUIET, Drawn, looks
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers


def operating_chart(plans: Sequence[Plan], ratios: Ratios) -> Drawn:
    """Draw one curve per plan, the first being plain decoding; `ratios` is of the second."""
    curves = {_name(plan): points(plan) for plan in plans}
    reading = reading_of(ratios, _name(plans[1]))
    return Drawn(
        name="fit-operating",
        title=_("Operating point: throughput against speed"),
        chart=_layers(curves, ratios),
        reading=reading,
        alt=_("Curves of throughput per GPU over tokens per second and user. {reading}").format(
            reading=reading
        ),
        columns=(_("Scheme"), _("Batch"), _("Tokens/s per user"), _("Tokens/s per GPU")),
        rows=tuple(
            (name, str(p.batch), f"{p.per_user:.1f}", f"{p.per_gpu:.1f}")
            for name, curve in curves.items()
            for p in curve
        ),
    )


def _name(plan: Plan) -> str:
    if not plan.draft_length:
        return title("none")
    return _("{scheme}, D = {d}").format(scheme=title(plan.scheme), d=plan.draft_length)


def _layers(curves: Mapping[str, Sequence[Operating]], ratios: Ratios) -> "Layers":
    names = list(curves)
    hues, dashes, shapes = looks(names)
    data = [
        {"scheme": name, "user": p.per_user, "gpu": p.per_gpu, "batch": p.batch}
        for name, curve in curves.items()
        for p in curve
    ]
    picked = alt.selection_point(fields=["scheme"], bind="legend")
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("user:Q", title=_("tokens/s per user (modelled)")),
        y=alt.Y(
            "gpu:Q",
            scale=alt.Scale(type="log"),
            title=_("tokens/s per GPU (log)"),
            axis=alt.Axis(format="~s", tickCount=4),
        ),
        color=alt.Color(
            "scheme:N",
            scale=alt.Scale(domain=names, range=hues),
            legend=alt.Legend(orient="bottom", columns=2, title=None, labelLimit=170),
        ),
        opacity=alt.condition(picked, alt.value(1.0), alt.value(0.15)),
        tooltip=[
            alt.Tooltip("scheme:N", title=_("scheme")),
            alt.Tooltip("batch:Q", title=_("batch")),
            alt.Tooltip("user:Q", format=".0f", title=_("tokens/s per user")),
            alt.Tooltip("gpu:Q", format=".0f", title=_("tokens/s per GPU")),
        ],
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        order="batch:Q",
        strokeDash=alt.StrokeDash(
            "scheme:N", scale=alt.Scale(domain=names, range=dashes), legend=None
        ),
    )
    dots = base.mark_point(filled=True, size=45).encode(
        shape=alt.Shape("scheme:N", scale=alt.Scale(domain=names, range=shapes), legend=None)
    )
    layers = [lines.add_params(picked), dots, _speed(ratios), _batch(ratios)]
    return alt.layer(*layers).properties(height=440)


def _speed(ratios: Ratios) -> "Layers":
    """The fixed interactivity as a line."""
    label = _("{n} tokens/s per user").format(n=f"{ratios.per_user:.0f}")
    data = alt.InlineData(values=[{"user": ratios.per_user, "text": label}])
    line = alt.Chart(data).mark_rule(color=QUIET, strokeDash=[4, 3]).encode(x="user:Q")
    text = (
        alt.Chart(data)
        .mark_text(align="center", baseline="bottom", color=QUIET)
        .encode(x="user:Q", y=alt.value(-4), text="text:N")
    )
    return alt.layer(line, text)


def _batch(ratios: Ratios) -> "Layers":
    """The fixed concurrency as a line between the two curves."""
    ends = (ratios.plain_at_batch, ratios.scheme_at_batch)
    data = [{"user": p.per_user, "gpu": p.per_gpu, "batch": p.batch} for p in ends]
    line = (
        alt.Chart(alt.InlineData(values=data))
        .mark_line(color=HUES[1], strokeWidth=2, point={"color": HUES[1], "size": 90})
        .encode(x="user:Q", y="gpu:Q")
    )
    return alt.layer(line)


def reading_of(ratios: Ratios, name: str) -> str:
    """Say both ratios side by side, and why both are true."""
    same = _("At the same concurrency, batch {batch}, {name} gives {x}x the throughput").format(
        batch=ratios.batch, name=name, x=f"{ratios.concurrency:.1f}"
    )
    speed = f"{ratios.per_user:.0f}"
    if ratios.scheme_at_speed is None:
        text = _("{same}. Nothing here reaches {speed} tokens/s per user: lower it.")
        return text.format(same=same, speed=speed)
    if ratios.interactivity is None:
        text = _(
            "{same}; at {speed} tokens/s per user the ratio has no limit, because plain decoding "
            "does not get there at any batch while {name} serves {n} users at once. Both are true."
        )
        return text.format(same=same, speed=speed, name=name, n=ratios.scheme_at_speed.batch)
    plain = ratios.plain_at_speed
    text = _(
        "{same}; at the same {speed} tokens/s per user it gives {x}x, because plain decoding must "
        "shrink to batch {small} there and {name} to {large}. Both are true."
    )
    return text.format(
        same=same,
        speed=speed,
        x=f"{ratios.interactivity:.1f}",
        small=plain.batch if plain else 0,
        name=name,
        large=ratios.scheme_at_speed.batch,
    )
