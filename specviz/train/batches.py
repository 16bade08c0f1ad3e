"""Which examples make which batch, and the batches themselves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.train.features import Source

POOL = 16  # batches whose examples are sorted by length, so that little is padding


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of one step, padded at the end.

    tokens [batch, length]; supervised, bool of that shape, marks tokens of responses; features
    [batch, length, taps, hidden] hold the hidden states `taps`, of which the last is final-normed.
    """

    tokens: Tensor
    supervised: Tensor
    features: Tensor
    taps: tuple[int, ...]

    def select(self, taps: Sequence[int]) -> Tensor:
        """Features of some taps [batch, length, len(taps), hidden]."""
        index = [self.taps.index(tap) for tap in taps]
        if index == list(range(len(self.taps))):
            return self.features
        return self.features[:, :, index]

    def text(self, row: int) -> "Batch":
        """Return one text as a batch of its own."""
        part = slice(row, row + 1)
        return Batch(self.tokens[part], self.supervised[part], self.features[part], self.taps)

    @property
    def final(self) -> Tensor:
        """Final-normed hidden states [batch, length, hidden]: the target's head reads them."""
        return self.features[:, :, -1]


def collate(source: Source, indices: Sequence[int], device: torch.device) -> Batch:
    """Read the examples `indices` of `source` into one batch."""
    examples = [source.examples[index] for index in indices]
    length = max(len(example) for example in examples)
    tokens = torch.zeros(len(examples), length, dtype=torch.int64)
    supervised = torch.zeros(len(examples), length, dtype=torch.bool)
    features: Tensor | None = None
    for row, (index, example) in enumerate(zip(indices, examples, strict=True)):
        found = source.features(index)
        if features is None:
            features = found.new_zeros(len(examples), length, *found.shape[1:])
        features[row, : len(example)] = found
        tokens[row, : len(example)] = torch.tensor(example.tokens)
        supervised[row, example.prompt_length : len(example)] = True
    assert features is not None  # a batch has an example
    return Batch(tokens.to(device), supervised.to(device), features.to(device), tuple(source.taps))


def plan(lengths: Sequence[int], budget: int, seed: int) -> list[list[int]]:
    """Cut one pass over examples into batches of at most `budget` padded tokens each.

    Examples are drawn in a random order of `seed`, sorted by length within pools of a few batches,
    and the batches of a pool are shuffled. An example longer than `budget` has a batch of its own.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(lengths), generator=generator).tolist()
    mean = max(1, sum(lengths) // max(1, len(lengths)))
    pool = POOL * max(1, budget // mean)
    batches: list[list[int]] = []
    for start in range(0, len(order), pool):
        found = _pack(sorted(order[start : start + pool], key=lengths.__getitem__), lengths, budget)
        shuffled = torch.randperm(len(found), generator=generator).tolist()
        batches += [found[i] for i in shuffled]
    return batches


def _pack(indices: Sequence[int], lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Fill batches in order; lengths rise, so the last is what all are padded to."""
    batches: list[list[int]] = [[]]
    for index in indices:
        if batches[-1] and (len(batches[-1]) + 1) * lengths[index] > budget:
            batches.append([])
        batches[-1].append(index)
    return [batch for batch in batches if batch]
