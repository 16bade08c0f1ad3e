"""How the rows of this G and D fill the tiles of real kernels: bars, and the staircase of one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.advise import Advice, Row
from specviz.views.hardware_drawn import HUES, QUIET, Drawn
from specviz.views.theme import PALE
from specviz.words import _, ngettext

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

LONGEST = 32  # D of the ladder


PICKED = "kernel"  # name of the selection, and of the field it selects


def tiles_chart(advice: Advice) -> Drawn:
    """Draw used and empty rows by kernel; a click on one picks it."""
    rows, length = advice.kernels, advice.optimum.draft_length
    reading = _reading(picked_row(advice, ""))
    return Drawn(
        name="fit-tiles",
        title=_("Row tiles of real kernels at D = {d}").format(d=length),
        chart=_bars(rows),
        reading=reading,
        alt=_("Bars of used and empty rows by kernel. {reading}").format(reading=reading),
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


def picked_row(advice: Advice, name: str) -> Row:
    """Return the kernel of that title, else the one the time model takes."""
    rows = advice.kernels
    used = next((row for row in rows if row.used), rows[0])
    return next((row for row in rows if row.kernel.title == name), used)


def ladder_chart(advice: Advice, name: str) -> Drawn:
    """Draw the rows one kernel computes over D as the staircase they are."""
    row = picked_row(advice, name)
    main = advice.question.place.shape.main
    head = main.head_dim if main else 128
    steps = {
        d: row.kernel.layout(advice.group_size, 1 + d, head).computed for d in range(LONGEST + 1)
    }
    free = row.free_length
    text = _(
        "{kernel}: up to D = {d} all rows fit one block. The staircase is what it computes, the "
        "dashed line what is asked for, the upright line the advised D."
    )
    reading = text.format(kernel=row.kernel.title, d=free)
    if row.kernel.note:
        reading += " " + _("Note: {note}.").format(note=_(row.kernel.note))
    return Drawn(
        name="fit-ladder",
        title=_("Rows {kernel} computes over D").format(kernel=row.kernel.title),
        chart=_ladder(steps, advice),
        reading=reading,
        alt=_("A staircase of rows computed over draft length. {reading}").format(reading=reading),
        columns=("D", _("Rows asked for"), _("Rows computed")),
        rows=tuple(
            (str(d), str(advice.group_size * (1 + d)), str(computed))
            for d, computed in steps.items()
        ),
    )


def _bars(rows: tuple[Row, ...]) -> alt.Chart:
    picked = alt.selection_point(name=PICKED, fields=[PICKED], toggle=False)
    kinds = (_("used"), _("empty"))
    data = [
        {PICKED: row.kernel.title, "kind": kind, "rows": count, "order": order}
        for row in rows
        for order, (kind, count) in enumerate(
            zip(kinds, (row.layout.rows, row.layout.computed - row.layout.rows), strict=True)
        )
    ]
    bars: alt.Chart = (
        alt.Chart(alt.InlineData(values=data), height=alt.Step(24))
        .mark_bar(cursor="pointer")
        .encode(
            x=alt.X("rows:Q", title=_("rows computed per KV head"), stack="zero"),
            y=alt.Y(f"{PICKED}:N", title=None, sort=None, axis=alt.Axis(labelLimit=120)),
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=list(kinds), range=[HUES[0], PALE]),
                legend=alt.Legend(orient="top", title=None),
            ),
            order="order:Q",
            opacity=alt.condition(picked, alt.value(1.0), alt.value(0.5)),
            tooltip=[
                alt.Tooltip(f"{PICKED}:N", title=_("kernel")),
                alt.Tooltip("kind:N", title=_("part")),
                alt.Tooltip("rows:Q", title=_("rows")),
            ],
        )
        .add_params(picked)
    )
    return bars


def _ladder(steps: Mapping[int, int], advice: Advice) -> "Layers":
    group = advice.group_size
    data = [{"D": d, "computed": n, "asked": group * (1 + d)} for d, n in steps.items()]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X("D:Q", title=_("D, drafted tokens per round"), axis=alt.Axis(tickMinStep=1)),
        tooltip=[
            alt.Tooltip("D:Q"),
            alt.Tooltip("computed:Q", title=_("computed rows")),
            alt.Tooltip("asked:Q", title=_("rows asked for")),
        ],
    )
    computed = base.mark_line(interpolate="step", color=HUES[1], strokeWidth=2.5).encode(
        y=alt.Y("computed:Q", title=_("rows per KV head"))
    )
    asked = base.mark_line(color=HUES[0], strokeDash=[3, 3]).encode(y="asked:Q")
    now = (
        alt.Chart(alt.InlineData(values=[{"D": advice.optimum.draft_length}]))
        .mark_rule(color=QUIET)
        .encode(x="D:Q")
    )
    return alt.layer(computed, asked, now).properties(height=240)


def _reading(row: Row) -> str:
    layout = row.layout
    text = ngettext(
        "{kernel} puts G (1 + D) = {rows} rows into {n} block of {tile}: {used} of the rows it "
        "computes are used. Click on a kernel to see its staircase below.",
        "{kernel} puts G (1 + D) = {rows} rows into {n} blocks of {tile}: {used} of the rows it "
        "computes are used. Click on a kernel to see its staircase below.",
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
        _(row.kernel.tree),
        row.kernel.version,
    )
