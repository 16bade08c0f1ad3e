"""Speedup over plain decoding: measured with both denominators, and predicted."""

from dataclasses import dataclass

from specviz.metrics.summary import Summary, ratio


@dataclass(frozen=True, slots=True)
class Clock:
    """What one run took: `decode` and `prefill` in seconds for `tokens` output tokens."""

    tokens: int
    decode: float
    prefill: float = 0.0


@dataclass(frozen=True, slots=True)
class Speedups:
    """One run against plain decoding; every number keeps its denominator (mlx-lm#1211).

    `with_prefill` is None unless both runs have the same number of output tokens: prefill shared
    out over unequal outputs compares two different amounts of work (vllm#8439).
    """

    decode_only: float | None
    with_prefill: float | None


def speedup(plain_tpot: float | None, tpot: float | None) -> float | None:
    """Plain seconds per token / this run's, both of decoding alone; None if one is missing."""
    return ratio(plain_tpot, tpot) if plain_tpot and tpot else None


def speedups(plain: Clock, run: Clock) -> Speedups:
    """Compare two runs by decode time and by wall time."""
    same_work = plain.tokens == run.tokens > 0
    return Speedups(
        speedup(ratio(plain.decode, plain.tokens), ratio(run.decode, run.tokens)),
        ratio(plain.decode + plain.prefill, run.decode + run.prefill) if same_work else None,
    )


def predicted_speedup(summary: Summary, plain_round: float | None) -> float | None:
    """E[L] * T_target / (T_draft + T_verify) (arXiv:2211.17192, 3.3), from measured means.

    T_target is `plain_round`, the seconds of a plain round. T_verify is the target's pass with
    the decision and the commit; the remainder is left out, so the measured speedup may be lower.
    """
    mean, length = summary.mean_timing, summary.acceptance_length
    if plain_round is None or length is None:
        return None
    return ratio(length * plain_round, mean.draft + mean.score + mean.verify + mean.commit)
