"""A chain is the tree in which node i follows node i - 1: same kernel, no second code path."""

import torch
from torch import Tensor

from kernels.verify_tree import Chance, Drafted, Sampling, Verdicts, verify_tree

__all__ = ["Chance", "Sampling", "Verdicts", "verify_chain"]


def verify_chain(
    logits: Tensor,
    tokens: Tensor,
    sampling: Sampling,
    chance: Chance,
    q: Tensor | None = None,
    backend: str = "auto",
) -> Verdicts:
    """Keep the longest accepted prefix and add one token; see `verify_tree`.

    logits [1 + D, vocab], tokens [D] int64, q [D, vocab] or None for point drafts.
    """
    parents = torch.arange(-1, len(tokens) - 1, dtype=torch.int32, device=tokens.device)
    drafted = Drafted(tokens=tokens, parents=parents, q=q)
    return verify_tree(logits, drafted, sampling, chance, backend)
