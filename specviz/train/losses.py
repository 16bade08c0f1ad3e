"""Weights of slots, and what DSpark is taught beside cross entropy."""

import torch
from torch import Tensor
from torch.nn import functional as F


def weighted_mean(losses: Tensor, weights: Tensor) -> Tensor:
    """Mean of `losses` under `weights` of the same shape; 0 if nothing weighs."""
    return (losses * weights).sum() / weights.sum().clamp_min(1e-6)


def position_decay(depth: Tensor, gamma: float) -> Tensor:
    """Weights exp(-depth / gamma): a slot counts only if all before it are accepted."""
    return torch.exp(-depth.float() / gamma)


def pace_weights(losses: Tensor, supervised: Tensor, alpha: float = 0.5) -> Tensor:
    """D-PACE weights of slots (arXiv:2605.18810), from the draft's own chance of being right.

    losses [blocks, slots] are cross entropies, supervised is bool of that shape. With smoothed
    q_i = (1 - alpha) exp(-CE_i) + alpha, slot j weighs the sum over m >= j of the products of q up
    to m: how much of the expected length hangs on it. Detached.
    """
    q = (1 - alpha) * torch.exp(-losses.detach().float()) + alpha
    survival = torch.where(supervised, q, torch.zeros_like(q)).cumprod(dim=-1)
    return survival.flip(-1).cumsum(dim=-1).flip(-1) * supervised


def dspark_losses(logits: Tensor, labels: Tensor, teacher: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return cross entropy, total L1 distance and the acceptance rate it implies, each [rows].

    labels are the true tokens, -1 where the draft vocabulary lacks them: their cross entropy is 0.
    The acceptance rate is the sum of min(p, q) = 1 - L1 / 2, detached: the confidence head's label
    (arXiv:2607.05147, section 3).
    """
    known = labels >= 0
    log_q = F.log_softmax(logits.float(), dim=-1)
    ce = -log_q.gather(-1, labels.clamp_min(0)[:, None])[:, 0] * known
    distance = (log_q.exp() - teacher).abs().sum(dim=-1)
    return ce, distance, (1 - 0.5 * distance.detach()).clamp(0, 1)


def doubt(confidence: Tensor, rate: Tensor) -> Tensor:
    """Binary cross entropy [rows] of confidence logits against acceptance rates 0 to 1."""
    return F.binary_cross_entropy_with_logits(confidence.float(), rate, reduction="none")
