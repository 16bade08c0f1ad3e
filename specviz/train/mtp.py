"""A fresh MTP module for a target that was published without one."""

from dataclasses import replace

import torch
from torch import Tensor

from specviz.heads.mtp import MtpConfig, MtpHead
from specviz.train.eagle3 import soften
from specviz.train.linear_start import Guesser
from specviz.train.tables import LlamaDonor, Tables


def make_mtp(donor: LlamaDonor, tables: Tables, ids: Tensor, layers: int, trained: int) -> MtpHead:
    """Make a module for a target of so many layers, to be trained `trained` tokens ahead.

    It drafts `ids` through the target's own rows: the whole table would cost more than the layer.
    """
    config = MtpConfig(
        layer=replace(donor.layer_shape(), window=None),
        layers=layers,
        vocab=len(tables.embed),
        trained=trained,
        own_head=True,
        draft_vocab=len(ids),
    )
    head = MtpHead(config, ids)
    soften(head)
    assert head.lm_head is not None
    head.lm_head.weight.requires_grad_(False)
    with torch.no_grad():
        head.lm_head.weight.copy_(tables.head[ids.to(tables.head.device)])
        head.final_layernorm.weight.copy_(donor.final_norm())
    return head


@torch.no_grad()
def start_mtp(head: MtpHead, guesser: Guesser) -> None:
    """Make a module say what `guesser` says: its projection is the linear map, its layer small."""
    parts: tuple[Tensor, Tensor] = (guesser.embedding, guesser.features)
    if head.config.hidden_first:
        parts = parts[::-1]
    head.input_proj.weight.copy_(torch.cat(parts, dim=1))
    head.final_layernorm.weight.mul_(guesser.scale)
    head.decoder_layers()[0].self_attn.o_proj.weight.mul_(0.5)
