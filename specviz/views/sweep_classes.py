"""Every scheme at its best D by prompt class: where drafting pays and where it does not."""

from collections.abc import Sequence

import altair as alt

from specviz.cost.reasons import title
from specviz.metrics.sweep import Point
from specviz.views.hardware_drawn import QUIET, Drawn
from specviz.views.prompts import class_name
from specviz.views.sweep_lines import columns, row
from specviz.views.sweep_looks import scheme_looks
from specviz.words import _


def class_chart(points: Sequence[Point]) -> Drawn:
    """Draw the best measured point of each scheme and class with its interval."""
    best = best_by_class(points)
    look = scheme_looks(p.cell.scheme for p in best)
    names = look.names
    classes = list(dict.fromkeys(class_name(p.prompt_class) for p in best))
    data = [
        {
            "scheme": title(p.cell.scheme),
            "prompts": class_name(p.prompt_class),
            "D": p.cell.draft_length,
            "speedup": p.speedup,
            "low": p.low,
            "high": p.high,
        }
        for p in best
    ]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        y=alt.Y("prompts:N", title=_("prompt class"), sort=classes),
        yOffset=alt.YOffset("scheme:N", sort=names),
        color=look.color,
    )
    x = alt.X("speedup:Q", title=_("measured speedup"), scale=alt.Scale(zero=False, padding=8))
    dots = base.mark_point(filled=True, size=80).encode(
        x=x,
        shape=look.shape,
        tooltip=[
            alt.Tooltip("scheme:N", title=_("scheme")),
            alt.Tooltip("prompts:N", title=_("prompts")),
            alt.Tooltip("D:Q"),
            alt.Tooltip("speedup:Q", format=".2f", title=_("speedup")),
        ],
    )
    spread = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q")
    one = alt.InlineData(values=[{"one": 1.0}])
    level = alt.Chart(one).mark_rule(color=QUIET, strokeDash=[4, 4]).encode(x="one:Q")
    reading = _reading(best)
    return Drawn(
        name="sweep-classes",
        title=_("Best D by prompt class"),
        chart=alt.layer(level, spread, dots).properties(
            height=110 + 22 * len(names) * len(classes)
        ),
        reading=reading,
        alt=_("Best speedup of each scheme by prompt class. {reading}").format(reading=reading),
        columns=columns(),
        rows=tuple(row(p) for p in best),
    )


def best_by_class(points: Sequence[Point]) -> list[Point]:
    """Return the fastest point of each class and scheme."""
    best: dict[tuple[str, str], Point] = {}
    for point in points:
        key = point.prompt_class, point.cell.scheme
        if key not in best or point.speedup > best[key].speedup:
            best[key] = point
    return [best[key] for key in sorted(best)]


def _reading(best: Sequence[Point]) -> str:
    said = []
    for name in dict.fromkeys(p.prompt_class for p in best):
        top = max((p for p in best if p.prompt_class == name), key=lambda p: p.speedup)
        text = _("{prompts}: {scheme} at D = {d}, {x}x")
        said.append(
            text.format(
                prompts=class_name(name),
                scheme=title(top.cell.scheme),
                d=top.cell.draft_length,
                x=f"{top.speedup:.2f}",
            )
        )
    tops = {p.cell.draft_length for p in best if p.speedup > 1}
    moves = _("The best D moves with the prompt.") if len(tops) > 1 else ""
    return " ".join((_("Fastest on {list}.").format(list="; ".join(said)), moves)).strip()
