"""The G x (1 + D) rows of one round, drawn into the row tiles of the attention kernel."""

from dataclasses import dataclass

from specviz.cost.tiles import TILE, Tiling, free_length, packed_rows
from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.views import theme
from specviz.views.html import Markup, join, tag
from specviz.views.spelling import quote
from specviz.words import _, ngettext

COLUMNS = 16  # cells per line of a tile
CELL, GAP = 18, 2  # pixels
TILES_DRAWN = 4

STYLE = """
.sv-tiles svg{display:block;width:100%;height:auto;max-width:46rem}
.sv-tiles text{font:11px var(--st-font,system-ui,sans-serif);fill:var(--sv-quiet)}
.sv-tiles .sv-row-name{fill:var(--sv-ink);font-size:10px;text-anchor:middle}
.sv-tiles rect{stroke:var(--sv-rule)}
.sv-tiles .sv-cell-root{fill:var(--sv-rule)}
.sv-tiles .sv-free{fill:var(--sv-panel)}
"""


@dataclass(frozen=True, slots=True)
class TilesView:
    """The tile panel: a picture and what it says."""

    picture: Markup
    lines: tuple[str, ...]
    alt: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def page(self) -> Markup:
        """The picture with the style sheet it needs."""
        fills = "".join(
            f".sv-tiles .sv-cell-{code}{{fill:var(--sv-tint-{code});stroke:var(--sv-edge-{code})}}"
            for code in _KINDS
        )
        style = tag("style", Markup(theme.css_variables() + STYLE + fills))
        return join(style, tag("div", self.picture, class_="sv-root sv-tiles"))


def tiles_view(trace: Trace, index: int, tile: int = TILE) -> TilesView:
    """Lay the rows of round `index` into tiles of `tile` rows."""
    event, group = trace.rounds[index], trace.target.group_size
    tiling = Tiling(packed_rows(group, len(event.draft)), tile)
    lines = _lines(tiling, group, len(event.draft))
    names = _row_names(trace, event)
    codes = _row_codes(event)
    rows = tuple(
        (name, theme.label(_KINDS[code]) if code else _("committed before"), _span(group, at))
        for at, (name, code) in enumerate(zip(names, codes, strict=True))
    )
    return TilesView(
        _picture(tiling, group, names, codes, lines[0]),
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
        verdict = _("Drafts up to D* = {d} fit the same tile: this kernel does them for free.")
    source = _(
        "A picture of a GPU kernel that packs the heads of a group; this run's device may use "
        "other tiles."
    )
    return rows, filled, verdict.format(d=longest), source


def _picture(tiling: Tiling, group: int, names: list[str], codes: list[str], title: str) -> Markup:
    parts: list[Markup] = [tag("title", title)]
    y = 0.0
    for number in range(min(tiling.tiles, TILES_DRAWN)):
        caption = _("Tile {n} of {all}").format(n=number + 1, all=tiling.tiles)
        parts.append(tag("text", caption, x=0, y=y + 11))
        parts += _tile(tiling, number, group, names, codes, y + 18)
        y += 18 + _lines_of(tiling.tile) * (CELL + GAP) + 12
    if tiling.tiles > TILES_DRAWN:
        more = _("and {n} more tiles").format(n=tiling.tiles - TILES_DRAWN)
        parts.append(tag("text", more, x=0, y=y + 11))
        y += 18
    width = COLUMNS * (CELL + GAP) + GAP
    return tag("svg", *parts, viewBox=f"0 0 {width} {y:g}", role="img", aria_label=title)


def _lines_of(tile: int) -> int:
    return -(-tile // COLUMNS)


def _tile(
    tiling: Tiling, number: int, group: int, names: list[str], codes: list[str], top: float
) -> list[Markup]:
    """Draw one tile: one cell per kernel row, coloured by the fate of the token row it serves."""
    cells = []
    for at in range(tiling.tile):
        row = number * tiling.tile + at
        x, y = at % COLUMNS * (CELL + GAP), top + at // COLUMNS * (CELL + GAP)
        if row >= tiling.rows:
            cells.append(_cell(x, y, "sv-free", _("empty row")))
            continue
        token, head = divmod(row, group)
        code = codes[token]
        said = _("row {row}: token {token} {name}, head {head} of {group}").format(
            row=row, token=token, name=names[token], head=head + 1, group=group
        )
        cells.append(_cell(x, y, f"sv-cell-{code or 'root'}", said, str(token)))
    return cells


def _cell(x: float, y: float, kind: str, said: str, label: str = "") -> Markup:
    box = tag("rect", tag("title", said), x=x, y=y, width=CELL, height=CELL, rx=3, class_=kind)
    if not label:
        return box
    middle = {"x": x + CELL / 2, "y": y + CELL / 2 + 3.5}
    return join(box, tag("text", label, class_="sv-row-name", **middle))
