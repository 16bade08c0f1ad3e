"""Weights of a block head in the form that drafts fastest: few, large products."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.heads.dflash import DFlashHead
from specviz.heads.layers import Attention, DecoderLayer, Mlp
from specviz.models.layers import HeadNorm, Linear, RMSNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedLayer:
    """One layer as its block rows see it."""

    input_norm: RMSNorm
    qkv: Linear  # queries, keys and values below each other
    qk_norm: HeadNorm | None  # [heads + kv_heads, head_dim]
    o: Linear
    post_norm: RMSNorm
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedHead:
    """A whole head; `context_kv` makes keys and values of all layers from one row of context."""

    fc: Linear
    hidden_norm: RMSNorm
    context_kv: Linear  # [layers, 2, kv_heads, head_dim] per row
    context_norm: HeadNorm | None  # [layers * kv_heads, head_dim]
    layers: tuple[PackedLayer, ...]
    norm: RMSNorm
    lm_head: Linear | None  # None: the target's
    embed: Tensor | None  # [rows, hidden], None: the target's
    mask: Tensor | None  # [hidden] in place of the mask token's embedding


def pack(head: DFlashHead, device: torch.device, dtype: torch.dtype) -> PackedHead:
    """Copy the weights of `head`; training it further does not change them."""

    def to(weight: Tensor) -> Tensor:
        return weight.detach().to(device, dtype)

    def linear(*parts: nn.Linear) -> Linear:
        biases = [part.bias for part in parts if part.bias is not None]
        weight = torch.cat([to(part.weight) for part in parts])
        return Linear(weight, torch.cat([to(bias) for bias in biases]) if biases else None)

    def norm(part: nn.RMSNorm) -> RMSNorm:
        return RMSNorm(to(part.weight), head.config.layer.eps)

    def head_norm(*parts: tuple[nn.RMSNorm | None, int]) -> HeadNorm | None:
        rows = [to(part.weight).expand(n, -1) for part, n in parts if part is not None]
        return HeadNorm(torch.cat(rows), head.config.layer.eps) if rows else None

    def layer(part: DecoderLayer) -> PackedLayer:
        attention, mlp = part.self_attn, part.mlp
        assert isinstance(mlp, Mlp)
        heads, kv_heads = attention.shape.heads, attention.shape.kv_heads
        return PackedLayer(
            input_norm=norm(part.input_layernorm),
            qkv=linear(attention.q_proj, attention.k_proj, attention.v_proj),
            qk_norm=head_norm((attention.q_norm, heads), (attention.k_norm, kv_heads)),
            o=linear(attention.o_proj),
            post_norm=norm(part.post_attention_layernorm),
            gate_up=linear(mlp.gate_proj, mlp.up_proj),
            down=linear(mlp.down_proj),
        )

    layers = [part for part in head.layers if isinstance(part, DecoderLayer)]
    attentions: list[Attention] = [part.self_attn for part in layers]
    kv_heads = head.config.layer.kv_heads
    embed, mask = head.embed_tokens, head.mask_embedding
    return PackedHead(
        fc=linear(head.fc),
        hidden_norm=norm(head.hidden_norm),
        context_kv=linear(*(p for a in attentions for p in (a.k_proj, a.v_proj))),
        context_norm=head_norm(*((a.k_norm, kv_heads) for a in attentions)),
        layers=tuple(layer(part) for part in layers),
        norm=norm(head.norm),
        lm_head=None if head.lm_head is None else linear(head.lm_head),
        embed=None if embed is None else to(embed.weight),
        mask=None if mask is None else to(mask),
    )
