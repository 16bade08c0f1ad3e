"""Checks of notebook 3, and the statistics it uses: does the text follow p?"""

from collections.abc import Callable, Iterable, Sequence
from math import isclose

from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.notebook.exercises.decisions import P, Q
from specviz.words import _

CRITICAL = 16.27  # chi-square of four symbols (3 degrees of freedom) exceeds it once in 1,000
D = 3  # the symbol asked about

ChiSquare = Callable[[Sequence[int], Sequence[float]], float]


def chi_square(counts: Sequence[int], p: Sequence[float]) -> float:
    """Return the sum of (seen - expected)^2 / expected, what is expected being n * p."""
    n = sum(counts)
    return sum((seen - n * share) ** 2 / (n * share) for seen, share in zip(counts, p, strict=True))


@exercise
def parts(answer: tuple[float, float]) -> Verdict:
    """Compare with min(p, q) and with what rejections add, of the last symbol."""
    drafted, recovered = answer
    if not isclose(drafted, min(P[D], Q[D]), abs_tol=0.005):
        if isclose(drafted, P[D], abs_tol=0.005):
            return wrong(_("d is proposed in 10 of 100 cases only, so no more can come as drafts."))
        return wrong(_("As a draft d comes out if it is proposed (q) and kept (min(1, p / q))."))
    rejected = 1 - sum(map(min, P, Q))
    if isclose(recovered, 0.75, abs_tol=0.005):
        text = _("That is the residual of d; it only counts when the draft was rejected ({r:.1f}).")
        return wrong(text.format(r=rejected))
    if not isclose(recovered, P[D] - Q[D], abs_tol=0.005):
        return wrong(_("As recovered token: how often is a draft rejected, times residual of d?"))
    return right(_("Together that is p, and q is gone: what the drafter liked does not matter."))


@exercise
def statistic(answer: ChiSquare) -> Verdict:
    """Compare on counts that fit, that do not, and that tell wrong formulas apart."""
    for counts in ((100, 200, 300, 400), (130, 200, 300, 370), (20, 30, 25, 25)):
        found, expected = float(called(answer, counts, P)), chi_square(counts, P)
        if isclose(found, expected, rel_tol=1e-3, abs_tol=1e-6):
            continue
        text = _("For counts {counts} you say {found:.4g}.").format(counts=counts, found=found)
        return wrong(f"{text} {_fault(counts, found)}")
    return right(_("It is 0 for a perfect fit and grows with every count that is off."))


def _fault(counts: Sequence[int], found: float) -> str:
    n = sum(counts)
    pairs = [(seen, n * p) for seen, p in zip(counts, P, strict=True)]
    if isclose(found, sum((s - e) ** 2 for s, e in pairs), rel_tol=1e-3):
        return _("Divide each square by what was expected.")
    if isclose(found, sum((s - e) ** 2 / s for s, e in pairs), rel_tol=1e-3, abs_tol=1e-6):
        return _("Divide by what was expected, not by what was seen.")
    if isclose(found, sum((s - e) / e for s, e in pairs), rel_tol=1e-3, abs_tol=1e-6):
        return _("Square the difference, or too many and too few cancel out.")
    if isclose(found, sum((s / n - p) ** 2 / p for s, p in zip(counts, P, strict=True))):
        return _("Use counts, not shares: a thousand draws say more than ten.")
    return _("Add (seen - expected) squared / expected; expected is n times p.")


@exercise
def survivors(answer: Iterable[str], follows: dict[str, bool]) -> Verdict:
    """Compare with the rules whose counts follow p, as measured."""
    found, expected = set(answer), {name for name, fits in follows.items() if fits}
    if unknown := sorted(found - follows.keys()):
        text = _("There is no rule {name!r}; there are {names}.")
        return wrong(text.format(name=unknown[0], names=", ".join(follows)))
    reasons = {
        "keep all": _("Keeping every draft writes what the drafter wants: q."),
        "again from p": _("a had its share as a draft and gets more of it from p: too many a."),
        "p instead of p / q": _("Drafts that should always stay are thrown away: too few c and d."),
        "match": _("It keeps a token only if the target's own draw says so too: that is p."),
        "the rule": _("The rule is what the proof above is about."),
    }
    for name in sorted(found ^ expected):
        fits = (
            _("'{name}' follows p too.") if name in expected else _("'{name}' does not follow p.")
        )
        return wrong(f"{fits.format(name=name)} {reasons.get(name, '')}")
    return right(_("Matching is lossless but keeps less: only the rule keeps all that it may."))
