"""Stepping through rounds: a cursor over what happened, so going back costs nothing."""

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


@dataclass(frozen=True, slots=True, order=True)
class Cursor:
    """`micro` steps of round `round` have happened, and all rounds before it.

    In canonical form a position has one cursor: Cursor(0, 0) is the start, any other has
    micro from 1 to the number of micro-steps of its round.
    """

    round: int = 0
    micro: int = 0


START = Cursor()


@dataclass(frozen=True, slots=True)
class MicroStep:
    """One thing that happens in a round; `node` for a drafted token and its check."""

    kind: StepKind
    node: int | None = None


@dataclass(frozen=True, slots=True)
class State:
    """What is to be seen at a cursor."""

    cursor: Cursor
    step: MicroStep | None  # the one just taken; None at the start
    nodes: tuple[NodeState, ...]  # of the cursor's round
    scored: bool  # whether the target has read the draft
    last_shown: bool  # whether the round's own token is there
    done: bool  # whether the round is over and its tokens are committed
    committed: int  # output tokens committed so far


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
    """Each drafted token, the one scoring pass, each decision, the target's own token."""
    drafts = (MicroStep("draft", node) for node in range(len(r.draft)))
    checks = (MicroStep("check", each.node) for each in r.checks)
    last = () if r.last_token is None else (MicroStep("last"),)
    return (*drafts, MicroStep("score"), *checks, *last)


def durations(r: Round) -> tuple[float, ...]:
    """Measured seconds of each micro-step, shared out evenly within a phase; they sum to total.

    Commit and remainder belong to the final step, drafting in vain to the scoring.
    """
    steps, timing = micro_steps(r), r.timing
    drafts, verifies = len(r.draft), len(steps) - len(r.draft) - 1
    took = [
        timing.draft / drafts
        if step.kind == "draft"
        else timing.score + (0 if drafts else timing.draft) + (0 if verifies else timing.verify)
        if step.kind == "score"
        else timing.verify / verifies
        for step in steps
    ]
    took[-1] += timing.commit + timing.other
    return tuple(took)


def clamp(rounds: Sequence[Round], cursor: Cursor) -> Cursor:
    """Return the canonical cursor nearest to any pair of numbers, such as one from a link."""
    if not rounds or cursor.round < 0:
        return START
    if cursor.round >= len(rounds):
        return end(rounds)
    steps = len(micro_steps(rounds[cursor.round]))
    if cursor.micro > 0:
        return Cursor(cursor.round, min(cursor.micro, steps))
    return after(rounds, cursor.round - 1)


def after(rounds: Sequence[Round], index: int) -> Cursor:
    """Return the cursor at which round `index` is just over; the start for -1."""
    return START if index < 0 else Cursor(index, len(micro_steps(rounds[index])))


def end(rounds: Sequence[Round]) -> Cursor:
    """Return the cursor after everything."""
    return after(rounds, len(rounds) - 1)


def forward(rounds: Sequence[Round], cursor: Cursor) -> Cursor:
    """Take one micro-step; the end stays the end."""
    at = clamp(rounds, cursor)
    if not rounds:
        return at
    if at.micro < len(micro_steps(rounds[at.round])):
        return Cursor(at.round, at.micro + 1)
    return Cursor(at.round + 1, 1) if at.round + 1 < len(rounds) else at


def back(rounds: Sequence[Round], cursor: Cursor) -> Cursor:
    """Take one micro-step back; the start stays the start."""
    at = clamp(rounds, cursor)
    return clamp(rounds, Cursor(at.round, at.micro - 1)) if at.micro else at


def forward_round(rounds: Sequence[Round], cursor: Cursor) -> Cursor:
    """Finish the round that has begun, or else run the next one."""
    at = clamp(rounds, cursor)
    over = after(rounds, at.round) if rounds else at
    return over if at != over or at.round + 1 == len(rounds) else after(rounds, at.round + 1)


def back_round(rounds: Sequence[Round], cursor: Cursor) -> Cursor:
    """Go to where the cursor's round began."""
    at = clamp(rounds, cursor)
    return clamp(rounds, Cursor(at.round, 0))


def state_at(rounds: Sequence[Round], cursor: Cursor) -> State:
    """Say what is visible, pending and decided at a cursor."""
    at = clamp(rounds, cursor)
    if at == START:
        hidden: tuple[NodeState, ...] = ("hidden",) * len(rounds[0].draft) if rounds else ()
        return State(at, None, hidden, False, False, False, 0)
    r = rounds[at.round]
    taken = micro_steps(r)[: at.micro]
    done = at.micro == len(micro_steps(r))
    before = r.start - rounds[0].start
    return State(
        cursor=at,
        step=taken[-1],
        nodes=r.fates if done else _nodes_so_far(r, taken),
        scored=MicroStep("score") in taken,
        last_shown=MicroStep("last") in taken,
        done=done,
        committed=before + (r.acceptance_length if done else 0),
    )


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
