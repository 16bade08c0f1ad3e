"""Which target tokens a head can draft, and the tables it shares with the target or owns."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt
from specviz.models.target import Target


@dataclass(frozen=True, slots=True)
class Tables:
    """A target's embedding and output head [vocab, hidden], for training and for export."""

    embed: Tensor
    head: Tensor

    @classmethod
    def of(cls, target: Target) -> "Tables":
        """Copy both tables out of any target; the head is read through its own function."""
        embed = target.embed(range(target.config.vocab))
        unit = torch.eye(target.config.hidden, dtype=target.dtype, device=target.device)
        return cls(embed.clone(), target.head(unit).T.to(target.dtype).contiguous())


def absolute_ids(d2t: Tensor, vocab: int) -> Tensor:
    """Turn offsets d2t [draft_vocab] into target ids: id = row + offset.

    Raises:
        ModelCorrupt: An id is out of range or said twice, as when absolute ids were stored.
    """
    ids = torch.arange(len(d2t), device=d2t.device) + d2t.to(torch.int64)
    outside = (ids < 0) | (ids >= vocab)
    if outside.any():
        row = int(outside.nonzero()[0])
        raise ModelCorrupt(
            f"tensor d2t maps draft token {row} to {int(ids[row])}; the target has ids 0 to "
            f"{vocab - 1}. d2t holds offsets (target id minus draft id), not ids."
        )
    if len(set(ids.tolist())) < len(ids):
        raise ModelCorrupt("tensor d2t maps two draft tokens to one target id; it must not")
    return ids


def offsets(ids: Tensor) -> Tensor:
    """Turn target ids [draft_vocab] into d2t."""
    return ids - torch.arange(len(ids), device=ids.device)


def kept_mask(ids: Tensor, vocab: int) -> Tensor:
    """Return t2d, bool [vocab]: which target tokens the head can draft."""
    mask = torch.zeros(vocab, dtype=torch.bool, device=ids.device)
    mask[ids] = True
    return mask
