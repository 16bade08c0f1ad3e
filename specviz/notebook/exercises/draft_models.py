"""Checks of notebook 6: passes of a draft model, its cache, and what it may cost."""

from math import isclose

from specviz.notebook.exercises import Verdict, exercise, right, wrong
from specviz.words import _


@exercise
def passes(answer: int, length: int) -> Verdict:
    """Compare with one pass for each draft."""
    if answer == length:
        return right(_("Each draft needs the one before it, so there is one pass for each."))
    if answer == 1:
        return wrong(
            _("It writes word by word, as the target does; a block drafter needs one pass.")
        )
    if answer == length + 1:
        return wrong(_("The target's pass is not one of the draft model's."))
    text = _("How many tokens does it write in a round, with D = {d}? One pass for each.")
    return wrong(text.format(d=length))


@exercise
def unread(answer: int) -> Verdict:
    """Compare with the last draft and the bonus token."""
    if answer == 2:
        return right(_("It proposed its last draft without ever reading it; the bonus is new too."))
    if answer == 1:
        return wrong(_("The bonus token is one. Did the draft model ever read its own last draft?"))
    if answer == 0:
        return wrong(_("The bonus token is the target's: the draft model has not seen it yet."))
    if answer == 4:
        return wrong(
            _("To draft the second and third token it had to read the drafts before them.")
        )
    return wrong(_("Go through the round: which drafts did it read in order to write the next?"))


@exercise
def most(answer: float, length: float, verify: float, drafts: int) -> Verdict:
    """Compare with the cost of a draft at which the speedup is exactly 1."""
    expected = (length - verify) / drafts
    if isclose(answer, expected, rel_tol=0.02, abs_tol=0.002):
        return right(_("What the round gains over its verify cost, shared by its drafts."))
    if isclose(answer, (length - 1) / drafts, rel_tol=0.02, abs_tol=0.002):
        return wrong(_("The target's pass over 1 + D rows costs v, not 1."))
    if isclose(answer, length - verify, rel_tol=0.02, abs_tol=0.002):
        return wrong(_("That is for all drafts of a round together; the cost of one is asked for."))
    text = _(
        "Set E[L] / (v + D c) to 1 and solve for c: E[L] = {length:.2f}, v = {v:.2f}, D = {d}."
    )
    return wrong(text.format(length=length, v=verify, d=drafts))
