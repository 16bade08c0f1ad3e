"""A part of a vocabulary that stands for all of it in the softmax of one step."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.train.tables import Vocabulary

FREQUENT = 0.75  # share of the draw that is of the frequent ids, where they are told apart


@dataclass(frozen=True, slots=True)
class Sample:
    """A part of a vocabulary: its rows there [size], and what lifts their logits [size]."""

    vocabulary: Vocabulary
    rows: Tensor
    lift: Tensor


def draw(
    whole: Vocabulary, tokens: Tensor, size: int, seed: int, frequent: Tensor | None = None
) -> Sample:
    """Keep the rows of `tokens` and draw others by `seed` until there are `size`.

    A softmax over a quarter of the rows costs a quarter. What was drawn stands for what was not:
    its logits are lifted by the log of how many each one stands for (sampled softmax, Jean et al.,
    arXiv:1412.2007, section 3). Most of the draw is of the ids `frequent`, where given.
    """
    device, generator = tokens.device, torch.Generator().manual_seed(seed)
    labels = torch.unique(whole.index(tokens))
    labels = labels[labels >= 0].cpu()
    left = max(0, size - len(labels))
    group = torch.zeros(whole.size, dtype=torch.int8)
    counts = [left]
    if frequent is not None:
        group[whole.index(frequent.to(device)).cpu()] = 1
        counts = [left - round(FREQUENT * left), round(FREQUENT * left)]
    group[labels] = -1
    rows, lift = [labels], [torch.zeros(len(labels))]
    for number, count in enumerate(counts):
        others = (group == number).nonzero()[:, 0]
        drawn = others[torch.randperm(len(others), generator=generator)[:count]]
        rows.append(drawn)
        weight = math.log(len(others) / len(drawn)) if len(drawn) else 0.0
        lift.append(torch.full((len(drawn),), weight))
    chosen, order = torch.cat(rows).sort()
    part = whole.part(chosen.to(device))
    return Sample(part, chosen.to(device), torch.cat(lift)[order].to(device))
