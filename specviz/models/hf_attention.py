"""Our packed attention for models of transformers, registered under a name they can be given.

`model.set_attn_implementation(NAME)` after `register()`: keys and values are then never repeated
for the query heads of a group, whatever the mask.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from specviz.models.own_kernels import find_own_kernels

find_own_kernels()  # before the next line, which needs it
from kernels.tree_attention import Attend, Inputs, chain_bits, tree_attention  # noqa: E402

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "specviz_packed"
FEW = 64  # rows up to which a chain is packed; more is a prefill, which has kernels of its own


def register() -> None:
    """Make NAME known to transformers; doing it again changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, packed_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)


def adopt(
    model: "PreTrainedModel",
    logits: Callable[[], Tensor],
    near: Callable[[Tensor, Tensor], bool],
) -> bool:
    """Give a model our attention if its `logits` stay `near` what they were; say whether it has it.

    Models with sinks, soft caps or windows say something else under it and keep their own.
    """
    before, expected = model.config._attn_implementation, logits()
    register()
    try:
        model.set_attn_implementation(NAME)
        if near(logits(), expected):
            return True
    except (TypeError, ValueError, RuntimeError, NotImplementedError):  # not made for it
        pass
    model.set_attn_implementation(before)
    return False


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_options: object,
) -> tuple[Tensor, None]:
    """Attend as transformers asks: query [batch, heads, rows, d], key [batch, kv_heads, total, d].

    Without a mask the rows are the newest of a chain; a mask [batch, 1, rows, total] is bool or is
    added to the scores. Returns [batch, rows, heads, d] and no weights.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    rows, total = query.shape[2], key.shape[2]
    if attention_mask is not None:
        return _masked(query, key, value, attention_mask, scale), None
    if rows > FEW:
        out = F.scaled_dot_product_attention(
            query, key, value, is_causal=rows == total, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2), None
    past = torch.full((len(query),), total - rows, dtype=torch.int32, device=query.device)
    inputs = Inputs(query.transpose(1, 2), key, value, past, chain_bits(rows, query.device))
    how = Attend(scale=scale, longest=total - rows, chain=True)
    return tree_attention(inputs, how), None


def _masked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, scale: float) -> Tensor:
    batch, heads, rows, width = query.shape
    kv_heads = key.shape[1]
    group = heads // kv_heads
    packed = query.reshape(batch, kv_heads, group * rows, width)
    seen = mask[..., : key.shape[2]]
    seen = seen.expand(batch, 1, rows, key.shape[2]).repeat(1, 1, group, 1)
    out = F.scaled_dot_product_attention(packed, key, value, attn_mask=seen, scale=scale)
    return out.view(batch, heads, rows, width).transpose(1, 2)
