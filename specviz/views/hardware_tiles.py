"""How the rows of this G and D fill the tiles of real kernels: bars, and the ladder behind them."""

from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.advise import Advice, Row
from specviz.views.hardware_drawn import HUES, QUIET, Drawn
from specviz.words import _, ngettext

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

LONGEST = 32  # D of the ladder


def tiles_chart(advice: Advice) -> Drawn:
    """Draw used and empty rows by kernel; a click on a kernel draws its ladder over D."""
    rows, length = advice.kernels, advice.optimum.draft_length
    first = next((row for row in rows if row.used), rows[0])
    picked = alt.selection_point(
        name="kernel", fields=["kernel"], value=[{"kernel": first.kernel.title}], toggle=False
    )
    chart = alt.vconcat(_bars(rows, picked), _ladder(advice, picked), spacing=24)
    reading = _reading(first, advice)
    return Drawn(
        name="fit-tiles",
        title=_("Row tiles of real kernels at D = {d}").format(d=length),
        chart=chart,
        reading=reading,
        alt=_("Bars of used and empty kernel rows, and a staircase over D. {reading}").format(
            reading=reading
        ),
        columns=(
            _("Kernel"),
            _("Rows asked for"),
            _("Blocks x tile"),
            _("Used"),
            _("Relative time"),
            _("D of one block"),
            _("Tree mask"),
            _("Source"),
        ),
        rows=tuple(_cells(row) for row in rows),
    )


def _bars(rows: tuple[Row, ...], picked: alt.Parameter) -> "Layers":
    data = [
        {"kernel": row.kernel.title, "kind": kind, "rows": count, "order": order}
        for row in rows
        for order, (kind, count) in enumerate(
            (
                (_("used"), row.layout.rows),
                (_("empty"), row.layout.computed - row.layout.rows),
            )
        )
    ]
    y = alt.Y("kernel:N", title=None, sort=None, axis=alt.Axis(labelLimit=130))
    bars = (
        alt.Chart(alt.InlineData(values=data))
        .mark_bar(cursor="pointer")
        .encode(
            x=alt.X("rows:Q", title=_("rows computed per KV head"), stack="zero"),
            y=y,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=[_("used"), _("empty")], range=[HUES[0], "#c3c7ce"]),
                legend=alt.Legend(orient="top", title=None),
            ),
            order="order:Q",
            opacity=alt.condition(picked, alt.value(1.0), alt.value(0.55)),
            tooltip=["kernel:N", "kind:N", "rows:Q"],
        )
        .add_params(picked)
    )
    return alt.layer(bars).properties(height=alt.Step(24))


def _ladder(advice: Advice, picked: alt.Parameter) -> "Layers":
    main = advice.question.place.shape.main
    head = main.head_dim if main else 128
    data = [
        {
            "kernel": row.kernel.title,
            "D": d,
            "computed": row.kernel.layout(advice.group_size, 1 + d, head).computed,
            "asked": advice.group_size * (1 + d),
        }
        for row in advice.kernels
        for d in range(LONGEST + 1)
    ]
    base = alt.Chart(alt.InlineData(values=data)).transform_filter(picked)
    x = alt.X("D:Q", title=_("D, drafted tokens per round"), axis=alt.Axis(tickMinStep=1))
    tips = ["kernel:N", "D:Q", "computed:Q", "asked:Q"]
    steps = base.mark_line(interpolate="step-after", color=HUES[1], strokeWidth=2.5).encode(
        x=x, y=alt.Y("computed:Q", title=_("rows computed")), tooltip=tips
    )
    asked = base.mark_line(color=HUES[0], strokeDash=[3, 3]).encode(x=x, y="asked:Q", tooltip=tips)
    now = (
        alt.Chart(alt.InlineData(values=[{"D": advice.optimum.draft_length}]))
        .mark_rule(color=QUIET)
        .encode(x="D:Q")
    )
    name = (
        base.transform_filter("datum.D == 0")
        .mark_text(align="left", baseline="top", dx=6, dy=2, color=QUIET)
        .encode(x=alt.value(0), y=alt.value(0), text="kernel:N")
    )
    return alt.layer(steps, asked, now, name).properties(height=180)


def _reading(row: Row, advice: Advice) -> str:
    layout = row.layout
    text = ngettext(
        "{kernel} puts G (1 + D) = {rows} rows into {n} block of {tile}: {used} of the rows it "
        "computes are used. The staircase below is what it computes, the dashed line what is "
        "asked for.",
        "{kernel} puts G (1 + D) = {rows} rows into {n} blocks of {tile}: {used} of the rows it "
        "computes are used. The staircase below is what it computes, the dashed line what is "
        "asked for.",
        layout.blocks,
    )
    return text.format(
        kernel=row.kernel.title,
        rows=layout.rows,
        n=layout.blocks,
        tile=layout.tile,
        used=f"{layout.utilisation:.0%}",
    )


def _cells(row: Row) -> tuple[str, ...]:
    layout = row.layout
    return (
        row.kernel.title + (" *" if row.used else ""),
        str(layout.rows),
        f"{layout.blocks} x {layout.tile}",
        f"{layout.utilisation:.0%}",
        "-" if layout.relative_time is None else f"{layout.relative_time:.2f}",
        str(row.free_length),
        row.kernel.tree,
        row.kernel.version,
    )
