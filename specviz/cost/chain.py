"""What speculation buys an agent: end-to-end latency of a chain of calls, as a distribution.

Rounds are drawn from measured ones, in stretches of neighbours: acceptance comes in bursts, and a
mean would hide the slow calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specviz.cost.speedup import Profile
from specviz.errors import ConfigError
from specviz.words import _

STRETCH = 8  # neighbouring rounds drawn together
CHAINS = 400
MOST_TOKENS = 200_000  # per call
MOST_CALLS = 1000
MOST_ROUNDS = 20_000_000  # drawn in all


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """N calls, one after another. `wait`: seconds per call outside decoding (prefill, tools)."""

    calls: int
    tokens: int  # of each call
    wait: float = 0.0

    def __post_init__(self) -> None:
        if not (1 <= self.calls <= MOST_CALLS and 1 <= self.tokens <= MOST_TOKENS):
            text = _("{calls} calls of {tokens} tokens; allowed: 1 to {most} calls of 1 to {long}")
            raise ConfigError(
                text.format(calls=self.calls, tokens=self.tokens, most=MOST_CALLS, long=MOST_TOKENS)
            )
        if not 0 <= self.wait < 1e6:
            text = _("{wait} seconds outside decoding; allowed: 0 or more")
            raise ConfigError(text.format(wait=self.wait))


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds of whole chains, sorted; one entry per simulated chain."""

    seconds: NDArray[np.float64]

    def quantile(self, share: float) -> float:
        """Seconds that `share` of the chains stay below."""
        return float(np.quantile(self.seconds, share))

    @property
    def median(self) -> float:
        return self.quantile(0.5)


def simulate(chain: Chain, lengths: Sequence[int], round_seconds: float, seed: int = 0) -> Latency:
    """Return the latency of chains whose rounds commit as many tokens as measured ones did.

    Args:
        chain: what is asked for.
        lengths: tokens committed by each measured round, in order (plain decoding: 1).
        round_seconds: what one round takes.
        seed: of the drawing; the same seed gives the same chains.

    Raises:
        ConfigError: no rounds, or rounds that commit nothing.
    """
    measured = np.asarray([n for n in lengths if n > 0], dtype=np.int64)
    if measured.size == 0:
        raise ConfigError(_("there are no measured rounds to draw from; run one first"))
    rng = np.random.default_rng(seed)
    fixed = chain.calls * chain.wait
    chains = _fewer(chain, float(measured.mean()))
    if measured.min() == measured.max():  # plain decoding, or a drafter that never varies
        rounds = chain.calls * -(-chain.tokens // int(measured[0]))
        return Latency(np.full(chains, rounds * round_seconds + fixed))
    totals = [
        sum(_rounds(measured, chain.tokens, rng) for _call in range(chain.calls))
        for _chain in range(chains)
    ]
    return Latency(np.sort(np.asarray(totals, dtype=np.float64)) * round_seconds + fixed)


def _fewer(chain: Chain, mean: float) -> int:
    """Chains to simulate: fewer of very long ones, so that the page answers."""
    each = chain.calls * (chain.tokens / mean + STRETCH)
    return max(20, min(CHAINS, int(MOST_ROUNDS / each / 10)))


def _rounds(measured: NDArray[np.int64], tokens: int, rng: np.random.Generator) -> int:
    """Rounds until `tokens` are committed, drawn in stretches that wrap around the end."""
    stretch = min(STRETCH, measured.size)
    need = int(tokens / measured.mean() * 1.5 / stretch) + 4
    done, committed = 0, 0
    while True:
        starts = rng.integers(0, measured.size, need)
        places = (starts[:, None] + np.arange(stretch)) % measured.size
        sums = np.cumsum(measured[places].ravel()) + committed
        if sums[-1] >= tokens:
            return done + int(np.searchsorted(sums, tokens)) + 1
        done, committed = done + sums.size, int(sums[-1])


def drawn_lengths(profile: Profile, length: int, rounds: int = 2000, seed: int = 0) -> list[int]:
    """Return lengths of rounds drawn from a profile, where no measured rounds are at hand.

    Rounds are independent here, so long stretches without luck are rarer than in practice.
    """
    rng = np.random.default_rng(seed)
    kept = rng.random((rounds, length)) < np.asarray(profile.rates_for(length))
    return [1 + int(n) for n in np.cumprod(kept, axis=1).sum(axis=1)]
