"""Speedup over plain decoding from acceptance, verify cost and draft cost.

S(D) = E[L](D) / (v(D) + draft(D)), times in units of one plain pass (arXiv:2211.17192, 3.3, with
its assumption v = 1 dropped). E[L] counts the target's own token: 1 to 1 + D.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from specviz.cost.hardware import How
from specviz.errors import ConfigError
from specviz.words import _

Drafting = Literal["serial", "one_pass", "block_markov", "lookup"]
BLOCK_DRAFTING = frozenset(("one_pass", "block_markov"))  # a block is planned as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """How often each drafted position is accepted, given that all before it were.

    `rates` [k]: conditional acceptance of position k + 1. A serial drafter keeps its last rate
    beyond them; a block drafter re-plans when D changes, so nothing is said beyond its block.
    """

    rates: tuple[float, ...]
    source: str  # where the rates come from, in words
    how: How
    iid: bool = False  # one rate for every position: the special case of the textbook

    def __post_init__(self) -> None:
        if not self.rates or not all(0 <= rate <= 1 for rate in self.rates):
            text = _("acceptance rates are {rates}; allowed: at least one number, each 0 to 1")
            raise ConfigError(text.format(rates=str(list(self.rates))[:80]))

    def rates_for(self, length: int) -> tuple[float, ...]:
        """The first `length` rates, the last one repeated where there are fewer."""
        more = max(0, length - len(self.rates))
        return (*self.rates[:length], *(self.rates[-1:] * more))

    def expected_length(self, length: int) -> float:
        """E[L] at D = `length`."""
        return expected_length(self.rates_for(length))


def expected_length(rates: Sequence[float]) -> float:
    """E[L] = 1 + sum over k of the product of the first k conditional rates."""
    return 1 + sum(prod(rates[: k + 1]) for k in range(len(rates)))


def iid_length(rate: float, length: int) -> float:
    """E[L] if every position were accepted alike: (1 - a^(D+1)) / (1 - a), arXiv:2211.17192.

    Acceptance is not alike in practice: it falls along a block and rises along a chain that
    survives. Use per-position rates where there are any.
    """
    return float(length + 1) if rate == 1 else (1 - rate ** (length + 1)) / (1 - rate)


def iid_profile(rate: float) -> Profile:
    """Return the textbook profile, labelled as the special case it is."""
    source = _("one rate for every position (special case, not how real drafters behave)")
    return Profile(rates=(rate,), source=source, how="modelled", iid=True)


def published_profile(
    mean_length: float, length: int, source: str, first: float | None = None
) -> Profile:
    """Return rates whose E[L] at D = `length` is a published `mean_length`.

    The mean, and the `first` rate where a source has it, are published; that all other positions
    share one rate is a model.
    """

    def rates(rate: float) -> tuple[float, ...]:
        return (rate if first is None else first, *((rate,) * (length - 1)))

    low, high = 0.0, 1.0
    for _step in range(50):
        rate = (low + high) / 2
        low, high = (rate, high) if expected_length(rates(rate)) < mean_length else (low, rate)
    return Profile(rates=rates(low), source=source, how="published")


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCost:
    """Cost of drafting D tokens in units of one plain pass of the target.

    serial: c * D. one_pass: c, whatever D (a block in one go). block_markov: c + m * D.
    lookup: c, close to nothing. `fixed` is paid once per round by any of them.
    """

    drafting: Drafting
    c: float = 0.0
    markov: float = 0.0
    fixed: float = 0.0

    def __call__(self, length: int) -> float:
        """Return draft(D); nothing is paid at D = 0."""
        if length == 0:
            return 0.0
        per_round = self.c * length if self.drafting == "serial" else self.c
        return self.fixed + per_round + self.markov * length


def speedup(length: float, verify: float, draft: float, remainder: float = 0.0) -> float:
    """E[L] / (v + draft + remainder); times in units of one plain pass."""
    return length / (verify + draft + remainder)


@dataclass(frozen=True, slots=True)
class Point:
    """One D of a curve; times in units of one plain pass."""

    draft_length: int
    expected_length: float
    verify: float
    draft: float

    @property
    def speedup(self) -> float:
        return speedup(self.expected_length, self.verify, self.draft)


PLAIN = Point(0, 1.0, 1.0, 0.0)


Ratio = Callable[[int], float]  # of D, in units of one plain pass


def curve(
    profile: Profile, verify: Ratio, draft: Ratio, lengths: Iterable[int], *, block: bool = False
) -> tuple[Point, ...]:
    """Return S(D) for each D; `verify` is v(D), `draft` for example a `DraftCost`.

    A block drafter ends at the block its rates are for: it plans a block as a whole, so another
    D has other rates (NVIDIA specdec_bench).
    """
    most = len(profile.rates) if block and not profile.iid else None
    return tuple(
        Point(d, profile.expected_length(d), verify(d), draft(d))
        for d in lengths
        if most is None or d <= most
    )


def best(points: Sequence[Point]) -> Point:
    """Return the fastest point, plain decoding if nothing beats it; the shorter D of equals."""
    return max((PLAIN, *points), key=lambda point: (point.speedup, -point.draft_length))
