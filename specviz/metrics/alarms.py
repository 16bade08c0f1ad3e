"""Verdicts that must be shown, each with the numbers that raised it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Literal

from specviz.events import LosslessReport, Round
from specviz.metrics.speed import speedup
from specviz.metrics.summary import Summary, summarise
from specviz.words import _

Kind = Literal["dead", "timid", "silent", "slower", "remainder", "busy", "bug", "near-tie"]
Severity = Literal["error", "warning", "info"]

DEAD_RATE, DEAD_ROUNDS = 0.02, 50
TIMID_RATE, TIMID_DRAFT, TIMID_ROUNDS = 0.8, 1.0, 10
SILENT_ROUNDS = 5
OTHER_SHARE = 0.2
BUSY_SPREAD, BUSY_ROUNDS = 1.5, 20


@dataclass(frozen=True, slots=True)
class Alarm:
    """One verdict: `facts` are the numbers in its sentence, which is in the reader's language."""

    kind: Kind
    severity: Severity
    sentence: str
    facts: tuple[tuple[str, float], ...] = ()


def alarms(
    rounds: Sequence[Round],
    plain_tpot: float | None = None,
    lossless: LosslessReport | None = None,
) -> tuple[Alarm, ...]:
    """Judge a run; errors come first. `plain_tpot` is plain decoding's seconds per token."""
    counted = judge(summarise(rounds), plain_tpot)
    found = [*counted, *_busy(rounds), *_text(lossless)]
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return tuple(sorted(found, key=lambda alarm: order.index(alarm.severity)))


def judge(summary: Summary, plain_tpot: float | None = None) -> tuple[Alarm, ...]:
    """Judge counts alone, as those of many runs together."""
    return (*_drafter(summary), *_time(summary, plain_tpot))


def _drafter(s: Summary) -> Iterator[Alarm]:
    rate, drafted = s.acceptance_rate, s.mean_drafted
    if rate is None or drafted is None:
        if s.asked >= SILENT_ROUNDS:
            text = _("No proposals: the drafter found nothing in any of {n} rounds.")
            yield Alarm("silent", "warning", text.format(n=s.asked), (("rounds", s.asked),))
        return
    facts = (("rate", rate), ("drafted_per_round", drafted), ("rounds", s.proposing))
    if rate < DEAD_RATE and s.proposing >= DEAD_ROUNDS:
        text = _(
            "Dead drafter: {rate:.1%} of its tokens were accepted over {n} rounds. "
            "Suspect a wrong head, a wrong vocabulary or features that are not fed."
        )
        yield Alarm("dead", "error", text.format(rate=rate, n=s.proposing), facts)
    if rate >= TIMID_RATE and drafted < TIMID_DRAFT and s.rounds >= TIMID_ROUNDS:
        text = _(
            "Timid drafter: {rate:.0%} accepted, but only {drafted:.2f} tokens drafted per round."
        )
        yield Alarm("timid", "warning", text.format(rate=rate, drafted=drafted), facts)


def _time(s: Summary, plain_tpot: float | None) -> Iterator[Alarm]:
    gain, share = speedup(plain_tpot, s.tpot), s.other_share
    if gain is not None and gain < 1 and s.asked:
        text = _("Slower than plain decoding: {gain:.2f}x per output token, decoding alone.")
        yield Alarm("slower", "warning", text.format(gain=gain), (("speedup", gain),))
    if share is not None and share > OTHER_SHARE:
        seconds = s.mean_timing.other
        text = _(
            "The remainder, time outside draft, score, verify and commit, takes {ms:.1f} ms "
            "of every round: {share:.0%}."
        )
        facts = (("seconds", seconds), ("share", share))
        yield Alarm("remainder", "warning", text.format(ms=1000 * seconds, share=share), facts)


def _busy(rounds: Sequence[Round]) -> Iterator[Alarm]:
    """Passes over equally many rows should take equally long."""
    by_rows: dict[int, list[float]] = {}
    for r in rounds:
        by_rows.setdefault(len(r.draft), []).append(r.timing.score)
    times = max(by_rows.values(), key=len, default=[])
    if len(times) < BUSY_ROUNDS:
        return
    tenths = quantiles(times, n=10)
    median, slow = tenths[4], tenths[8]
    if median > 0 and slow / median > BUSY_SPREAD:
        text = _(
            "Busy machine: the slowest tenth of {n} equal passes took {spread:.1f}x the median. "
            "Measure again when it is idle."
        )
        spread = slow / median
        facts = (("spread", spread), ("rounds", len(times)))
        yield Alarm("busy", "warning", text.format(n=len(times), spread=spread), facts)


def _text(lossless: LosslessReport | None) -> Iterator[Alarm]:
    if lossless is None or lossless.kind not in ("BUG", "near-tie"):
        return
    at, margin = lossless.first_divergence or 0, lossless.margin or 0.0
    facts = (("index", at), ("margin", margin))
    if lossless.kind == "BUG":
        text = _(
            "The output differs from plain decoding at token {at}, where plain decoding "
            "preferred its own token by {margin:.3g} logits: a bug, not rounding."
        )
        yield Alarm("bug", "error", text.format(at=at, margin=margin), facts)
    else:
        text = _(
            "The output differs from plain decoding at token {at}: a near tie of {margin:.2g} "
            "logits, which rounding can turn either way."
        )
        yield Alarm("near-tie", "info", text.format(at=at, margin=margin), facts)
