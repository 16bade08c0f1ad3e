"""The one place that says who wins: never a win inside the noise, always why and what to change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specviz.words import _, ngettext

Outcome = Literal["wins", "loses", "even", "unsure"]

EVEN = 0.02  # a difference below this is no difference, however narrow the interval
FEW = 3  # fewer prompts than this are an anecdote


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One scheme against plain decoding of the same prompts on the same machine.

    `speedup` is the median, `low` to `high` its interval over prompts. Seconds are per round of
    the scheme; `plain_round` is a round of plain decoding.
    """

    scheme: str
    title: str  # as people write it
    draft_length: int
    speedup: float
    low: float
    high: float
    prompts: int
    acceptance_length: float
    plain_round: float
    draft: float
    verify: float
    other: float
    busy: bool = False  # something else was using the machine
    same_text: bool = True  # greedy output equal to plain decoding


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result with its interval, where the time goes, and what to do about it."""

    outcome: Outcome
    sentence: str
    why: str
    change: str

    @property
    def text(self) -> str:
        return " ".join(part for part in (self.sentence, self.why, self.change) if part)


def judge(run: Measured) -> Verdict:
    """Say whether a scheme wins over plain decoding here."""
    outcome = _outcome(run)
    return Verdict(outcome, _sentence(run, outcome), _why(run), _change(run, outcome))


def _outcome(run: Measured) -> Outcome:
    if run.busy or run.prompts < FEW:
        return "unsure"
    if run.low > 1 and run.speedup > 1 + EVEN:
        return "wins"
    if run.high < 1 and run.speedup < 1 - EVEN:
        return "loses"
    return "even"


def _interval(run: Measured) -> str:
    over = ngettext("{low}-{high} over {n} prompt", "{low}-{high} over {n} prompts", run.prompts)
    return over.format(low=f"{run.low:.2f}", high=f"{run.high:.2f}", n=run.prompts)


def _sentence(run: Measured, outcome: Outcome) -> str:
    numbers = {
        "scheme": run.title,
        "d": run.draft_length,
        "x": f"{run.speedup:.2f}",
        "interval": _interval(run),
    }
    if run.busy:
        text = _(
            "{scheme} with D = {d} measured {x}x ({interval}), but the machine was busy: this "
            "says nothing yet."
        )
    elif outcome == "unsure":
        text = _("{scheme} with D = {d} measured {x}x ({interval}): too few prompts for a verdict.")
    elif outcome == "wins":
        text = _("{scheme} with D = {d} wins: {x}x plain decoding ({interval}).")
    elif outcome == "loses":
        text = _("{scheme} with D = {d} loses: {x}x plain decoding ({interval}).")
    else:
        text = _(
            "{scheme} with D = {d} and plain decoding are even: {x}x, and the interval "
            "({interval}) leaves no difference to believe."
        )
    return text.format(**numbers)


def _why(run: Measured) -> str:
    """Write the round into plain rounds: what it costs against what it commits."""
    if run.plain_round <= 0:
        return ""
    unit = run.plain_round
    text = _(
        "A round commits {length} tokens and costs {total} plain rounds: verify {verify}, draft "
        "{draft}, remainder {other}."
    )
    total = run.draft + run.verify + run.other
    return text.format(
        length=f"{run.acceptance_length:.2f}",
        total=f"{total / unit:.2f}",
        verify=f"{run.verify / unit:.2f}",
        draft=f"{run.draft / unit:.2f}",
        other=f"{run.other / unit:.2f}",
    )


def _change(run: Measured, outcome: Outcome) -> str:
    if run.busy:
        return _("Measure again when nothing else runs.")
    if outcome == "unsure":
        return _("Measure at least {n} prompts.").format(n=FEW)
    if not run.same_text:
        return _("Its text differs from plain decoding: look at the lossless report first.")
    if outcome == "wins":
        return ""
    unit = run.plain_round
    if run.acceptance_length < 1.2:
        return _("Almost no draft is accepted: choose another drafter for such prompts, or none.")
    if run.draft > max(run.other, run.verify - unit):
        return _("Drafting costs most: take a cheaper drafter or a smaller D.")
    if run.other > run.verify - unit:
        return _(
            "The remainder costs most, time outside the models: a longer output or less recording "
            "lowers it."
        )
    return _("Verifying costs most: take a smaller D, so that the pass stays near a plain one.")


def rank(runs: Sequence[Measured]) -> Verdict:
    """Say which of several schemes wins here; none of them is an answer.

    A winner must win over plain decoding, and over the second beyond its interval; otherwise the
    sentence names both.
    """
    if not runs:
        return Verdict("unsure", _("Nothing was measured yet."), "", "")
    order = sorted(runs, key=lambda run: -run.speedup)
    verdicts = [judge(run) for run in order]
    if any(verdict.outcome == "unsure" for verdict in verdicts):
        shaky = next(v for v in verdicts if v.outcome == "unsure")
        return Verdict("unsure", shaky.sentence, "", shaky.change)
    winners = [run for run, v in zip(order, verdicts, strict=True) if v.outcome == "wins"]
    if not winners:
        text = _("None of them: plain decoding is as fast as any or faster. {best}")
        return Verdict(
            verdicts[0].outcome,
            text.format(best=verdicts[0].sentence),
            verdicts[0].why,
            verdicts[0].change,
        )
    first = winners[0]
    close = [run.title for run in winners[1:] if run.high >= first.low]
    verdict = judge(first)
    if close:
        text = _("{sentence} {others} may be as fast: the intervals overlap.")
        said = text.format(sentence=verdict.sentence, others=", ".join(close))
        return Verdict("wins", said, verdict.why, _("Measure more prompts to tell them apart."))
    return verdict
