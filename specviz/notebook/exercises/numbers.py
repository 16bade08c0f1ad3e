"""Checks of notebook 12: one engine's acceptance length, and the diagnosis of five runs."""

from collections.abc import Callable, Mapping, Sequence
from math import isclose
from typing import get_args

from specviz.events import Round
from specviz.metrics import Summary, definitions, summarise
from specviz.notebook.drafts import recording
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.notebook.patients import Cause, patients
from specviz.traces.schema import Trace
from specviz.words import _

MeanLength = Callable[[Sequence[Round]], float]


@exercise
def mean_length(answer: MeanLength) -> Verdict:
    """Compare with vLLM's convention on a run with rounds that drafted nothing."""
    rounds = recording("ngram-chat").rounds
    found, s = called(answer, rounds), summarise(rounds)
    if isclose(found, 1 + s.accepted / s.proposing):
        return right(_("Rounds without a draft cost a pass each, and this number leaves them out."))
    for each in definitions(rounds):
        if isinstance(each.value, float) and isclose(found, each.value):
            text = _("{found:.3f} is what {peer} calls {name}: {formula}.")
            return wrong(
                text.format(found=found, peer=each.peer, name=each.name, formula=each.formula)
            )
    if isclose(found, s.accepted / s.proposing):
        return wrong(_("The token of the target's own is missing: add 1."))
    text = _("You say {found:.3f}. Count accepted drafts, and rounds that drafted at all.")
    return wrong(text.format(found=found))


@exercise
def diagnosis(answer: Mapping[str, object]) -> Verdict:
    """Hold every diagnosis against the numbers of its run."""
    known = ", ".join(get_args(Cause))
    for letter, trace in patients().items():
        said = answer.get(letter, ...)
        if said is ...:
            return Verdict(
                "open", _("Patient {letter} has no diagnosis yet.").format(letter=letter)
            )
        if said not in get_args(Cause):
            text = _("{letter}: {said!r} is none of: {known}")
            return wrong(text.format(letter=letter, said=said, known=known))
        reason = contradiction(trace, str(said))
        if reason:
            return wrong(_("Patient {letter}: {reason}").format(letter=letter, reason=reason))
    return right(_("Each cause leaves its own numbers; no single number would have told them all."))


def contradiction(trace: Trace, cause: str) -> str:
    """Say which number of a run speaks against a cause; "" if none does."""
    s = summarise(trace.rounds)
    report = trace.lossless
    assert report is not None
    changed = _("its text differs from plain decoding at output token {n}; ").format(
        n=report.first_divergence
    )
    if report.kind == "BUG" and cause in ("healthy", "lookup", "vocabulary"):
        return changed + _("no drafter can do that to a target that checks.")
    if report.kind != "BUG" and cause in ("rollback", "accepts all"):
        return _("its text is that of plain decoding; a fault behind the drafter would show there.")
    return _against_counts(s, cause)


def _against_counts(s: Summary, cause: str) -> str:
    rate = s.acceptance_rate
    drafted = _("it had a draft in {n} of {all} rounds.").format(n=s.proposing, all=s.asked)
    if cause == "lookup":
        return drafted if s.proposing > s.asked / 2 else ""
    if rate is None:
        return drafted
    told = _("{rate:.0%} of its drafts were accepted").format(rate=rate)
    if cause == "vocabulary" and rate > 0.1:
        return told + _("; token numbers of another table would be right by accident only.")
    if cause == "healthy" and rate < 0.05:
        return told + _("; a drafter that works is right now and then.")
    if cause == "rollback" and rate == 1:
        return told + _(": where nothing was refused there is nothing to roll back.")
    if cause == "accepts all" and rate < 1:
        return told + _(", so something is refused.")
    return ""
