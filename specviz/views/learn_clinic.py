"""The clinic: a symptom, and the checks to make, made on the run that is open.

Every symptom comes from reports about real tools; each names a thread to read.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from specviz.metrics import (
    alarms,
    predicted_speedup,
    prompt_overlap,
    shifted_acceptance,
    speedup,
    summarise,
)
from specviz.traces.schema import Trace
from specviz.views.glossary import spread
from specviz.words import _

State = Literal["fine", "look", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: what was found, and what to do about it."""

    state: State
    found: str
    advice: str


Check = Callable[[Trace], Finding]


@dataclass(frozen=True, slots=True)
class Symptom:
    """What a reader complains of."""

    key: str
    title: str
    thread: str  # a public report of the same
    checks: tuple[Check, ...]


def symptoms() -> tuple[Symptom, ...]:
    """Return the symptoms, the commonest first."""
    return (
        Symptom(
            "slow",
            _("It is slower than without drafts"),
            "vllm-project/vllm#15025",
            (_gain, _length, _hits, _drafting, _remainder, _busy),
        ),
        Symptom(
            "zero",
            _("Nothing is accepted, or almost nothing"),
            "NVIDIA/TensorRT-LLM#18905",
            (_rate, _hits, _template, _overlap),
        ),
        Symptom(
            "high",
            _("Acceptance looks too good"),
            "ggml-org/llama.cpp#3919",
            (_timid, _shifted, _length),
        ),
        Symptom(
            "text",
            _("The text differs from plain decoding"),
            "ml-explore/mlx-lm#1423",
            (_same, _gap, _dtype),
        ),
        Symptom(
            "numbers",
            _("Another tool shows another number"),
            "SafeAILab/EAGLE#195",
            (_spread, _cut, _clock),
        ),
        Symptom(
            "prompt",
            _("It is fast on one prompt and not on another"),
            "vllm-project/vllm#6494",
            (_overlap, _hits, _template),
        ),
        Symptom(
            "seed",
            _("The seed changes nothing"),
            "vllm-project/vllm#13196",
            (_seed,),
        ),
        Symptom(
            "end",
            _("It goes on behind the end"),
            "huggingface/transformers#47912",
            (_past, _cut),
        ),
    )


def _finding(good: bool | None, found: str, advice: str) -> Finding:
    return Finding("unknown" if good is None else "fine" if good else "look", found, advice)


def _plain(trace: Trace) -> float | None:
    return trace.lossless.plain_tpot if trace.lossless else None


def _gain(trace: Trace) -> Finding:
    s, plain = summarise(trace.rounds), _plain(trace)
    measured, predicted = speedup(plain, s.tpot), predicted_speedup(s, plain)
    if measured is None or predicted is None:
        text = _("Speedup: not measured, because plain decoding was not timed on this text.")
        return _finding(None, text, _("Run the comparison with plain decoding."))
    text = _("Speedup measured {x}, predicted from the parts {y}.")
    advice = _("If both are below 1, no tuning of the framework helps: draft less, or cheaper.")
    told = text.format(x=f"{measured:.2f}x", y=f"{predicted:.2f}x")
    return _finding(measured >= 1, told, advice)


