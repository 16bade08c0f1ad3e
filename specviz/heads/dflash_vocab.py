"""Which target tokens a head can draft, and the tables it shares with the target or owns."""

import torch
from torch import Tensor

from specviz.errors import ModelCorrupt
from specviz.heads.dflash import DFlashHead, Owned
from specviz.models.target import Target


def own_tables(head: DFlashHead, target: Target) -> DFlashHead:
    """Return the same head with copies of the target's tables: the layouts of engines want them.

    Its own row for the mask token becomes a row of the embedding. The copy shares the other
    weights.
    """
    config, tensors = head.config, head.state_dict()
    mask = tensors.pop("mask_embedding", None)
    if "embed_tokens.weight" not in tensors:
        table = target.embed(range(target.config.vocab)).clone()
        if mask is not None:
            table[config.mask_token] = mask
        tensors["embed_tokens.weight"] = table
    if "lm_head.weight" not in tensors:
        unit = torch.eye(target.config.hidden, dtype=target.dtype, device=target.device)
        tensors["lm_head.weight"] = target.head(unit).T.to(target.dtype)
    owned = Owned(len(tensors["embed_tokens.weight"]), head=True)
    with torch.device("meta"):
        copy = type(head)(config, owned, head.draft_ids)
    copy.load_state_dict(tensors, assign=True)
    return copy


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
