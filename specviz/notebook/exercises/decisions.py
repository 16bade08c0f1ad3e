"""Checks of notebook 2: accept and reject by hand, on four symbols."""

from collections.abc import Callable, Iterable, Sequence
from math import isclose

from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

Numbers = Sequence[float]
Accept = Callable[[Numbers, Numbers, int, float], bool]
Residual = Callable[[Numbers, Numbers], Numbers]

P = (0.1, 0.2, 0.3, 0.4)
Q = (0.4, 0.3, 0.2, 0.1)
NAMES = "abcd"


@exercise
def always(answer: Iterable[str]) -> Verdict:
    """Compare with the symbols whose p is at least their q."""
    found, expected = set(answer), {n for n, p, q in zip(NAMES, P, Q, strict=True) if p >= q}
    if found == expected:
        return right(_("The target wants them at least as often as they are proposed."))
    for name in sorted(found - expected):
        if name not in NAMES:
            return wrong(_("There is no symbol {name}; there are a, b, c and d.").format(name=name))
        text = _("{name} is proposed more often (q) than the target wants it (p): some must go.")
        return wrong(text.format(name=name))
    missing = min(expected - found)
    text = _("{name} is proposed no more often than the target wants it: nothing has to go.")
    return wrong(text.format(name=missing))


@exercise
def accept(answer: Accept) -> Verdict:
    """Try the rule on uniforms around the threshold and at the ends."""
    for p, q, x, u, keep, reason in (
        (P, Q, 0, 0.2, True, _("p / q is 0.25 and u is below it: keep.")),
        (P, Q, 0, 0.3, False, _("p / q is 0.25 and u is above it: reject.")),
        (P, Q, 1, 0.6, True, _("Look at the drafted symbol x, not at the first one.")),
        (P, Q, 3, 0.99, True, _("p is larger than q: keep, whatever u is.")),
        (P, Q, 2, 0.9, True, _("The threshold is p / q, not p: here it is above 1.")),
        ((0.0, 1.0), (0.5, 0.5), 0, 0.0, False, _("The target never says a symbol with p = 0.")),
    ):
        if bool(called(answer, p, q, x, u)) is not keep:
            text = _("For p = {p}, q = {q}, x = {x}, u = {u} you say {found}.")
            return wrong(f"{text.format(p=p, q=q, x=x, u=u, found=not keep)} {reason}")
    return right(_("u falls below p / q with probability min(1, p / q)."))


@exercise
def residual(answer: Residual) -> Verdict:
    """Compare with max(p - q, 0), normalised."""
    found = [float(value) for value in called(answer, P, Q)]
    left = [max(p - q, 0.0) for p, q in zip(P, Q, strict=True)]
    expected = [value / sum(left) for value in left]
    if len(found) != len(P):
        return wrong(_("The residual has a number for each of the four symbols."))
    if min(found) < 0:
        return wrong(_("A probability is negative: take 0 where q is larger than p."))
    if _same(found, left):
        return wrong(_("It sums to {sum:.2g}: divide by the sum.").format(sum=sum(found)))
    if _same(found, [abs(p - q) / 0.8 for p, q in zip(P, Q, strict=True)]):
        return wrong(_("Only what was proposed too seldom is left: max(p - q, 0), not |p - q|."))
    if _same(found, P):
        return wrong(_("That is p itself: a and b had their chance already, as drafts."))
    if not _same(found, expected):
        text = _("For p = {p} and q = {q} you say {found}: take max(p - q, 0), then divide.")
        return wrong(text.format(p=P, q=Q, found=[round(value, 3) for value in found]))
    same = [float(value) for value in called(answer, P, P)]
    if not _same(same, P):
        return wrong(_("Where p and q are equal nothing is left over; p itself is safe then."))
    return right(_("What was proposed too often can only come out as a draft, the rest also here."))


@exercise
def rate(answer: float) -> Verdict:
    """Compare with the sum of min(p, q)."""
    if isclose(answer, sum(map(min, P, Q)), abs_tol=0.005):
        return right(_("Each symbol is proposed and kept with probability min(p, q)."))
    if isclose(answer, sum(p * q for p, q in zip(P, Q, strict=True)), abs_tol=0.005):
        return wrong(_("That is how often two independent draws agree; the rule keeps more."))
    if isclose(answer, sum(min(1, p / q) for p, q in zip(P, Q, strict=True)) / 4, abs_tol=0.005):
        return wrong(_("The symbols are not proposed equally often: weigh min(1, p / q) with q."))
    if isclose(answer, 1 - sum(map(min, P, Q)), abs_tol=0.005):
        return wrong(_("That is how often a draft is rejected."))
    return wrong(_("Add q times min(1, p / q) over the symbols. You said {n:g}.").format(n=answer))


def _same(one: Numbers, other: Numbers) -> bool:
    return all(isclose(a, b, abs_tol=1e-6) for a, b in zip(one, other, strict=True))