def _length(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    if s.acceptance_length is None or s.mean_drafted is None:
        return _finding(None, _("No round."), "")
    text = _("{length} tokens per round out of {drafted} drafted and one of the target's own.")
    told = text.format(length=f"{s.acceptance_length:.2f}", drafted=f"{s.mean_drafted:.2f}")
    advice = _("Each draft that is refused costs a row of the pass: try a smaller D.")
    return _finding(s.acceptance_length >= 1.2, told, advice)


def _hits(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    text = _("The drafter had a proposal in {n} of {all} rounds in which it was asked.")
    advice = _("A lookup drafter finds nothing in new text; a head or a draft model always drafts.")
    good = None if s.hit_rate is None else s.hit_rate >= 0.5
    return _finding(good, text.format(n=s.proposing, all=s.asked), advice)


def _drafting(trace: Trace) -> Finding:
    mean = summarise(trace.rounds).mean_timing
    if not mean.total:
        return _finding(None, _("Times were not recorded."), "")
    share = mean.draft / mean.total
    text = _("Drafting takes {share} of a round, scoring {score}.")
    told = text.format(share=f"{share:.0%}", score=f"{mean.score / mean.total:.0%}")
    return _finding(share < 0.3, told, _("Above a third, a cheaper drafter or a smaller D pays."))


def _remainder(trace: Trace) -> Finding:
    share = summarise(trace.rounds).other_share
    if share is None:
        return _finding(None, _("Times were not recorded."), "")
    text = _("The remainder, outside draft, score, verify and commit, is {share} of a round.")
    advice = _("A large remainder is the framework's own: neither model explains it.")
    return _finding(share <= 0.2, text.format(share=f"{share:.0%}"), advice)


def _busy(trace: Trace) -> Finding:
    found = [a for a in alarms(trace.rounds) if a.kind == "busy"]
    if found:
        return _finding(False, found[0].sentence, _("Measure again on a quiet machine."))
    few = len(trace.rounds) < 20
    text = _("Too few equal passes to tell whether the machine was busy.")
    quiet = _("Equal passes took equally long: the machine was quiet.")
    return _finding(None if few else True, text if few else quiet, "")


def _rate(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    if s.acceptance_rate is None:
        return _finding(None, _("Nothing was drafted, so there is no rate: n/a, not 0."), "")
    text = _("{n} of {all} drafts accepted: {rate}.")
    advice = _(
        "Below 2% over 50 rounds suspect a wrong head, a wrong vocabulary, features that are not "
        "fed, or layers off by one."
    )
    told = text.format(n=s.accepted, all=s.drafted, rate=f"{s.acceptance_rate:.1%}")
    return _finding(s.acceptance_rate >= 0.02, told, advice)


def _template(trace: Trace) -> Finding:
    told = _("With the chat template.") if trace.chat else _("Raw text, no chat template.")
    advice = _("A head trained on one format drafts badly on the other: use the one it knows.")
    return _finding(trace.chat or None, told, advice)


def _overlap(trace: Trace) -> Finding:
    share = None if trace.redacted else prompt_overlap(trace.prompt, trace.output)
    if share is None:
        return _finding(None, _("How much of the output stood before is not known."), "")
    text = _("{share} of the output's runs of three tokens stood in the text before.")
    advice = _("That is what lookup drafters live on: compare prompts by it, not by length.")
    return _finding(share >= 0.3, text.format(share=f"{share:.0%}"), advice)


def _timid(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    if s.mean_drafted is None:
        return _finding(None, _("No round."), "")
    text = _("{drafted} tokens drafted per round, of D = {d}.")
    told = text.format(drafted=f"{s.mean_drafted:.2f}", d=trace.config.draft_length)
    advice = _("A drafter that only guesses what is certain has a high rate and gains nothing.")
    return _finding(s.mean_drafted >= 1, told, advice)


def _shifted(trace: Trace) -> Finding:
    """A meter that cannot fail measures nothing (tenstorrent/vllm#442)."""
    if trace.redacted:
        return _finding(None, _("The prompt was left out, so drafts cannot be shifted."), "")
    true, shifted = (shifted_acceptance(trace.rounds, trace.tokens, n) for n in (0, 1))
    if true is None or shifted is None:
        return _finding(None, _("Nothing was drafted."), "")
    text = _("The same drafts moved by one position match {shifted}, in place {true}.")
    advice = _("If a shift does not destroy acceptance, the meter is broken or the text repeats.")
    told = text.format(shifted=f"{shifted:.1%}", true=f"{true:.1%}")
    return _finding(shifted < max(0.1, true / 2), told, advice)


def _same(trace: Trace) -> Finding:
    report = trace.lossless
    if report is None or report.kind == "not-run":
        text = _("Not compared with plain decoding.")
        return _finding(None, text, _("Run the check: acceptance is no proof of correctness."))
    if report.kind == "sampled":
        text = _("Sampled: two correct runs differ token by token.")
        return _finding(None, text, _("Compare at temperature 0, or in distribution."))
    if report.kind == "identical":
        told = _("Identical over {n} tokens.").format(n=report.compared)
        return _finding(True, told, "")
    text = _("First difference at output token {at}; plain decoding preferred its own by {margin}.")
    margin = "?" if report.margin is None else f"{report.margin:.3g}"
    told = text.format(at=report.first_divergence, margin=margin)
    advice = _("Below the tolerance it is rounding; above it, look for state not rolled back.")
    return _finding(report.kind == "near-tie", told, advice)


def _gap(trace: Trace) -> Finding:
    report = trace.lossless
    if report is None or report.worst_gap is None:
        return _finding(None, _("The largest distance to the best logit is not known."), "")
    limit = report.tolerance
    text = _("No token is further than {gap} logits from the favourite of its row.")
    good = None if limit is None else report.worst_gap <= limit
    told = text.format(gap=f"{report.worst_gap:.3g}")
    return _finding(good, told, _("At temperature 0 it should be 0, or a near tie."))


def _dtype(trace: Trace) -> Finding:
    exact = trace.environment.dtype == "float32"
    text = _("Computed in {dtype}.").format(dtype=trace.environment.dtype)
    advice = _("1 + D rows are added in another order than one row: narrow types flip near ties.")
    return _finding(exact or None, text, advice)


def _spread(trace: Trace) -> Finding:
    told = spread(trace.rounds)
    return _finding(None, told, _("The glossary lists every formula with its value on this run."))


def _cut(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    text = _("accepted + rounds = {sum}, output tokens {n}; rounds cut at the end: {cut}.")
    told = text.format(sum=s.accepted + s.rounds, n=s.output_tokens, cut=s.cut)
    good = s.output_tokens == s.accepted + s.rounds - s.cut
    return _finding(good, told, _("A counter that differs by more counts past the end."))


def _clock(trace: Trace) -> Finding:
    decode = summarise(trace.rounds).timing.total
    if not decode:
        return _finding(None, _("Times were not recorded."), "")
    text = _("Decoding {decode} s, prefill {prefill} s: tokens per second with or without it.")
    told = text.format(decode=f"{decode:.2f}", prefill=f"{trace.prefill_seconds:.2f}")
    return _finding(None, told, _("Ask of every speed whether prefill is in it, and the batch."))


def _seed(trace: Trace) -> Finding:
    if trace.params.greedy:
        text = _("Temperature 0: nothing is drawn, so no seed can change anything.")
        return _finding(True, text, _("Set a temperature above 0 to draw."))
    drawn = sum(c.u is not None for r in trace.rounds for c in r.checks)
    text = _("{n} uniform numbers were drawn to decide on drafts.").format(n=drawn)
    return _finding(drawn > 0, text, _("If none is drawn, the seed is not used."))


def _past(trace: Trace) -> Finding:
    s = summarise(trace.rounds)
    reason = trace.finish.reason if trace.finish else _("not finished")
    text = _("Finish: {reason}; {n} drafts lie behind the end and do not count.")
    told = text.format(reason=reason, n=s.past_end)
    return _finding(True, told, _("Drafts behind an end token must be cut in the round itself."))
