"""Block verification (arXiv:2403.10444): never shorter than token by token in expectation."""

import torch
from torch import Tensor

from specviz.errors import ConfigError
from specviz.events import Check, Draft
from specviz.verify.draws import Draws, pick
from specviz.verify.sampled import one_hot, residual
from specviz.verify.verdict import Verdict
from specviz.words import _


def verify_block(draft: Draft, q: Tensor | None, p: Tensor, draws: Draws, position: int) -> Verdict:
    """Accept the longest prefix of a chain whose joint test passes; arguments as in `sampled`.

    w_j = min(w_{j-1} p_j / q_j, 1) is the weight carried to position j and
    h_j = r_j / (r_j + 1 - w_j) its test, with r_j the residual mass of the row after it.
    `draws` must be fresh in every round: a failed test says something about later drafts.
    """
    if not draft.is_chain:
        raise ConfigError(_("block verification is defined for chains; this draft is a tree"))
    length = len(draft)
    q_rows = [one_hot(t, p[0]) for t in draft.tokens] if q is None else list(q)
    weights, accepted, checks = [1.0], 0, list[Check]()
    for j, token in enumerate(draft.tokens):
        p_token, q_token = float(p[j][token]), float(q_rows[j][token])
        weights.append(min(weights[-1] * p_token / q_token, 1.0))
        h = weights[-1] if j + 1 == length else _test(weights[-1], p[j + 1], q_rows[j + 1])
        u = draws.uniform(position + j, "accept")
        accepted = j + 1 if u < h else accepted
        checks.append(Check(j, p_token, q_token, h, u, False))
    checks = [Check(c.node, c.p, c.q, c.threshold, c.u, accepted=c.node < accepted) for c in checks]
    left = p[accepted]
    if accepted < length:
        left = residual(weights[accepted] * left, q_rows[accepted])
        left = left / left.sum()
    u = draws.uniform(position + accepted, "sample")
    token = pick(left, u)
    return Verdict(tuple(range(accepted)), token, tuple(checks), float(left[token]), u)


def _test(weight: float, p_next: Tensor, q_next: Tensor) -> float:
    """Return h of a position before the last; 1 where p and q agree: a later one then passes."""
    rest = float(torch.clamp_min(weight * p_next - q_next, 0).sum())
    return rest / (rest + 1 - weight) if rest + 1 - weight > 0 else 1.0
