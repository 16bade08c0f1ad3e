"""Checks of notebook 1: how many passes a text takes, what one reads, what a draft could save."""

from collections.abc import Mapping
from math import isclose

from specviz.notebook.exercises import Verdict, exercise, right, wrong
from specviz.notebook.passes import weight_count
from specviz.notebook.runs import model
from specviz.traces.schema import Trace
from specviz.words import _

MEGA = 1e6


@exercise
def passes(answer: int, trace: Trace) -> Verdict:
    """Compare with the rounds of the run, each of which is one pass."""
    rounds, output, prompt = len(trace.rounds), len(trace.output), len(trace.prompt)
    if answer == rounds:
        return right(_("One pass for each token: none can be chosen before the one it follows."))
    if answer == 1:
        return wrong(_("One pass chooses one token; the next pass must read that token first."))
    if answer == output + prompt:
        return wrong(_("The prompt's tokens are known: they were read together, not one by one."))
    if answer == output - 1:
        return wrong(_("The first token of the output needs a pass as well."))
    text = _("Count the rounds in the pane: plain decoding makes one pass in each. You said {n}.")
    return wrong(text.format(n=answer))


@exercise
def megabytes(answer: float) -> Verdict:
    """Compare with the bytes of all weights, in the dtype in which the model is held here."""
    weights, size = weight_count() / MEGA, model().target.dtype.itemsize
    if isclose(answer, weights * size, rel_tol=0.03):
        return right(_("Every weight is used once for each token, so each pass reads all of them."))
    if isclose(answer, weights * size * MEGA, rel_tol=0.03):
        return wrong(_("Those are bytes; the question asks for MB, millions of bytes."))
    if isclose(answer, weights * size * 8, rel_tol=0.03):
        return wrong(_("Those are megabits: eight bits make one byte."))
    if isclose(answer, weights, rel_tol=0.03):
        text = _("That is the number of weights, in millions; here each has {size} bytes.")
        return wrong(text.format(size=size))
    if any(isclose(answer, weights * other, rel_tol=0.03) for other in (2, 4)):
        text = _("Here a weight has {bits} bits, that is {size} bytes.")
        return wrong(text.format(bits=8 * size, size=size))
    text = _("Multiply {weights:.1f} million weights by the bytes of one. You said {answer:g} MB.")
    return wrong(text.format(weights=weights, answer=answer))


@exercise
def gain(answer: float, seconds: Mapping[int, float]) -> Verdict:
    """Compare with five tokens for the price of one pass over five rows."""
    ratio = seconds[5] / seconds[1]
    if isclose(answer, 5 / ratio, rel_tol=0.02):
        return right(_("Five tokens for one pass over five rows: this is the most D = 4 can give."))
    if isclose(answer, 4 / ratio, rel_tol=0.02):
        return wrong(_("Four drafts, and the target's own token after them: five tokens in all."))
    if isclose(answer, ratio / 5, rel_tol=0.02):
        return wrong(_("Upside down: speedup is plain time divided by the time with drafts."))
    if isclose(answer, 5, rel_tol=1e-6):
        return wrong(_("That would hold if five rows cost the same as one; use what you measured."))
    text = _(
        "Plain decoding takes 5 x {one:.1f} ms, the pass over five rows {five:.1f} ms. Divide."
    )
    return wrong(text.format(one=1000 * seconds[1], five=1000 * seconds[5]))
