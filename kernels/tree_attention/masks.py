"""Who sees whom among the new tokens, as packed bits: 32 tokens in an int32 word."""

from collections.abc import Sequence

import torch
from torch import Tensor

WORD = 32
ROOT = -1


def words_for(rows: int) -> int:
    """Return how many words hold one bit for each of `rows` tokens."""
    return -(-rows // WORD)


def pack_bits(seen: Tensor) -> Tensor:
    """Pack bool [..., rows, rows] into int32 [..., rows, words]: bit j of row i is seen[i, j]."""
    rows = seen.shape[-1]
    padded = torch.nn.functional.pad(seen.long(), (0, words_for(rows) * WORD - rows))
    bits = padded.view(*padded.shape[:-1], -1, WORD) << torch.arange(WORD, device=seen.device)
    words = bits.sum(-1)
    return torch.where(words >= 2**31, words - 2**32, words).int()  # bit 31 is the sign


def unpack_bits(ancestors: Tensor) -> Tensor:
    """Return bool [..., rows, rows] of int32 [..., rows, words]."""
    rows = ancestors.shape[-2]
    bits = (ancestors[..., None] >> torch.arange(WORD, device=ancestors.device)) & 1
    return bits.flatten(-2)[..., :rows].bool()


def tree_bits(parents: Sequence[int], device: torch.device | None = None) -> Tensor:
    """Pack a tree: row 0 is the root, row i + 1 sees it, the ancestors of node i, and itself.

    parents[i] is the parent of node i, ROOT (-1) under the root. Returns int32 [1 + nodes, words].
    """
    rows = 1 + len(parents)
    seen = torch.eye(rows, dtype=torch.bool)
    for node, parent in enumerate(parents):
        seen[node + 1] |= seen[parent - ROOT]
    return pack_bits(seen).to(device)


def chain_bits(rows: int, device: torch.device | None = None) -> Tensor:
    """Pack a chain of `rows` tokens, the root included: int32 [rows, words]."""
    return tree_bits(range(-1, rows - 2), device)
