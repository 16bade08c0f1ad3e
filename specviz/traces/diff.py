"""Two runs side by side: locked at the same place of the text, their first divergence found.

Places are bytes of the output, so runs of models with different tokens can be compared too.
"""

from bisect import bisect_right
from dataclasses import dataclass, fields, is_dataclass
from itertools import accumulate

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor, round_of

Node = int | str


@dataclass(frozen=True, slots=True)
class Setting:
    """What one run says of a setting and what the other does."""

    name: str
    left: str | None
    right: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One run at the place where the texts part; `token` is None where it has ended."""

    index: int  # output token
    token: int | None
    text: str
    round: int | None
    node: Node | None  # of the draft, or "last" for the target's own token
    margin: float | None  # log-probability of its own token less that of the other run's, nats


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first byte of the output at which two runs differ."""

    byte: int
    left: Side
    right: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Two runs, where they part, and which settings differ."""

    left: Trace
    right: Trace
    divergence: Divergence | None
    settings: tuple[Setting, ...]
    stops: tuple[int, ...]  # output bytes after each round of either run, from 0

    @property
    def same_prompt(self) -> bool:
        return self.left.prompt == self.right.prompt

    def at(self, byte: int) -> tuple[Cursor, Cursor]:
        """Return the cursors behind the rounds that have written no more than `byte` bytes."""
        return _cursor(self.left, byte), _cursor(self.right, byte)

    def stop_of(self, byte: int) -> int:
        """Return the first stop by which both runs have written that byte, the last if none."""
        return next((stop for stop in self.stops if self._covers(stop, byte)), self.stops[-1])

    def _covers(self, stop: int, byte: int) -> bool:
        runs = zip((self.left, self.right), self.at(stop), strict=True)
        written = (_ends(trace)[cursor.rounds] for trace, cursor in runs)
        return all(end > byte for end in written)


def compare(left: Trace, right: Trace) -> Diff:
    """Compare two runs by the bytes of their output."""
    stops = sorted({*_ends(left), *_ends(right)})
    return Diff(
        left=left,
        right=right,
        divergence=_divergence(left, right),
        settings=settings(left, right),
        stops=tuple(stops),
    )


def settings(left: Trace, right: Trace) -> tuple[Setting, ...]:
    """Return every setting, model fact and version in which two runs differ, by name."""
    ours, theirs = _flat(left), _flat(right)
    return tuple(
        Setting(name, ours.get(name), theirs.get(name))
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
    )


def _flat(trace: Trace) -> dict[str, str]:
    """Every setting of a trace under its name, dots between the levels."""
    found: dict[str, str] = {}

    def walk(name: str, value: object) -> None:
        if is_dataclass(value) and not isinstance(value, type):
            for field in fields(value):
                walk(f"{name}.{field.name}" if name else field.name, getattr(value, field.name))
        else:
            found[name] = str(value)

    for part in (trace.params, trace.config, trace.environment):
        walk("", part)
    walk("target", trace.target)
    walk("chat", trace.chat)
    return found


def _ends(trace: Trace) -> list[int]:
    """Bytes of output after each number of rounds, 0 first."""
    sizes = (sum(len(trace.piece(token)) for token in r.committed) for r in trace.rounds)
    return [0, *accumulate(sizes)]


def _cursor(trace: Trace, byte: int) -> Cursor:
    return Cursor(bisect_right(_ends(trace), byte) - 1)


def _divergence(left: Trace, right: Trace) -> Divergence | None:
    a, b = (b"".join(map(trace.piece, trace.output)) for trace in (left, right))
    if a == b:
        return None
    byte = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    at = min(len(a), len(b)) if byte is None else byte
    i, j = _index(left, at), _index(right, at)
    x, y = _token(left, i), _token(right, j)
    ours = None if x is None else left.piece(x)
    theirs = None if y is None else right.piece(y)
    return Divergence(byte=at, left=_side(left, i, x, theirs), right=_side(right, j, y, ours))


def _index(trace: Trace, byte: int) -> int:
    """Output token that holds a byte; behind the last token: their number."""
    ends = list(accumulate(len(trace.piece(token)) for token in trace.output))
    return bisect_right(ends, byte)


def _token(trace: Trace, index: int) -> int | None:
    return trace.output[index] if index < len(trace.output) else None


def _side(trace: Trace, index: int, own: int | None, other: bytes | None) -> Side:
    if own is None:
        return Side(index=index, token=None, text="", round=None, node=None, margin=None)
    event = trace.rounds[round_of(trace.rounds, index)]
    depth = index - (event.start - len(trace.prompt))
    node: Node = event.path[depth] if depth < len(event.path) else "last"
    return Side(
        index=index,
        token=own,
        text=trace.piece(own).decode("utf-8", "backslashreplace"),
        round=event.index,
        node=node,
        margin=None if other is None else _margin(trace, event, depth, (trace.piece(own), other)),
    )


def _margin(trace: Trace, event: Round, depth: int, pair: tuple[bytes, bytes]) -> float | None:
    """By how much this run's target preferred its own token; None if that was not recorded.

    Tokens are looked up by their bytes: ids mean nothing between two tokenizers.
    """
    row = 0 if depth == 0 else event.path[depth - 1] + 1
    if row >= len(event.rows):
        return None
    known = {trace.piece(c.token): c.logprob for c in event.rows[row].top}
    own, other = (known.get(piece) for piece in pair)
    return None if own is None or other is None else own - other
