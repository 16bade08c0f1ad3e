"""Copies of the target's tables in a block head, for layouts that want them in the file."""

import torch

from specviz.heads.dflash import DFlashHead, Owned
from specviz.heads.packing import target_rows
from specviz.models.target import Target


def own_tables(head: DFlashHead, target: Target) -> DFlashHead:
    """Return the same head with copies of the target's tables: the layouts of engines want them.

    Its own row for the mask token becomes a row of the embedding. The copy shares the other
    weights.
    """
    config, tensors = head.config, head.state_dict()
    mask = tensors.pop("mask_embedding", None)
    own = tensors.get("embed_tokens.weight")
    table = target.embed(range(target.config.vocab)) if own is None else own
    if own is None or mask is not None:
        table = table.clone()
    if mask is not None:
        table[config.mask_token] = mask
    tensors["embed_tokens.weight"] = table
    if "lm_head.weight" not in tensors:
        tensors["lm_head.weight"] = target_rows(target)
    owned = Owned(len(table), head=True)
    with torch.device("meta"):
        copy = type(head)(config, owned, head.draft_ids)
    copy.load_state_dict(tensors, assign=True)
    return copy
