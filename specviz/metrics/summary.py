"""Acceptance, counts and time of a run: pure functions of its rounds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from specviz.events import Round, Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of a run and the rates that follow from them.

    Position i (0-based) is depth i + 1 of the draft. A rate that would divide by zero is None.
    """

    rounds: int
    asked: int  # rounds in which the drafter was asked for a draft
    proposing: int  # rounds with at least one drafted token
    cut: int  # rounds that ended on an accepted token: no token of the target's own
    drafted: int  # nodes, also of trees
    accepted: int  # nodes on kept paths
    rejected: int
    unchecked: int
    past_end: int
    output_tokens: int
    reached: tuple[int, ...]  # [i]: rounds whose draft was at least i deep; [0] is all rounds
    survived: tuple[int, ...]  # [i]: rounds that accepted at least i; [0] is all rounds
    timing: Timing  # sums over the rounds, seconds

    @property
    def acceptance_length(self) -> float | None:
        """E[L]: committed tokens per round, bonus or recovered token included."""
        return ratio(self.output_tokens, self.rounds)

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted; None when nothing was drafted."""
        return ratio(self.accepted, self.drafted)

    @property
    def mean_drafted(self) -> float | None:
        """Drafted tokens per round, rounds without a proposal included."""
        return ratio(self.drafted, self.rounds)

    @property
    def hit_rate(self) -> float | None:
        """Rounds with a proposal / rounds in which one was asked for."""
        return ratio(self.proposing, self.asked)

    @property
    def empty_rounds(self) -> int:
        """Rounds in which a draft was asked for and none came."""
        return self.asked - self.proposing

    @property
    def rejected_rounds(self) -> int:
        """Rounds with a proposal of which nothing was kept."""
        return self.proposing - (self.survived[1] if len(self.survived) > 1 else 0)

    @property
    def per_position(self) -> tuple[float, ...]:
        """Unconditional: rounds that accepted position i / all rounds (vLLM, llama.cpp)."""
        return tuple(n / self.rounds for n in self.survived[1:])

    @property
    def per_position_proposed(self) -> tuple[float, ...]:
        """Rounds that accepted position i / rounds that drafted it (DeepSpec)."""
        return tuple(
            kept / drafted
            for kept, drafted in zip(self.survived[1:], self.reached[1:], strict=True)
        )

    @property
    def conditional(self) -> tuple[float | None, ...]:
        """Acceptance at position i given that all before it were accepted (arXiv:2607.05147)."""
        return tuple(map(ratio, self.survived[1:], self.survived[:-1]))

    @property
    def histogram(self) -> tuple[int, ...]:
        """[a]: rounds that accepted exactly a tokens, from 0 up to the deepest draft."""
        return _exactly(self.survived)

    @property
    def draft_histogram(self) -> tuple[int, ...]:
        """[d]: rounds whose draft was exactly d deep; [0] counts rounds without a proposal."""
        return _exactly(self.reached)

    @property
    def tpot(self) -> float | None:
        """Seconds of decoding per output token; prefill is not in it."""
        return ratio(self.timing.total, self.output_tokens) or None

    @property
    def mean_timing(self) -> Timing:
        """Seconds per round."""
        n = max(self.rounds, 1)
        return Timing(*(getattr(self.timing, field.name) / n for field in fields(Timing)))

    @property
    def other_share(self) -> float | None:
        """The remainder's share of the round time (llama.cpp#25908)."""
        return ratio(self.timing.other, self.timing.total)


def ratio(part: float, whole: float) -> float | None:
    """Return part / whole; None when there is no whole, never 0/0."""
    return part / whole if whole else None


def _exactly(at_least: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n - more for n, more in zip(at_least, (*at_least[1:], 0), strict=True))


def _at_least(values: Sequence[int], most: int) -> tuple[int, ...]:
    return tuple(sum(value >= i for value in values) for i in range(most + 1))


def summarise(rounds: Sequence[Round]) -> Summary:
    """Count what happened in `rounds`; counters stop where the output stops (sglang#39826)."""
    depths = [max(r.draft.depths, default=0) for r in rounds]
    accepted = [len(r.path) for r in rounds]
    fates = [fate for r in rounds for fate in r.fates]
    return Summary(
        rounds=len(rounds),
        asked=sum(asked_for_draft(r) for r in rounds),
        proposing=sum(len(r.draft) > 0 for r in rounds),
        cut=sum(r.last_token is None for r in rounds),
        drafted=len(fates),
        accepted=sum(accepted),
        rejected=fates.count("rejected"),
        unchecked=fates.count("unchecked"),
        past_end=fates.count("past_end"),
        output_tokens=sum(r.acceptance_length for r in rounds),
        reached=_at_least(depths, max(depths, default=0)),
        survived=_at_least(accepted, max(depths, default=0)),
        timing=total(rounds),
    )


def asked_for_draft(r: Round) -> bool:
    """Whether a drafter had its turn: not in plain decoding, nor where a token was forced."""
    return r.budget > 0 and r.scheme != "none" and r.last_kind != "forced"


def total(rounds: Sequence[Round]) -> Timing:
    """Add up the time of all rounds, phase by phase."""
    return Timing(*(sum((getattr(r.timing, f.name) for r in rounds), 0.0) for f in fields(Timing)))


@dataclass(frozen=True, slots=True)
class Segment:
    """Neighbouring rounds [start, stop) with the same scheme and budget."""

    start: int
    stop: int
    scheme: str
    budget: int
    acceptance_length: float
    round_seconds: float


def segments(rounds: Sequence[Round]) -> tuple[Segment, ...]:
    """Cut a run where its scheme or budget changes, each part with its own means (vllm#49548)."""
    starts = [
        i
        for i, r in enumerate(rounds)
        if i == 0 or (r.scheme, r.budget) != (rounds[i - 1].scheme, rounds[i - 1].budget)
    ]
    return tuple(
        Segment(
            start,
            stop,
            rounds[start].scheme,
            rounds[start].budget,
            fmean(r.acceptance_length for r in rounds[start:stop]),
            fmean(r.timing.total for r in rounds[start:stop]),
        )
        for start, stop in zip(starts, [*starts[1:], len(rounds)], strict=False)
    )


def by_budget(rounds: Sequence[Round]) -> dict[int, Summary]:
    """Summaries of the rounds of each budget D, smallest D first."""
    budgets = sorted({r.budget for r in rounds})
    return {d: summarise([r for r in rounds if r.budget == d]) for d in budgets}
