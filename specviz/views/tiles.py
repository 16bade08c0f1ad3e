"""The G x (1 + D) rows of one round, drawn into the row tiles of the attention kernel."""

from dataclasses import dataclass

from specviz.cost.tiles import TILE, Tiling, free_length, packed_rows
from specviz.events import Attention, Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.html import Markup, join, tag
from specviz.views.spelling import quote
from specviz.words import _, ngettext, retold

TILES_DRAWN = 4

STYLE = """
.sv-tile{display:grid;grid-template-columns:repeat(16,minmax(0,1fr));gap:2px;max-width:30rem;
margin:.2rem 0 .8rem}
.sv-tile span{height:1.15rem;border:1px solid var(--sv-rule);border-radius:3px;
font-size:.62rem;line-height:1rem;text-align:center;overflow:hidden;
font-variant-numeric:tabular-nums}
.sv-tile .sv-root-row{background:var(--sv-rule);color:var(--sv-ink)}
.sv-tile .sv-free{background:var(--sv-panel)}
.sv-tiles .sv-tile span::after{content:none}
.sv-tiles p{margin:0;color:var(--sv-quiet);font-size:.8rem}
"""


@dataclass(frozen=True, slots=True)
class TilesView:
    """The tile panel: a picture and what it says."""

    picture: Markup  # HTML: Streamlit takes SVG out of what it shows
    lines: tuple[str, ...]
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def page(self) -> Markup:
        """The picture with the style sheet it needs."""
        style = tag("style", Markup(theme.css_variables() + STYLE))
        return join(style, self.picture)


def tiles_view(trace: Trace, index: int, tile: int = TILE) -> TilesView:
    """Lay the rows of round `index` into the tiles that ran, else into modelled ones of `tile`."""
    event, group = trace.rounds[index], trace.target.group_size
    tiling = Tiling(packed_rows(group, len(event.draft)), event.attention.block_m or tile)
    source = _source(event.attention, tiling.rows)
    lines = (source, *_lines(tiling, group, len(event.draft)), *_eager(event.attention))
    names = _row_names(trace, event)
    codes = _row_codes(event)
    rows = tuple(
        (name, theme.label(_KINDS[code]) if code else _("committed before"), _span(group, at))
        for at, (name, code) in enumerate(zip(names, codes, strict=True))
    )
    return TilesView(
        _picture(tiling, group, names, codes, lines[1]),
        lines,
        " ".join(lines),
        (_("Token row"), _("Fate"), _("Kernel rows")),
        rows,
    )


_KINDS: dict[str, theme.Kind] = {style.code: kind for kind, style in theme.STYLES.items()}


def _span(group: int, at: int) -> str:
    first, last = at * group, (at + 1) * group - 1
    return str(first) if first == last else f"{first}-{last}"


def _row_names(trace: Trace, event: Round) -> list[str]:
    """Name each scored row by the token it reads: the root, then the drafts."""
    before = trace.tokens[event.start - 1 : event.start]
    return [
        quote(trace.pieces, *before) if before else "?",
        *(quote(trace.pieces, token) for token in event.draft.tokens),
    ]


def _row_codes(event: Round) -> list[str]:
    return ["", *(theme.STYLES[fate].code for fate in event.fates)]


def _lines(tiling: Tiling, group: int, nodes: int) -> tuple[str, ...]:
    rows = _("G · (1 + D) = {g} · (1 + {d}) = {rows} rows per KV head").format(
        g=group, d=nodes, rows=tiling.rows
    )
    filled = ngettext(
        "{n} tile of {tile} rows: {empty} rows stay empty, {share} are used.",
        "{n} tiles of {tile} rows: {empty} rows stay empty, {share} are used.",
        tiling.tiles,
    ).format(
        n=tiling.tiles, tile=tiling.tile, empty=tiling.empty, share=f"{tiling.utilisation:.0%}"
    )
    longest = free_length(group, tiling.tile)
    if tiling.tiles > 1:
        verdict = _("The rows overflow one tile: drafts up to D* = {d} would have fitted.")
    else:
        verdict = _("Drafts up to D* = {d} fit the same tile: the kernel computes its rows anyway.")
    free = _(
        "Only rows of its tiles are free; other work grows with the draft. The time it took is in "
        "the Speed panel."
    )
    return rows, filled, verdict.format(d=longest), free


def _eager(ran: Attention) -> tuple[str, ...]:
    """Say why a GPU ran the pass op by op, if it did."""
    if not ran.eager:
        return ()
    text = _("The pass ran op by op, not as a CUDA graph: {why}.")
    return (text.format(why=retold(ran.eager)),)


def _source(ran: Attention, rows: int) -> str:
    """Say whether the picture is of what ran or of a model, in the first place."""
    if ran.block_m is not None:
        text = _("What ran: the backend {name} scored this round in tiles of {tile} rows.")
        return text.format(name=ran.backend, tile=ran.block_m)
    modelled = _("The picture is modelled: a GPU kernel that packs the heads of a group.")
    if ran.backend == "sdpa":
        ran_here = _(
            "What ran: PyTorch SDPA over {rows} packed rows per KV head. It has no row tile, so no "
            "row was computed for nothing."
        ).format(rows=rows)
    elif ran.backend:
        ran_here = _("What ran: the backend {name}, which does not say how it tiles rows.")
        ran_here = ran_here.format(name=ran.backend)
    else:
        ran_here = _("Which kernel scored this round was not noted.")
    return f"{ran_here} {modelled}"


def _picture(tiling: Tiling, group: int, names: list[str], codes: list[str], title: str) -> Markup:
    parts: list[Markup] = []
    for number in range(min(tiling.tiles, TILES_DRAWN)):
        caption = _("Tile {n} of {all}").format(n=number + 1, all=tiling.tiles)
        cells = _cells(tiling, number, group, names, codes)
        parts += [tag("p", caption), tag("div", *cells, class_="sv-tile")]
    if tiling.tiles > TILES_DRAWN:
        more = _("and {n} more tiles").format(n=tiling.tiles - TILES_DRAWN)
        parts.append(tag("p", more))
    return tag("div", *parts, class_="sv-root sv-tiles", role="img", aria_label=title)


def _cells(
    tiling: Tiling, number: int, group: int, names: list[str], codes: list[str]
) -> list[Markup]:
    """Draw one tile: one cell per kernel row, coloured by the fate of the token row it serves."""
    cells = []
    for row in range(number * tiling.tile, (number + 1) * tiling.tile):
        if row >= tiling.rows:
            cells.append(tag("span", class_="sv-free", title=_("empty row")))
            continue
        token, head = divmod(row, group)
        said = _("row {row}: token {token} {name}, head {head} of {group}").format(
            row=row, token=token, name=names[token], head=head + 1, group=group
        )
        kind = f"sv-{codes[token]}" if codes[token] else "sv-root-row"
        cells.append(tag("span", str(token), class_=kind, title=said))
    return cells
