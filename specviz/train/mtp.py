"""A fresh MTP module for a target that was published without one."""

from dataclasses import replace

import torch
from torch import Tensor

from specviz.heads.mtp import MtpConfig, MtpHead
from specviz.train.eagle3 import soften
from specviz.train.linear_start import Guesser
from specviz.train.tables import LlamaDonor


def make_mtp(donor: LlamaDonor, vocab: int, layers: int, trained: int) -> MtpHead:
    """Make a module for a target of so many layers, to be trained `trained` tokens ahead."""
    layer = replace(donor.layer_shape(), window=None)
    head = MtpHead(MtpConfig(layer=layer, layers=layers, vocab=vocab, trained=trained))
    soften(head)
    with torch.no_grad():
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
