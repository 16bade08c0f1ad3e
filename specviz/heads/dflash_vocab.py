"""Which target tokens a head can draft: d2t holds offsets, t2d is a mask."""

from collections.abc import Mapping

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt
from specviz.words import _


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
            _(
                "tensor d2t maps draft token {row} to {id}; the target has ids 0 to {most}. d2t "
                "holds offsets (target id minus draft id), not ids."
            ).format(row=row, id=int(ids[row]), most=vocab - 1)
        )
    if len(set(ids.tolist())) < len(ids):
        raise ModelCorrupt(_("tensor d2t maps two draft tokens to one target id; it must not"))
    return ids


def offsets(ids: Tensor) -> Tensor:
    """Turn target ids [draft_vocab] into d2t."""
    return ids - torch.arange(len(ids), device=ids.device)


def kept_mask(ids: Tensor, vocab: int) -> Tensor:
    """Return t2d, bool [vocab]: which target tokens the head can draft."""
    mask = torch.zeros(vocab, dtype=torch.bool, device=ids.device)
    mask[ids] = True
    return mask


def draft_rows(ids: Tensor, vocab: int) -> Tensor:
    """Return for each target token its row in the draft vocabulary [vocab], -1 for none."""
    rows = torch.full((vocab,), -1, dtype=torch.int64, device=ids.device)
    rows[ids] = torch.arange(len(ids), device=ids.device)
    return rows


def read_draft_ids(tensors: Mapping[str, Tensor], vocab: int, draft_vocab: int) -> Tensor | None:
    """Return the target's ids of the draft vocabulary, None if it is the whole.

    Raises:
        ModelCorrupt: d2t is missing or wrong, or t2d marks other tokens.
    """
    d2t, t2d = tensors.get("d2t"), tensors.get("t2d")
    if d2t is None:
        if draft_vocab != vocab:
            raise ModelCorrupt(
                _(
                    "the weights have no tensor d2t [{draft_vocab}], which draft_vocab_size below "
                    "the target's vocabulary of {vocab} asks for"
                ).format(draft_vocab=draft_vocab, vocab=vocab)
            )
        return None
    if d2t.shape != (draft_vocab,) or d2t.is_floating_point():
        raise ModelCorrupt(
            _(
                "tensor d2t is {shape} {dtype}; draft_vocab_size asks for [{draft_vocab}] whole "
                "numbers"
            ).format(shape=list(d2t.shape), dtype=d2t.dtype, draft_vocab=draft_vocab)
        )
    ids = absolute_ids(d2t, vocab)
    if t2d is not None and not torch.equal(t2d.bool(), kept_mask(ids, vocab)):
        raise ModelCorrupt(
            _(
                "tensor t2d {shape} does not mark the {count} tokens that d2t maps to; it is a "
                "mask over the target's vocabulary"
            ).format(shape=list(t2d.shape), count=len(ids))
        )
    return None if draft_vocab == vocab and not d2t.any() else ids
