"""Reference of the first half: p from logits."""

import torch
from torch import Tensor

from kernels.verify_tree.call import Sampling


def target_probs(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return p [rows, vocab] of logits [rows, vocab]; ties at an edge stay in order of token id."""
    if sampling.temperature == 0:
        return torch.zeros_like(logits).scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    scaled = logits / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        smallest = scaled.topk(sampling.top_k, -1).values[:, -1:]
        scaled = scaled.masked_fill(scaled < smallest, -torch.inf)
    p = scaled.softmax(-1)
    if sampling.top_p < 1:  # the smallest set whose mass reaches top_p (arXiv:1904.09751)
        ordered, order = torch.sort(p, dim=-1, descending=True, stable=True)
        kept = ordered.masked_fill(ordered.cumsum(-1) - ordered >= sampling.top_p, 0.0)
        p = torch.zeros_like(p).scatter_(-1, order, kept)
    p = p.masked_fill(p < sampling.min_p * p.amax(-1, keepdim=True), 0.0)
    return p / p.sum(-1, keepdim=True)
