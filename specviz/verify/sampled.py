"""Rejection sampling: the committed text follows p exactly, whatever drafted it."""

import torch
from torch import Tensor

from specviz.events import ROOT, Check, Draft
from specviz.verify.draws import Draws, pick
from specviz.verify.verdict import Verdict


def verify_sampled(
    draft: Draft, q: Tensor | None, p: Tensor, draws: Draws, position: int
) -> Verdict:
    """Try siblings in turn, taking refused ones out of p (arXiv:2211.17192, 2305.09781).

    Args:
        draft: a chain or a tree.
        q: [nodes, vocab] what each node was drawn from; None for point drafts.
        p: [1 + nodes, vocab] the target after processors.
        draws: uniforms by position.
        position: text position of the first drafted token.
    """
    node, left, path, checks = ROOT, p[0], list[int](), list[Check]()
    while True:
        for sibling, child in enumerate(draft.children(node)):
            token = draft.tokens[child]
            q_row = one_hot(token, left) if q is None else q[child]
            p_token, q_token = float(left[token]), float(q_row[token])
            u = draws.uniform(position + len(path), "accept", sibling)
            # u * q < p, strictly, so that a token without mass is never accepted
            accepted = u * q_token < p_token
            threshold = min(1.0, p_token / q_token)
            checks.append(Check(child, p_token, q_token, threshold, u, accepted))
            if accepted:
                node, left = child, p[child + 1]
                path.append(child)
                break
            left = residual(left, q_row)
        else:  # every child was refused, or there was none
            u = draws.uniform(position + len(path), "sample")
            token = pick(left, u)
            return Verdict(tuple(path), token, tuple(checks), float(left[token]), u)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """Where q [vocab] proposed too little of p [vocab]; p itself if rounding leaves nothing."""
    r = (p - q).clamp_min(0)
    mass = r.sum()
    return r / mass if mass > 0 else p


def one_hot(token: int, like: Tensor) -> Tensor:
    """All mass on `token`, shaped like `like` [vocab]."""
    row = torch.zeros_like(like)
    row[token] = 1.0
    return row
