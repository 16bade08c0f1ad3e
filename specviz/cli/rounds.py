"""Rounds as lines of text: every drafted token with its fate, marked by sign and by colour."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from specviz.cli.terminal import Tint, quoted, tinted
from specviz.events import Fate, LastKind, Round

Piece = Callable[[int], bytes]

FATES: Mapping[Fate, tuple[str, Tint]] = MappingProxyType(
    {
        "accepted": ("+", "blue"),
        "rejected": ("x", "red"),
        "unchecked": (".", "grey"),
        "past_end": ("|", "grey"),
    }
)
LASTS: Mapping[LastKind, tuple[str, Tint]] = MappingProxyType(
    {
        "recovered": (">", "orange"),
        "bonus": ("*", "purple"),
        "plain": ("=", "grey"),
        "forced": ("!", "grey"),
    }
)
LEGEND = (
    "+ accepted   x rejected   . not checked   | past the end   "
    "> recovered   * bonus   = plain   ! forced"
)


def line(event: Round, piece: Piece) -> str:
    """Return one round as a line: number, kept/drafted, milliseconds, tokens with marks."""
    fates = zip(event.draft.tokens, event.fates, strict=True)
    cells = [_cell(FATES[fate], piece(token)) for token, fate in fates]
    if event.last_token is not None:
        cells.append(_cell(LASTS[event.last_kind], piece(event.last_token)))
    kept = f"{len(event.path)}/{len(event.draft)}"
    return f"{event.index:>4} {kept:>7} {1000 * event.timing.total:8.1f} ms  {' '.join(cells)}"


def _cell(mark: tuple[str, Tint], piece: bytes) -> str:
    sign, tint = mark
    return tinted(f"{sign}{quoted(piece)}", tint)
