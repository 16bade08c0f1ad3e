"""What speculation buys: latency of a chain of agent calls, and GPUs for a traffic."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from specviz.cost.chain import Chain, Latency
from specviz.cost.operating import Fleet
from specviz.views.hardware_drawn import Drawn, looks
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

SHARES = (0.05, 0.5, 0.9, 0.99)
DRAWN = 60  # points of each curve


def latency_chart(chain: Chain, latencies: Mapping[str, Latency], *, measured: bool) -> Drawn:
    """Draw the share of chains that are done over time, one curve per plan; plain comes first.

    `measured` says that rounds were drawn from measured ones, in stretches of neighbours.
    """
    reading = _reading(latencies, measured)
    return Drawn(
        name="fit-latency",
        title=_("Latency of {n} calls of {tokens} tokens").format(
            n=chain.calls, tokens=chain.tokens
        ),
        chart=_layers(latencies),
        reading=reading,
        alt=_("Curves of the share of agent chains done over seconds. {reading}").format(
            reading=reading
        ),
        columns=(_("Plan"), *(_("p{n}, s").format(n=round(100 * share)) for share in SHARES)),
        rows=tuple(
            (name, *(f"{latency.quantile(share):.2f}" for share in SHARES))
            for name, latency in latencies.items()
        ),
    )


def _layers(latencies: Mapping[str, Latency]) -> "Layers":
    names = list(latencies)
    hues, dashes, _shapes = looks(names)
    shares = np.linspace(0, 1, DRAWN)
    data = [
        {"plan": name, "s": latency.quantile(float(share)), "share": float(share)}
        for name, latency in latencies.items()
        for share in shares
    ]
    lines = (
        alt.Chart(alt.InlineData(values=data))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("s:Q", title=_("seconds end to end"), scale=alt.Scale(zero=True)),
            y=alt.Y("share:Q", title=_("share of chains done"), axis=alt.Axis(format="%")),
            order="share:Q",
            color=alt.Color(
                "plan:N",
                scale=alt.Scale(domain=names, range=hues),
                legend=alt.Legend(orient="bottom", columns=2, title=None, labelLimit=170),
            ),
            strokeDash=alt.StrokeDash(
                "plan:N", scale=alt.Scale(domain=names, range=dashes), legend=None
            ),
            tooltip=[
                alt.Tooltip("plan:N", title=_("plan")),
                alt.Tooltip("s:Q", format=".2f", title=_("seconds")),
                alt.Tooltip("share:Q", format=".0%", title=_("share of chains done")),
            ],
        )
    )
    return alt.layer(lines).properties(height=360)


def _reading(latencies: Mapping[str, Latency], measured: bool) -> str:
    (plain, before), *others = latencies.items()
    if not others:
        return _("{plain}: {s} s.").format(plain=plain, s=f"{before.median:.1f}")
    name, after = others[0]
    text = _(
        "Half of the chains take {after} s or less with {name} and {before} s without: {x}x. The "
        "slowest 1% take {slow} s or more with it; {why}."
    )
    return text.format(
        why=_("bursts of accepted drafts, as measured, are in that")
        if measured
        else _("real rounds come in bursts and spread wider"),
        after=f"{after.median:.1f}",
        name=name,
        before=f"{before.median:.1f}",
        x=f"{before.median / after.median:.2f}",
        slow=f"{after.quantile(0.99):.1f}",
    )


def fleet_columns() -> tuple[str, ...]:
    """Return the headings of the table of GPUs and cost."""
    return (
        _("Plan"),
        _("Users at once per group of GPUs"),
        _("GPUs"),
        _("Cost per hour"),
        _("Cost per million tokens"),
    )


def fleet_rows(fleets: Mapping[str, Fleet]) -> tuple[tuple[str, ...], ...]:
    """Return one row per plan."""
    return tuple((name, *_cells(fleet)) for name, fleet in fleets.items())


def _cells(fleet: Fleet) -> tuple[str, ...]:
    if fleet.point is None:
        return (_("not at this speed"), "-", "-", "-")
    return (
        str(fleet.point.batch),
        str(fleet.gpus),
        f"{fleet.per_hour or 0:.2f}",
        f"{fleet.per_million or 0:.3f}",
    )


def fleet_reading(fleets: Mapping[str, Fleet]) -> str:
    """Say in one sentence what the fastest plan saves."""
    (plain, before), *others = fleets.items()
    able: Sequence[tuple[str, Fleet]] = [(n, f) for n, f in others if f.gpus]
    if not able:
        return _("No plan reaches this speed for every user: lower it or shorten the context.")
    name, best = min(able, key=lambda item: item[1].gpus or 0)
    if before.gpus is None:
        text = _("{plain} cannot serve this speed at all; {name} does with {n} GPUs.")
        return text.format(plain=plain, name=name, n=best.gpus)
    text = _("{name} serves this traffic with {n} GPUs instead of {all}.")
    if (best.gpus or 0) >= before.gpus:
        text = _("{name} needs {n} GPUs for this traffic, plain decoding {all}: it saves none.")
    return text.format(name=name, n=best.gpus, all=before.gpus)
