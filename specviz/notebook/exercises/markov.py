"""Checks of notebook 10: DSpark's correction of a slot, and which cuts leave the text exact."""

from collections.abc import Callable, Mapping
from math import isclose

import torch
from torch import Tensor

from specviz.notebook.exercises import Verdict, called, exercise, right, wrong
from specviz.words import _

Chances = Mapping[str, float]
Corrected = Callable[[Tensor, int, Tensor, Tensor], Tensor]
Output = Callable[[Chances, Chances, Mapping[str, bool]], Chances]

P = {"A": 0.7, "B": 0.3}
CASES: tuple[tuple[Chances, Chances, Mapping[str, bool]], ...] = (
    (P, {"A": 0.5, "B": 0.5}, {"A": True, "B": True}),
    (P, {"A": 0.5, "B": 0.5}, {"A": False, "B": False}),
    (P, {"A": 0.5, "B": 0.5}, {"A": True, "B": False}),
    ({"A": 0.2, "B": 0.5, "C": 0.3}, {"A": 0.6, "B": 0.1, "C": 0.3}, dict.fromkeys("ABC", True)),
)


@exercise
def corrected(answer: Corrected) -> Verdict:
    """Compare on small random tables."""
    draws = torch.Generator().manual_seed(3)
    w1, w2, base = (torch.randn(*size, generator=draws) for size in ((12, 3), (5, 3), (5,)))
    for before in (0, 7, 11):
        given = base.clone()
        try:
            found = called(answer, given, before, w1, w2)
        except RuntimeError as error:  # torch's word for shapes that do not fit
            return wrong(_("Torch says: {message}").format(message=error))
        bias = w2 @ w1[before]
        if not isinstance(found, Tensor) or found.shape != base.shape:
            text = _(
                "The logits have one number per draft token, {count} here; you return {found}."
            )
            shape = list(found.shape) if isinstance(found, Tensor) else type(found).__name__
            return wrong(text.format(count=len(base), found=shape))
        if not torch.equal(given, base):
            return wrong(_("Your function changes `base` itself; other slots still need it."))
        if not torch.allclose(found, base + bias, atol=1e-5):
            return wrong(_bias_fault(found, base, bias))
    return right(_("One row of W1 and one small product: a walk costs next to nothing."))


def _bias_fault(found: Tensor, base: Tensor, bias: Tensor) -> str:
    if torch.allclose(found, bias, atol=1e-5):
        return _(
            "That is the bias alone: it is added to what the block says, not put in its place."
        )
    if torch.allclose(found, base, atol=1e-5):
        return _("That is the block alone: the token before has no effect.")
    if torch.allclose(found, base - bias, atol=1e-5):
        return _("The bias is added, not taken away.")
    return _("Take row `before` of W1, multiply it by every row of W2, and add that to `base`.")


@exercise
def output(answer: Output) -> Verdict:
    """Compare the distributions exactly, no drawing needed."""
    for p, q, verified in CASES:
        found, expected = called(answer, p, q, verified), committed(p, q, verified)
        if set(found) != set(expected):
            return wrong(_("The result has a chance for every token of p."))
        if any(not isclose(found[x], expected[x], abs_tol=1e-9) for x in p):
            text = _("For p = {p}, q = {q}, verified = {verified} you say {found}. ")
            rounded = {x: round(chance, 3) for x, chance in found.items()}
            said = text.format(p=dict(p), q=dict(q), verified=dict(verified), found=rounded)
            return wrong(said + _output_fault(p, q, verified, found))
    return right(_("Decide before the token is drawn and p comes out; look at it and it does not."))


def committed(p: Chances, q: Chances, verified: Mapping[str, bool]) -> dict[str, float]:
    """Return the exact distribution of the committed token (arXiv:2607.05147, appendix A).

    Drafts y with not `verified[y]` are cut; then the target draws from p.
    """
    out = dict.fromkeys(p, 0.0)
    left = {x: max(p[x] - q[x], 0.0) for x in p}
    total = sum(left.values())
    for y, drawn in q.items():
        accept = min(1.0, p[y] / drawn) if drawn and verified[y] else 0.0
        out[y] += drawn * accept
        for x in p:
            instead = (left[x] / total if total else 0.0) if verified[y] else p[x]
            out[x] += drawn * (1 - accept) * instead
    return out


def _output_fault(p: Chances, q: Chances, verified: Mapping[str, bool], found: Chances) -> str:
    if not isclose(sum(found.values()), 1, abs_tol=1e-6):
        return _("It sums to {sum:.3f}: some draft ends in no token, or in two.").format(
            sum=sum(found.values())
        )
    if len(set(verified.values())) > 1 and all(isclose(found[x], p[x]) for x in p):
        return _("That would be p, but this rule looked at y: go through both drafts one by one.")
    if all(isclose(found[x], q[x], abs_tol=1e-9) for x in p):
        return _("That is the draft's distribution: a refused draft must be replaced.")
    if all(verified.values()):
        return _("A refused draft is replaced from max(p - q, 0), made to sum to 1, not from p.")
    return _(
        "A draft that is cut was never judged: the target draws from p, not from the residual."
    )
