"""A fresh EAGLE-3 head for a target, begun from the target's own rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from specviz.heads.eagle3 import Eagle3Config, Eagle3Head
from specviz.train.tables import LlamaDonor, Tables

OUTLETS = ("o_proj.weight", "down_proj.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Eagle3Shape:
    """What may be chosen about a new head."""

    kv_heads: int | None = None  # None: one per query head
    intermediate: int | None = None  # None: as in the target
    fc_norm: bool = True


def default_taps(layers: int) -> tuple[int, ...]:
    """Return the low, middle and high hidden state of the reference code.

    A target too small for three of those has its last ones read.
    """
    if layers < 7:
        return tuple(range(max(0, layers - 3), layers))
    return 2, layers // 2, layers - 3


def make_eagle3(
    donor: LlamaDonor, tables: Tables, ids: Tensor, taps: Sequence[int], shape: Eagle3Shape
) -> Eagle3Head:
    """Make a head whose output rows and norm are the target's and whose layer is random.

    One KV head per query head by default: the next token's embedding reaches the residual stream
    through the values alone, and a few KV heads are a narrow door. The layer is not copied from
    the target: a copy is sure of the token that is already known.
    """
    layer = donor.layer_shape()
    layer = replace(
        layer,
        kv_heads=shape.kv_heads or layer.heads,
        intermediate=shape.intermediate or layer.intermediate,
        window=None,
    )
    config = Eagle3Config(
        layer=layer,
        taps=tuple(taps),
        target_hidden=layer.hidden,
        vocab=len(tables.embed),
        draft_vocab=len(ids),
        fc_norm=shape.fc_norm,
    )
    head = Eagle3Head(config, ids)
    soften(head)
    assert head.lm_head is not None
    with torch.no_grad():
        head.lm_head.weight.copy_(tables.head[ids.to(tables.head.device)])
    head.lm_head.weight.requires_grad_(False)  # the target's own rows, so no file need hold them
    with torch.no_grad():
        head.norm.weight.copy_(donor.final_norm())
    return head


def soften(module: nn.Module, spread: float = 0.02) -> None:
    """Give matrices small random values, smaller ones where they write to the residual stream."""
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            scale = 0.5 * spread if name.endswith(OUTLETS) else spread
            nn.init.normal_(parameter, std=scale)
