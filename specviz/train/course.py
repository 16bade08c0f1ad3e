"""What the loop asks of a head in training, whatever its scheme."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from specviz.train.batches import Batch
from specviz.train.tables import Vocabulary

CHUNK = 512  # rows whose logits exist at once when only their argmax is wanted


@dataclass(frozen=True, slots=True)
class Loss:
    """What a batch costs. `parts` are shown; `tokens` were supervised."""

    total: Tensor
    parts: dict[str, float]
    tokens: int


class Course(Protocol):
    """A head, how it is taught and how its drafts are checked."""

    @property
    def scheme(self) -> str: ...

    @property
    def module(self) -> nn.Module:
        """What is trained."""
        ...

    @property
    def depth(self) -> int:
        """Drafts per round that E[L] is measured with."""
        ...

    def loss(self, batch: Batch, seed: int) -> Loss:
        """Return the loss of a batch; everything random follows from `seed`."""
        ...

    def hits(self, batch: Batch) -> Tensor:
        """Say which greedy drafts equal the text: bool [batch, length, depth].

        Entry [b, i, j] is about draft j after tokens 0 to i are committed, drafts before it being
        right; where one before it is wrong it says False.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write the head as it is published."""
        ...


def favourites(
    project: Callable[[Tensor], Tensor], hidden: Tensor, vocabulary: Vocabulary
) -> Tensor:
    """Return the most likely token [rows] of each row of hidden [rows, hidden]."""
    found = [project(part).argmax(dim=-1) for part in torch.split(hidden, CHUNK)]
    return vocabulary.tokens(torch.cat(found)) if found else hidden.new_zeros(0, dtype=torch.int64)
