"""Sequential temperature scaling: make a confidence head's survival chances come true."""

from collections.abc import Sequence

import torch
from torch import Tensor

from specviz.config import require

GRID = tuple(round(0.3 * 1.08**step, 4) for step in range(32))  # 0.3 to 3.3
BINS = 15


def calibrate(logits: Tensor, accepted: Tensor, grid: Sequence[float] = GRID) -> tuple[float, ...]:
    """Return one temperature per slot (arXiv:2607.05147, section 5).

    Slot by slot, earlier temperatures fixed, the one is chosen with which the product of
    confidences up to the slot is closest to how often drafts survived it.

    Args:
        logits: confidence logits [blocks, slots] of whole blocks, drafted with nothing cut: a
            slot that was never verified would count as refused.
        accepted: how many drafts of each block were accepted [blocks].
        grid: temperatures to try.
    """
    blocks, slots = logits.shape
    require(len(accepted) == blocks > 0, "accepted", tuple(accepted.shape), f"[{max(blocks, 1)}]")
    before, chosen = torch.ones(blocks, dtype=torch.float64), list[float]()
    for slot in range(slots):
        survived = (accepted > slot).double()
        tried = {t: before * (logits[:, slot].double() / t).sigmoid() for t in grid}
        best = min(grid, key=lambda t: calibration_error(tried[t], survived))
        chosen.append(best)
        before = tried[best]
    return tuple(chosen)


def calibration_error(chances: Tensor, came_true: Tensor, bins: int = BINS) -> float:
    """Return the expected calibration error: how far chances [n] are from the rates they promise.

    Chances are binned by size; each bin counts by how many fall into it.
    """
    which = (chances * bins).long().clamp(0, bins - 1)
    gaps = torch.zeros(bins, dtype=torch.float64)
    gaps.index_add_(0, which, chances.double() - came_true.double())
    return float(gaps.abs().sum() / len(chances))
