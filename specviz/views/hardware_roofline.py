"""The three edges of attention, kept apart, and the rows every part of a pass has free."""

from typing import TYPE_CHECKING

import altair as alt

from specviz.cost.advise import Advice
from specviz.cost.reasons import edge_sentence, part_name, rows_text
from specviz.cost.roofline import PARTS, Cost
from specviz.views.hardware_drawn import HUES, QUIET, Drawn
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Layers

POINTS = 64  # largest 1 + D drawn


def roofline_chart(advice: Advice) -> Drawn:
    """Draw the seconds of attention by resource over 1 + D, with the edges as lines."""
    place, group = advice.question.place, advice.group_size
    costs = {q: place.forward(q).attention for q in range(1, POINTS + 1)}
    names = {
        "memory": _("KV stream"),
        "matmul": _("matmul"),
        "exp": _("softmax"),
    }
    known = ["memory", "matmul", *(["exp"] if place.gpu.exps else [])]
    data = [
        {"rows": group * q, "ms": 1000 * getattr(cost, kind), "kind": names[kind]}
        for q, cost in costs.items()
        for kind in known
    ]
    total = [{"rows": group * q, "ms": 1000 * cost.seconds} for q, cost in costs.items()]
    reading = edge_sentence(advice)
    return Drawn(
        name="fit-roofline",
        title=_("Attention over rows per KV head"),
        chart=_layers(advice, data, total, [names[kind] for kind in known]),
        reading=reading,
        alt=_("Milliseconds of attention over rows, by resource. {reading}").format(
            reading=reading
        ),
        columns=(
            "1 + D",
            _("Rows"),
            _("KV stream, ms"),
            _("Matmul, ms"),
            _("Softmax, ms"),
            _("Limit"),
        ),
        rows=tuple(_cells(q, group, cost) for q, cost in costs.items()),
    )


def _cells(tokens: int, group: int, cost: Cost) -> tuple[str, ...]:
    limit = {"memory": _("KV stream"), "matmul": _("matmul"), "exp": _("softmax")}[cost.limit]
    times = (f"{1000 * t:.4f}" for t in (cost.memory, cost.matmul, cost.exp))
    return (str(tokens), str(group * tokens), *times, limit)


def _layers(
    advice: Advice,
    data: list[dict[str, object]],
    total: list[dict[str, float]],
    names: list[str],
) -> "Layers":
    x = alt.X("rows:Q", title=_("rows per KV head, G (1 + D)"))
    y = alt.Y("ms:Q", title=_("ms of attention per pass (modelled)"))
    lines = (
        alt.Chart(alt.InlineData(values=data))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "kind:N",
                scale=alt.Scale(domain=names, range=[HUES[0], HUES[1], HUES[4]]),
                legend=alt.Legend(orient="bottom", title=None),
            ),
            strokeDash=alt.StrokeDash(
                "kind:N", scale=alt.Scale(domain=names, range=[[6, 3], [2, 2], [8, 3, 2, 3]])
            ),
            tooltip=[
                alt.Tooltip("kind:N", title=_("part")),
                alt.Tooltip("rows:Q", title=_("rows")),
                alt.Tooltip("ms:Q", format=".4f", title="ms"),
            ],
        )
    )
    slowest = (
        alt.Chart(alt.InlineData(values=total))
        .mark_line(strokeWidth=4, opacity=0.35, color=QUIET)
        .encode(x=x, y=y)
    )
    return alt.layer(slowest, lines, _edges(advice)).properties(height=380)


def _edges(advice: Advice) -> "Layers":
    """Vertical lines; each label stands above the plot on a line of its own."""
    edges = advice.edges
    widest = advice.group_size * POINTS
    known: list[tuple[str, float | None]] = [
        (_("tile"), edges.tile),
        (_("matmul ridge"), edges.matmul),
        (_("softmax ridge"), edges.exp),
        (_("advised D"), advice.group_size * (1 + advice.optimum.draft_length)),
    ]
    data = [
        {"rows": rows, "text": f"{name} {rows:.0f}", "y": -4 - 14 * i}
        for i, (name, rows) in enumerate(known)
        if rows is not None and rows <= widest
    ]
    base = alt.Chart(alt.InlineData(values=data))
    rules = base.mark_rule(color=QUIET, strokeDash=[4, 3]).encode(x="rows:Q")
    labels = [
        alt.Chart(alt.InlineData(values=[record]))
        .mark_text(align="right" if float(str(record["rows"])) > widest * 0.6 else "left",
                   dx=-4 if float(str(record["rows"])) > widest * 0.6 else 4, color=QUIET)
        .encode(x="rows:Q", y=alt.value(record["y"]), text="text:N")
        for record in data
    ]  # fmt: skip
    return alt.layer(rules, *labels)


def free_rows_chart(advice: Advice) -> Drawn:
    """Draw how many rows per sequence each part takes for free; the smallest binds."""
    free = {part: rows for part, rows in advice.free_rows.items() if rows is not None}
    data = [
        {
            "part": part_name(part),
            "rows": rows,
            "label": _("{n}, {share} of time").format(
                n=rows_text(rows), share=f"{advice.plain.share(part):.0%}"
            ),
        }
        for part, rows in free.items()
    ]
    wanted = 1 + advice.optimum.draft_length
    y = alt.Y("part:N", title=None, sort=None)
    base = alt.Chart(alt.InlineData(values=data)).encode(
        x=alt.X(
            "rows:Q",
            scale=alt.Scale(type="log", domainMin=0.8, domainMax=4000),
            title=_("rows per sequence, 1 + D, that cost nothing (log)"),
            axis=alt.Axis(values=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], labelOverlap=True),
        ),
        y=y,
        tooltip=[
            alt.Tooltip("part:N", title=_("part")),
            alt.Tooltip("rows:Q", title=_("rows")),
            alt.Tooltip("label:N", title=_("time")),
        ],
    )
    bars = base.mark_bar(color=HUES[0]).encode(x2=alt.datum(0.8))
    text = base.mark_text(align="left", dx=5, color=QUIET).encode(text="label:N")
    rule = (
        alt.Chart(alt.InlineData(values=[{"rows": wanted}]))
        .mark_rule(color=HUES[1], strokeWidth=2, strokeDash=[5, 3])
        .encode(x="rows:Q")
    )
    reading = _free_reading(advice)
    limits = {"memory": _("memory"), "matmul": _("matmul"), "exp": _("softmax")}
    return Drawn(
        name="fit-free-rows",
        title=_("Rows that cost nothing"),
        chart=alt.layer(bars, text, rule).properties(height=alt.Step(34)),
        reading=reading,
        alt=_("Bars of free rows by part of a pass. {reading}").format(reading=reading),
        columns=(_("Part"), _("Free rows, 1 + D"), _("Share of a plain pass"), _("Limit")),
        rows=tuple(
            (
                part_name(part),
                rows_text(advice.free_rows[part]),
                f"{advice.plain.share(part):.1%}",
                limits[advice.plain.part(part).limit] if advice.free_rows[part] else "-",
            )
            for part in PARTS
        ),
    )


def _free_reading(advice: Advice) -> str:
    free = {part: rows for part, rows in advice.free_rows.items() if rows is not None}
    smallest = min(free, key=lambda part: free[part])
    text = _(
        "The advised D = {d} scores {q} rows (dashed). The smallest budget is {part}: {rows}, at "
        "{share} of a plain pass."
    )
    return text.format(
        d=advice.optimum.draft_length,
        q=1 + advice.optimum.draft_length,
        part=part_name(smallest),
        rows=rows_text(free[smallest]),
        share=f"{advice.plain.share(smallest):.0%}",
    )
