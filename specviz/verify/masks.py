"""Who sees whom when root and draft are scored in one pass: positions by depth, ancestors only."""

import torch
from torch import Tensor

from specviz.events import ROOT, Draft


def draft_positions(draft: Draft, length: int) -> list[int]:
    """Return the position of the root and of each node; siblings share one.

    `length` is the number of cached tokens, which is the root's position.
    """
    return [length, *(length + depth for depth in draft.depths)]


def ancestor_mask(draft: Draft) -> Tensor:
    """Return bool [1 + nodes, 1 + nodes]: row i sees the root, its ancestors and itself."""
    rows = 1 + len(draft)
    if draft.is_chain:
        return torch.ones(rows, rows, dtype=torch.bool).tril_()
    mask = torch.eye(rows, dtype=torch.bool)
    mask[0, 0] = True
    for node, parent in enumerate(draft.parents):
        mask[node + 1] |= mask[parent - ROOT]  # parents come before children, so theirs is done
    return mask


def key_mask(among: Tensor, past: int, total: int) -> Tensor:
    """Return bool [rows, total]: every cached key, of the new ones those of `among` [rows, rows].

    Keys after the new ones, up to `total`, are spare room and never seen.
    """
    rows = len(among)
    spare = among.new_zeros(rows, total - past - rows)
    return torch.cat((among.new_ones(rows, past), among, spare), dim=1)


def within_window(mask: Tensor, positions: Tensor, past: int, window: int) -> Tensor:
    """Return `mask` [rows, total] without keys `window` or more positions back.

    positions [rows] are those of the new rows; cached token i is at position i.
    """
    keys = torch.arange(mask.shape[1], device=mask.device)
    keys[past : past + len(positions)] = positions
    return mask & (positions[:, None] - keys < window)
