"""EAGLE-2's dynamic tree: grow where the head is sure, keep the best nodes (arXiv:2406.16858)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.config import require
from specviz.errors import NumericsError
from specviz.events import ROOT, Draft
from specviz.heads.runner import Reading, Runner
from specviz.words import _

NEVER = -torch.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeShape:
    """How far a tree grows before it is cut to the budget."""

    top_k: int = 8  # children per node, and nodes that grow per level
    depth: int = 5  # levels; the longest path

    def __post_init__(self) -> None:
        require(1 <= self.top_k <= 64, "top_k", self.top_k, _("1 to 64"))
        require(1 <= self.depth <= 32, "depth", self.depth, _("1 to 32"))


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree and, per node, the head's probability of it after its parent."""

    draft: Draft
    scores: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLimits:
    """What a tree may hold. Its nodes are points: no draw decides anything."""

    budget: int  # most nodes
    least: float  # no node whose probability after its parent is below
    ends: frozenset[int]  # nodes without children


class _Grown:
    """All nodes so far, in the order they were made, so parents come first."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.sums: list[float] = []  # log-probability of the path
        self.own: list[float] = []  # log-probability after the parent

    def add(self, token: int, parent: int, own: float) -> None:
        self.tokens.append(token)
        self.parents.append(parent)
        self.own.append(own)
        self.sums.append(own + (0.0 if parent == ROOT else self.sums[parent]))


@torch.inference_mode()
def draft_tree(runner: Runner, reading: Reading, shape: TreeShape, limits: TreeLimits) -> Tree:
    """Grow `depth` levels after `reading`, the last true row, then keep the best `budget` nodes.

    A path is never surer than its beginning, so the best nodes include their parents. Drafted
    rows are dropped again.
    """
    grown = _Grown()
    _add_children(grown, [ROOT], reading.logits, runner, shape, limits)
    front = [i for i, token in enumerate(grown.tokens) if token not in limits.ends]
    hidden = reading.hidden[-1:].expand(len(front), -1)
    among = torch.zeros(1, 0, dtype=torch.bool).expand(len(front), -1)  # whom the front descends
    for level in range(1, shape.depth):
        if not front:
            break
        among = torch.cat((among, torch.eye(len(front), dtype=torch.bool)), dim=1)
        reading = runner.step(hidden, [grown.tokens[i] for i in front], level, among)
        first = len(grown.tokens)
        _add_children(grown, front, reading.logits, runner, shape, limits)
        new = sorted(range(first, len(grown.tokens)), key=lambda i: -grown.sums[i])
        rows = {node: row for row, node in enumerate(front)}
        front = sorted(i for i in new[: shape.top_k] if grown.tokens[i] not in limits.ends)
        above = torch.tensor([rows[grown.parents[i]] for i in front], dtype=torch.int64)
        among, hidden = among[above], reading.hidden[above.to(reading.hidden.device)]
    runner.drop_drafted()
    return _best(grown, limits.budget)


def _add_children(
    grown: _Grown,
    front: list[int],
    logits: Tensor,
    runner: Runner,
    shape: TreeShape,
    limits: TreeLimits,
) -> None:
    """Add the `top_k` favourites after each node of `front`, by logits [front, draft vocab]."""
    best = logits.log_softmax(-1).topk(min(shape.top_k, logits.shape[-1]), dim=-1)
    if not bool(torch.isfinite(best.values[:, 0]).all()):
        raise NumericsError(
            _(
                "the draft head gave NaN or Inf while text position {count} was drafted. Check its "
                "weights, or try dtype float32."
            ).format(count=len(runner.text))
        )
    ids = best.indices if runner.draft_ids is None else runner.draft_ids[best.indices]
    floor = NEVER if limits.least <= 0 else torch.tensor(limits.least).log().item()
    for node, tokens, values in zip(front, ids.tolist(), best.values.tolist(), strict=True):
        for token, value in zip(tokens, values, strict=True):
            if value >= floor:
                grown.add(token, node, value)


def _best(grown: _Grown, budget: int) -> Tree:
    ranked = sorted(range(len(grown.tokens)), key=lambda i: (-grown.sums[i], i))[:budget]
    kept = sorted(ranked)
    at = {node: i for i, node in enumerate(kept)} | {ROOT: ROOT}
    draft = Draft(tuple(grown.tokens[i] for i in kept), tuple(at[grown.parents[i]] for i in kept))
    scores = torch.tensor([grown.own[i] for i in kept]).exp().tolist()
    return Tree(draft, tuple(scores))
