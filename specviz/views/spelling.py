"""Bytes of tokens to text: a character split over several tokens is written once, whole."""

from collections.abc import Mapping, Sequence

from specviz.traces.schema import HIDDEN
from specviz.views.html import visible

# How one token is written: text; REST for a token inside a character that an earlier one opened;
# [text] for bytes that are no text, as escapes.
Text = str | int | list[str]
REST = 0


def spell(pieces: Sequence[bytes], before: bytes = b"") -> tuple[list[Text], dict[int, bytes]]:
    """Write tokens as text, each character in the cell of the token that opens it.

    `before` are bytes of a character opened by earlier tokens; the first cell then shows all of it.
    Also returns the bytes left open after each token that ends inside a character.
    """
    texts: list[Text] = []
    opened: dict[int, bytes] = {}
    held, group = before, list[int]()
    for at, piece in enumerate(pieces):
        texts.append(REST)
        group.append(at)
        text = _decode(held + piece)
        if text is None:  # what was held is not the start of this: write it as bytes
            for member in group[:-1]:
                texts[member] = escaped(pieces[member])
            held, group = b"", [at]
            text = _decode(piece)
        if text is None:
            texts[at] = escaped(piece)
        elif isinstance(text, bytes):
            held = opened[at] = text
            continue
        else:
            texts[group[0]] = text
        held, group = b"", []
    for member in group:
        texts[member] = escaped(pieces[member])
    return texts, opened


def _decode(data: bytes) -> str | bytes | None:
    """Return the text, the same bytes if a character is still open, None if they are no text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        return data if error.reason == "unexpected end of data" else None


def escaped(piece: bytes) -> list[str]:
    """Return a token that is not text on its own, with escapes for the bytes that are not."""
    return [piece.decode("utf-8", "backslashreplace")]


def piece_of(pieces: Mapping[int, bytes], token: int) -> bytes:
    """Return the bytes of a token; `<id>` if the trace does not know it, never invented text."""
    if token == HIDDEN:
        return "▯".encode()
    known = pieces.get(token)
    return f"<{token}>".encode() if known is None else known


def quote(pieces: Mapping[int, bytes], *tokens: int) -> str:
    """Return tokens as one quoted string with its line ends and tabs drawn."""
    data = b"".join(piece_of(pieces, token) for token in tokens)
    text = data.decode("utf-8", "backslashreplace")
    return f"'{visible(text, spaces=False)}'"
