"""Stepping through rounds: a cursor over what happened, so going back costs nothing."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from specviz.events import Fate, LastKind, Round
from specviz.metrics.summary import segments
from specviz.traces.schema import Trace

StepKind = Literal["draft", "score", "check", "last"]
NodeState = Fate | Literal["hidden", "pending"]


@dataclass(frozen=True, slots=True)
class MicroStep:
    """One thing that happens in a round; `node` for a drafted token and its check."""

    kind: StepKind
    node: int | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One output token and where it came from: output[index] is `token`, always."""

    index: int
    token: int
    round: int
    node: int | None  # None: the target's own
    kind: Literal["accepted"] | LastKind


@dataclass(frozen=True, slots=True)
class Difference:
    """The first output index at which two runs differ; None where one has ended already."""

    index: int
    left: int | None
    right: int | None
    same_prompt: bool


def micro_steps(r: Round) -> tuple[MicroStep, ...]:
    """Each drafted token, the scoring pass, each decision, and the step that ends the round.

    That last step adds the target's own token, where the round was not cut before it.
    """
    drafts = (MicroStep("draft", node) for node in range(len(r.draft)))
    checks = (MicroStep("check", each.node) for each in r.checks)
    return (*drafts, MicroStep("score"), *checks, MicroStep("last"))


def durations(r: Round) -> tuple[float, ...]:
    """Measured seconds of each micro-step, shared out evenly within a phase; they sum to total.

    Drafting in vain belongs to the scoring, commit and remainder to the last step.
    """
    timing, drafts, decisions = r.timing, len(r.draft), len(r.checks) + 1
    score = timing.score if drafts else timing.score + timing.draft
    each = timing.verify / decisions
    return (
        *(timing.draft / drafts for _ in range(drafts)),
        score,
        *(each for _ in r.checks),
        each + timing.commit + timing.other,
    )


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """Where a reader stands: `rounds` whole rounds are over and `micro` steps of the next one."""

    rounds: int = 0
    micro: int = 0

    @classmethod
    def end(cls, rounds: Sequence[Round]) -> "Cursor":
        return cls(len(rounds))

    @classmethod
    def parse(cls, text: str) -> "Cursor | None":
        """Read what `str` wrote, "7" or "7.2"; None if it is something else."""
        found = re.fullmatch(r"([0-9]{1,8})(?:\.([0-9]{1,8}))?", text)
        return cls(int(found[1]), int(found[2] or 0)) if found else None

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
        most = len(micro_steps(rounds[self.rounds])) - 1
        return Cursor(self.rounds, max(0, min(self.micro, most)))

    def forward(self, rounds: Sequence[Round]) -> "Cursor":
        """Complete the round under way, or the next one."""
        return Cursor(min(self.rounds + 1, len(rounds)))

    def back(self) -> "Cursor":
        """Return to the start of the round under way, or of the one before."""
        return Cursor(self.rounds if self.micro else max(0, self.rounds - 1))

    def micro_forward(self, rounds: Sequence[Round]) -> "Cursor":
        """Take one step; the last step of a round completes it."""
        if self.rounds >= len(rounds):
            return Cursor.end(rounds)
        if self.micro + 1 >= len(micro_steps(rounds[self.rounds])):
            return Cursor(self.rounds + 1)
        return Cursor(self.rounds, self.micro + 1)

    def micro_back(self, rounds: Sequence[Round]) -> "Cursor":
        """Take one step back."""
        if self.micro:
            return Cursor(self.rounds, self.micro - 1)
        if not self.rounds:
            return self
        return Cursor(self.rounds - 1, len(micro_steps(rounds[self.rounds - 1])) - 1)


@dataclass(frozen=True, slots=True)
class State:
    """What is to be seen at a cursor."""

    cursor: Cursor
    step: MicroStep | None  # the one just taken; None at the start
    nodes: tuple[NodeState, ...]  # of round `cursor.shown`
    scored: bool  # whether the target has read that draft
    committed: int  # output tokens committed so far


def state_at(rounds: Sequence[Round], cursor: Cursor) -> State:
    """Say what is visible, pending and decided at a cursor."""
    at = cursor.clamp(rounds)
    if at.shown < 0:
        return State(at, None, (), False, 0)
    r = rounds[at.shown]
    before = r.start - rounds[0].start
    if not at.micro:
        return State(at, MicroStep("last"), r.fates, True, before + r.acceptance_length)
    taken = micro_steps(r)[: at.micro]
    return State(at, taken[-1], _nodes_so_far(r, taken), MicroStep("score") in taken, before)


def _nodes_so_far(r: Round, taken: Sequence[MicroStep]) -> tuple[NodeState, ...]:
    drafted = {step.node for step in taken if step.kind == "draft"}
    checked = {step.node for step in taken if step.kind == "check"}
    stands = {each.node: each.accepted for each in r.checks}
    return tuple(
        "hidden"
        if node not in drafted
        else "pending"
        if node not in checked
        else "accepted"
        if stands[node]
        else "rejected"
        for node in range(len(r.draft))
    )


def committed_cells(rounds: Sequence[Round]) -> tuple[Cell, ...]:
    """Every output token with its origin: by index, never by searching for its text (EAGLE UI)."""
    cells: list[Cell] = []
    for r in rounds:
        for node in r.path:
            cells.append(Cell(len(cells), r.draft.tokens[node], r.index, node, "accepted"))
        if r.last_token is not None:
            cells.append(Cell(len(cells), r.last_token, r.index, None, r.last_kind))
    return tuple(cells)


def round_of(rounds: Sequence[Round], index: int) -> int:
    """Return the round that committed output token `index`."""
    ends = list(accumulate(r.acceptance_length for r in rounds))
    if not ends or not 0 <= index < ends[-1]:
        raise IndexError(f"no output token {index} of {ends[-1] if ends else 0}")
    return bisect_right(ends, index)


def switches(rounds: Sequence[Round]) -> tuple[int, ...]:
    """Rounds at which scheme or budget changed, to be marked (vllm#49548)."""
    return tuple(segment.start for segment in segments(rounds)[1:])


def diff(left: Trace, right: Trace) -> Difference | None:
    """Compare outputs token by token; None if they are the same."""
    a, b, same = left.output, right.output, left.prompt == right.prompt
    for index, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return Difference(index, x, y, same)
    if len(a) == len(b):
        return None
    at = min(len(a), len(b))
    return Difference(at, a[at] if at < len(a) else None, b[at] if at < len(b) else None, same)
