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


def see_past(among: Tensor, past: int) -> Tensor:
    """Return bool [rows, past + rows]: all cached tokens, and `among` [rows, rows] of the new."""
    return torch.cat((among.new_ones(len(among), past), among), dim=1)


def within_window(mask: Tensor, positions: Tensor, past: int, window: int) -> Tensor:
    """Return `mask` [rows, past + rows] without keys `window` or more positions back.

    positions [rows] are those of the new rows; cached token i is at position i.
    """
    keys = torch.cat((torch.arange(past, device=positions.device), positions))
    return mask & (positions[:, None] - keys[None, :] < window)
