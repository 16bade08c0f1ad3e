"""Several schemes on one wall-clock axis: tokens over time, and where the time of a token goes."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

import altair as alt

from specviz.cost.reasons import title
from specviz.events import Round
from specviz.metrics import summarise
from specviz.views.hardware_drawn import Drawn
from specviz.views.sweep_looks import scheme_looks
from specviz.views.theme import PARTS
from specviz.words import _

Runs = Mapping[str, Sequence[Round]]  # rounds of one prompt by scheme


def race_chart(runs: Runs) -> Drawn:
    """Draw tokens over seconds and, linked with it, the milliseconds of a token by part."""
    shown = alt.selection_point(fields=["scheme"], bind="legend")
    both = alt.vconcat(_race(runs, shown), _split(runs, shown), spacing=12)
    reading = race_reading(runs)
    return Drawn(
        name="compare-race",
        title=_("Tokens over time, and where the time goes"),
        chart=both.resolve_scale(color="independent"),
        reading=reading,
        alt=_("Lines of tokens over seconds, and stacked bars of time per token. {reading}").format(
            reading=reading
        ),
        columns=(
            _("Scheme"),
            _("Seconds"),
            _("Tokens"),
            *(f"{part}, ms" for part in part_names().values()),
        ),
        rows=tuple(_row(scheme, rounds) for scheme, rounds in runs.items()),
    )


def _race(runs: Runs, shown: alt.Parameter) -> alt.Chart:
    look = scheme_looks(runs)
    line: alt.Chart = (
        alt.Chart(alt.InlineData(values=_steps(runs)))
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("seconds:Q", title=_("seconds of decoding")),
            y=alt.Y("tokens:Q", title=_("tokens committed")),
            color=look.line_color,
            strokeDash=look.dash,
            opacity=alt.condition(shown, alt.value(1.0), alt.value(0.15)),
            tooltip=[
                alt.Tooltip("scheme:N", title=_("scheme")),
                alt.Tooltip("round:Q", title=_("round")),
                alt.Tooltip("tokens:Q", title=_("tokens")),
                alt.Tooltip("seconds:Q", format=".2f", title=_("seconds")),
            ],
        )
        .add_params(shown)
        .properties(height=240)
    )
    return line


def _split(runs: Runs, shown: alt.Parameter) -> alt.Chart:
    names, parts = scheme_looks(runs).names, part_names()
    scale = alt.Scale(domain=list(parts.values()), range=[PARTS[part][0] for part in parts])
    legend = alt.Legend(orient="bottom", columns=2, title=None)
    bars: alt.Chart = (
        alt.Chart(alt.InlineData(values=_parts(runs)))
        .mark_bar()
        .encode(
            x=alt.X("ms:Q", title=_("ms per output token")),
            y=alt.Y("scheme:N", title=None, sort=names),
            color=alt.Color("part:N", scale=scale, legend=legend),
            order=alt.Order("order:Q"),
            opacity=alt.condition(shown, alt.value(1.0), alt.value(0.15)),
            tooltip=[
                alt.Tooltip("scheme:N", title=_("scheme")),
                alt.Tooltip("part:N", title=_("part")),
                alt.Tooltip("ms:Q", format=".2f", title=_("ms per token")),
            ],
        )
        .properties(height=40 + 34 * len(names))
    )
    return bars


def part_names() -> dict[str, str]:
    """Return the words for the parts of a round's time, in spending order."""
    return {
        "draft": _("draft"),
        "score": _("verify pass"),
        "verify": _("accept"),
        "other": _("remainder"),
    }


def per_token(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the milliseconds of an output token by part; accepting includes the commit."""
    found = summarise(rounds)
    timing, tokens = found.timing, max(1, found.output_tokens)
    seconds = {
        "draft": timing.draft,
        "score": timing.score,
        "verify": timing.verify + timing.commit,
        "other": timing.other,
    }
    return {part: 1000 * spent / tokens for part, spent in seconds.items()}


def _steps(runs: Runs) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for scheme, rounds in runs.items():
        ends = [0.0, *accumulate(r.timing.total for r in rounds)]
        tokens = [0, *accumulate(r.acceptance_length for r in rounds)]
        found += [
            {"scheme": title(scheme), "round": n, "seconds": end, "tokens": count}
            for n, (end, count) in enumerate(zip(ends, tokens, strict=True))
        ]
    return found


def _parts(runs: Runs) -> list[dict[str, object]]:
    names = part_names()
    return [
        {"scheme": title(scheme), "part": names[part], "ms": ms, "order": order}
        for scheme, rounds in runs.items()
        for order, (part, ms) in enumerate(per_token(rounds).items())
    ]


def _row(scheme: str, rounds: Sequence[Round]) -> tuple[str, ...]:
    found = summarise(rounds)
    return (
        title(scheme),
        f"{found.timing.total:.2f}",
        str(found.output_tokens),
        *(f"{ms:.2f}" for ms in per_token(rounds).values()),
    )


def race_reading(runs: Runs) -> str:
    """Say who finished first on this prompt, and on what each spends most of its time."""
    seconds = {s: sum(r.timing.total for r in rounds) for s, rounds in runs.items()}
    first = min(seconds, key=lambda scheme: seconds[scheme])
    names, said = part_names(), []
    for scheme, rounds in runs.items():
        split = per_token(rounds)
        most = max(split, key=lambda part: split[part])
        share = split[most] / max(sum(split.values()), 1e-9)
        text = _("{scheme} {share} on {part}")
        said.append(text.format(scheme=title(scheme), share=f"{share:.0%}", part=names[most]))
    text = _("On this prompt {scheme} is done first, after {n} s. Most time goes: {list}.")
    return text.format(scheme=title(first), n=f"{seconds[first]:.2f}", list="; ".join(said))
