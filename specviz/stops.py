"""Where output ends: stop ids, stop strings and the token budget, cut in this one place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specviz.events import Finish
from specviz.words import later


@dataclass(frozen=True, slots=True)
class Cut:
    """How many of the new tokens stay, and why output ends there; None if it goes on."""

    keep: int
    finish: Finish | None


@dataclass(frozen=True, slots=True)
class StopRules:
    """Ends of one request. `piece` gives the exact bytes of a token."""

    stop_ids: frozenset[int]
    strings: tuple[bytes, ...]
    max_tokens: int
    room: int  # output tokens the model's context leaves
    piece: Callable[[int], bytes]

    @property
    def limit(self) -> int:
        return min(self.max_tokens, self.room)

    def cut(self, output: Sequence[int], new: Sequence[int]) -> Cut:
        """Find the first end in `new`, which follows `output`; the ending token is kept.

        A stop string may begin in earlier tokens and end inside a later one: bytes decide.
        """
        text = b"".join(map(self.piece, output)) if self.strings else b""
        for i, token in enumerate(new):
            if token in self.stop_ids:
                shown = b"".join(map(self.piece, (*output, *new[:i])))
                return Cut(
                    i + 1,
                    Finish("stop_token", later("token {token}").format(token=token), len(shown)),
                )
            if self.strings:
                grown = text + self.piece(token)
                if (finish := self._string_end(grown, len(text))) is not None:
                    return Cut(i + 1, finish)
                text = grown
            if len(output) + i + 1 >= self.limit:
                return Cut(i + 1, self._out_of_budget())
        return Cut(len(new), None)

    def _string_end(self, text: bytes, known: int) -> Finish | None:
        """The stop string that ends in text[known:] and begins first, if any."""
        found = [
            (at, stop)
            for stop in self.strings
            if (at := text.find(stop, max(0, known - len(stop) + 1))) >= 0
        ]
        if not found:
            return None
        at, stop = min(found)
        return Finish("stop_string", stop.decode(), text_bytes=at)

    def _out_of_budget(self) -> Finish:
        if self.max_tokens <= self.room:
            return Finish("length", later("{n} tokens asked for").format(n=self.max_tokens))
        text = later("the model's context leaves {n} tokens of output")
        return Finish("context", text.format(n=self.room))
