"""What a terminal can show: safe text, colours with a second cue, one progress line."""

import io
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from types import MappingProxyType
from typing import Literal, TextIO

Tint = Literal["blue", "red", "orange", "purple", "grey"]

# The palette of the page, as near as 256 colours come.
TINTS: Mapping[Tint, str] = MappingProxyType(
    {"blue": "38;5;32", "red": "38;5;166", "orange": "38;5;178", "purple": "38;5;97", "grey": "2"}
)


def forgive_encoding() -> None:
    """Let a terminal that cannot write a character show a stand-in for it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tinted(text: str, tint: Tint, stream: TextIO | None = None) -> str:
    """Return `text` in colour where the stream is a terminal and NO_COLOR is not set."""
    if not (stream or sys.stdout).isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{TINTS[tint]}m{text}\x1b[0m"


def visible(text: str, keep: str = "") -> str:
    """Return `text` with every character a terminal would obey written as an escape."""
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode()
        for char in text
    )


def quoted(piece: bytes) -> str:
    """Return the bytes of one token as a quoted string of visible characters."""
    return f"[{visible(piece.decode('utf-8', errors='backslashreplace'))}]"


def complain(message: str) -> None:
    """Write an error to standard error, red on a terminal."""
    sys.stderr.write(tinted(f"specviz: {visible(message, keep=chr(10))}", "red", sys.stderr) + "\n")


@dataclass(slots=True)
class Progress:
    """Progress on standard error: one line redrawn on a terminal, else a line for each stage."""

    stage: str = ""
    drawn: float = field(default=0.0)

    def __call__(self, what: str, fraction: float) -> None:
        """Show that `what` is done to `fraction` (0 to 1)."""
        stream = sys.stderr
        if not stream.isatty():
            if what != self.stage:
                stream.write(f"{what}\n")
        elif what != self.stage or fraction >= 1 or monotonic() - self.drawn > 0.1:
            stream.write(f"\r\x1b[K{what} {100 * min(1.0, max(0.0, fraction)):.0f}%")
            self.drawn = monotonic()
        self.stage = what
        stream.flush()

    def clear(self) -> None:
        """Take the line away again."""
        if self.stage and sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")
        self.stage = ""
