"""A fresh DFlash or DSpark head for a target, its tables begun from the target's own."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from specviz.heads.dflash import DFlashHead, Owned
from specviz.heads.dflash_config import DFlashConfig, DSparkShape
from specviz.heads.dspark import DSparkHead
from specviz.train.eagle3 import soften
from specviz.train.tables import LlamaDonor, Tables

DOUBT = 0.1  # of the final norm: a head that knows nothing should not be sure


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    """What may be chosen about a new head. `rank` is None for DFlash."""

    layers: int = 2
    block: int = 8
    mask_token: int = 0
    rank: int | None = None
    first_row: int = 1
    intermediate: int | None = None


def make_block_head(
    donor: LlamaDonor, tables: Tables, ids: Tensor, taps: Sequence[int], shape: BlockShape
) -> DFlashHead:
    """Make a head whose output rows are the target's and whose mask has a row of its own.

    It begins as the mean embedding of the draft vocabulary. Queries and keys are normed per head,
    as the published heads of this family are.
    """
    layer = donor.layer_shape()
    layer = replace(
        layer,
        intermediate=shape.intermediate or layer.intermediate,
        qk_norm=True,
        window=None,
    )
    config = DFlashConfig(
        layer=layer,
        layers=shape.layers,
        vocab=len(tables.embed),
        draft_vocab=len(ids),
        block=shape.block,
        mask_token=shape.mask_token,
        taps=tuple(taps),
        anchor_predicts=shape.first_row == 0,
        dspark=None if shape.rank is None else DSparkShape(rank=shape.rank),
    )
    make = DFlashHead if shape.rank is None else DSparkHead
    head = make(config, Owned(mask=True), ids)
    soften(head)
    here = ids.to(tables.head.device)
    assert head.lm_head is not None
    assert head.mask_embedding is not None
    head.lm_head.weight.requires_grad_(False)  # the target's own rows, so no file need hold them
    with torch.no_grad():
        head.lm_head.weight.copy_(tables.head[here])
        head.mask_embedding.copy_(tables.embed[here].float().mean(dim=0))
        head.norm.weight.copy_(DOUBT * donor.final_norm())
        if isinstance(head, DSparkHead) and head.markov_head is not None:
            head.markov_head.markov_w2.weight.zero_()  # at first the block speaks alone
            width = donor.layer_shape().hidden
            near = torch.randn(width, shape.rank or 1, device=here.device) * width**-0.5
            tokens = torch.nn.functional.rms_norm(tables.embed.float(), (width,))
            head.markov_head.markov_w1.weight.copy_(tokens @ near)  # like tokens begin alike
    return head
