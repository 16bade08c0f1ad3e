"""Where the reader stands in a run: so many whole rounds, and so many small steps of the next one.

The small steps of a round with n drafts and c checks: n drafted tokens, one score, c checks; the
step after those adds the target's own token and completes the round.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from specviz.events import Round


def steps(event: Round) -> int:
    """Small steps of a round, the completing one included."""
    return len(event.draft) + len(event.checks) + 2


@dataclass(frozen=True, slots=True)
class Cursor:
    """`rounds` whole rounds are over and `micro` small steps of the next one."""

    rounds: int = 0
    micro: int = 0

    @classmethod
    def end(cls, rounds: Sequence[Round]) -> Self:
        return cls(len(rounds))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `str` wrote, None if it is something else."""
        whole, _, part = text.partition(".")
        digits = whole.isascii() and whole.isdigit() and len(whole) < 9
        if not digits or (part and not (part.isascii() and part.isdigit() and len(part) < 9)):
            return None
        return cls(int(whole), int(part or 0))

    def __str__(self) -> str:
        return f"{self.rounds}.{self.micro}" if self.micro else str(self.rounds)

    @property
    def shown(self) -> int:
        """Index of the round to explain: the one under way, else the last whole one; -1: none."""
        return self.rounds if self.micro else self.rounds - 1

    def clamp(self, rounds: Sequence[Round]) -> "Cursor":
        """Return the nearest place that exists."""
        if not 0 <= self.rounds < len(rounds):
            return Cursor(max(0, min(self.rounds, len(rounds))))
        return Cursor(self.rounds, max(0, min(self.micro, steps(rounds[self.rounds]) - 1)))

    def forward(self, rounds: Sequence[Round]) -> "Cursor":
        """Complete the round under way, or the next one."""
        return Cursor(min(self.rounds + 1, len(rounds)))

    def back(self) -> "Cursor":
        """Return to the start of the round under way, or of the one before."""
        return Cursor(self.rounds if self.micro else max(0, self.rounds - 1))

    def micro_forward(self, rounds: Sequence[Round]) -> "Cursor":
        if self.rounds >= len(rounds):
            return Cursor(len(rounds))
        if self.micro + 1 >= steps(rounds[self.rounds]):
            return Cursor(self.rounds + 1)
        return Cursor(self.rounds, self.micro + 1)

    def micro_back(self, rounds: Sequence[Round]) -> "Cursor":
        if self.micro:
            return Cursor(self.rounds, self.micro - 1)
        if not self.rounds:
            return self
        return Cursor(self.rounds - 1, steps(rounds[self.rounds - 1]) - 1)
