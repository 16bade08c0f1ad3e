"""Speedup over D and G as one surface, with the edge G (1 + D) = tile drawn on it.

G is fixed by a model's weights. Here it is turned as if the model had been trained with other KV
heads: a what-if, and labelled so.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from specviz.cost.advise import Advice
from specviz.cost.drafting import Drafting
from specviz.cost.model_shape import AttentionLayers, ModelShape
from specviz.cost.reasons import title
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import curve
from specviz.cost.tiles import TILE
from specviz.views import theme
from specviz.views.hardware_drawn import Drawn
from specviz.words import _

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LONGEST = 31
GROUPS = (1, 2, 4, 8, 16, 32, 64, 128)


def surface_chart(advice: Advice) -> Drawn | None:
    """Draw S(D, G) for the fastest drafter here; None for a model whose G cannot be turned."""
    place, choice = advice.question.place, advice.choices[0]
    groups = turnable(place.shape)
    if not groups:
        return None
    lengths = [p.draft_length for p in choice.points if p.draft_length <= LONGEST]
    grid = [_row(place, advice, group, lengths) for group in groups]
    best = [max(zip(row, lengths, strict=True)) for row in grid]
    own = place.shape.main.group_size if place.shape.main else 0
    reading = _reading(advice, groups, best, own)
    return Drawn(
        name="fit-surface",
        title=_("What if the model had another G? {scheme}").format(scheme=title(choice.scheme)),
        chart=_figure(groups, lengths, grid, [d for _speed, d in best]),
        reading=reading,
        alt=_("Heatmap of modelled speedup over draft length and G. {reading}").format(
            reading=reading
        ),
        columns=("G", *(f"D = {d}" for d in lengths)),
        rows=tuple(
            (str(group), *(f"{value:.3f}" for value in row))
            for group, row in zip(groups, grid, strict=True)
        ),
    )


def turnable(shape: ModelShape) -> tuple[int, ...]:
    """Return the G the full-attention layers could have with the same query heads."""
    main = shape.main
    if main is None or main.kind == "mla":
        return ()
    return tuple(g for g in GROUPS if main.heads % g == 0)


def with_group(shape: ModelShape, group: int) -> ModelShape:
    """Return the same model with other KV heads: the same query heads, another G."""

    def turned(part: AttentionLayers) -> AttentionLayers:
        kv = part.heads // group
        return replace(part, kv_heads=kv, kv_width=part.kv_width * kv // part.kv_heads)

    first, *others = shape.attention
    return replace(shape, attention=(turned(first), *others))


def _row(place: Deployment, advice: Advice, group: int, lengths: list[int]) -> list[float]:
    other, choice = replace(place, shape=with_group(place.shape, group)), advice.choices[0]
    drafting = Drafting(choice.scheme, other, advice.question.draft_model)
    points = curve(choice.profile, other.verify_ratio, drafting.ratio, lengths)
    return [point.speedup for point in points]


def _figure(
    groups: tuple[int, ...], lengths: list[int], grid: list[list[float]], best: list[int]
) -> "Figure":
    from plotly.graph_objects import Figure, Heatmap, Scatter

    names = [str(group) for group in groups]
    edge = [(TILE / group - 1, name) for group, name in zip(groups, names, strict=True)]
    edge = [(d, name) for d, name in edge if lengths[0] - 0.5 <= d <= lengths[-1] + 0.5]
    figure = Figure(
        [
            Heatmap(
                x=lengths,
                y=names,
                z=grid,
                colorscale="Cividis",
                colorbar={"title": {"text": _("speedup")}, "thickness": 12, "len": 0.9},
                hovertemplate="D = %{x}, G = %{y}: %{z:.2f}x<extra></extra>",
            ),
            Scatter(
                x=best,
                y=names,
                mode="markers",
                marker={
                    "symbol": "diamond",
                    "size": 10,
                    "color": theme.WHITE,
                    "line": {"color": theme.BLACK, "width": 1.5},
                },
                name=_("best D"),
                hovertemplate=_("best D = {d} at G = {g}").format(d="%{x}", g="%{y}")
                + "<extra></extra>",
            ),
            Scatter(
                x=[d for d, _name in edge],
                y=[name for _d, name in edge],
                mode="lines+markers",
                line={"color": theme.HUES[1], "width": 3, "dash": "dash"},
                marker={"symbol": "x", "size": 8},
                name=_("G (1 + D) = {tile}").format(tile=TILE),
                hovertemplate="D = %{x:.0f}, G = %{y}<extra></extra>",
            ),
        ]
    )
    figure.update_layout(
        height=340,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        legend={"orientation": "h", "y": 1, "yanchor": "bottom", "x": 0},
        xaxis={"title": {"text": _("D, drafted tokens per round")}, "fixedrange": True},
        yaxis={
            "title": {"text": _("G, query heads per KV head")},
            "type": "category",
            "fixedrange": True,
        },
    )
    return figure


def _reading(
    advice: Advice, groups: tuple[int, ...], best: list[tuple[float, int]], own: int
) -> str:
    listed = ", ".join(
        _("{d} at G = {g}").format(d=d, g=g) for g, (_speed, d) in zip(groups, best, strict=True)
    )
    text = _(
        "A what-if: the model has G = {own}. The best D would be {listed}. Where the diamonds "
        "stay left of the dashed line, acceptance decides; where they sit on it, the tile does; "
        "right of it, a second tile is worth its time."
    )
    return text.format(own=own, listed=listed)
