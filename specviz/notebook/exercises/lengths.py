"""Checks of notebook 4: speedup, the ceiling of E[L], and where break-even lies."""

from collections.abc import Callable
from math import isclose

from specviz.cost.speedup import speedup as expected
from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

Speedup = Callable[[float, float, float], float]


@exercise
def speedup(answer: Speedup) -> Verdict:
    """Compare on plain decoding, on a good draft and on one that costs more than it gives."""
    for length, verify, draft, reason in (
        (1.0, 1.0, 0.0, _("Plain decoding: one token for one pass, so the speedup is 1.")),
        (3.0, 1.2, 0.0, _("Verifying more rows costs more than a plain pass: divide by v.")),
        (3.0, 1.0, 0.5, _("The time of drafting comes on top of that of verifying.")),
        (1.2, 1.1, 0.9, _("Nothing forbids a speedup below 1: this draft is not worth its cost.")),
    ):
        found = float(called(answer, length, verify, draft))
        if not isclose(found, expected(length, verify, draft), rel_tol=1e-6):
            text = _("For E[L] = {length}, v = {verify}, draft = {draft} you say {found:.3g}.")
            said = text.format(length=length, verify=verify, draft=draft, found=found)
            return wrong(f"{said} {reason}")
    return right(_("Tokens of a round divided by its time, in plain passes, each worth one token."))


@exercise
def ceiling(answer: float, rate: float) -> Verdict:
    """Compare with the sum of the geometric series."""
    if isclose(answer, 1 / (1 - rate), rel_tol=0.01):
        return right(_("1 + a + a² + ... = 1 / (1 - a). No D can give more than that."))
    if isclose(answer, rate / (1 - rate), rel_tol=0.01):
        return wrong(_("Those are the accepted drafts; the target's own token counts too."))
    if isclose(answer, 1 + rate, rel_tol=0.01):
        return wrong(_("That is E[L] of D = 1; the later positions add a², a³ and so on."))
    if answer > 100:
        return wrong(_("It does not grow without end: position k only counts with chance a^k."))
    return wrong(_("Add 1 + a + a² + a³ + ... for a = {rate:g}.").format(rate=rate))


@exercise
def needed(answer: float, verify: float, each: float, length: int) -> Verdict:
    """Compare with the cost of the round in plain passes."""
    if isclose(answer, verify + length * each, rel_tol=0.01):
        return right(_("A round must commit as many tokens as it costs plain passes."))
    if isclose(answer, verify + each, rel_tol=0.01):
        return wrong(_("This drafter makes one pass for each draft: D of them."))
    if isclose(answer, verify, rel_tol=0.01):
        return wrong(_("The drafts cost time as well."))
    if isclose(answer, 1 + length * each, rel_tol=0.01):
        return wrong(_("The target's pass costs v, not 1: it has 1 + D rows."))
    if isclose(answer, verify + length * each - 1, rel_tol=0.01):
        return wrong(_("Count the target's own token: E[L] includes it."))
    text = _("Set the speedup E[L] / (v + D c) to 1, with v = {v:g}, D = {d}, c = {c:g}.")
    return wrong(text.format(v=verify, d=length, c=each))
