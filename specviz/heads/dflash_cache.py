"""Drafting with a block head: context keys and values are made once per token and kept."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from specviz.cache.kv import CacheShape, KVCache
from specviz.heads.device_block import DeviceBlock, Parts
from specviz.heads.dflash import DFlashHead, reach
from specviz.heads.dflash_config import View
from specviz.heads.layers import DecoderLayer
from specviz.heads.packed import PackedLayer, Pass, Rotation, make_mask
from specviz.models.layers import HeadNorm, Linear, RMSNorm
from specviz.models.llama import LlamaTarget
from specviz.models.target import Target


class BlockDecoder:
    """A head on a target's device and in its dtype, with the context of one sequence.

    `read` makes the context keys and values of tokens, for all layers in one product; `block`
    runs a block against them. Those of the block itself lie past `length`, where the next write
    overwrites them.
    """

    def __init__(self, head: DFlashHead, target: Target) -> None:
        """Copy the weights of `head`; of `target` only its tables are used."""
        self.config, self.draft_ids = head.config, None
        if head.draft_ids is not None:
            self.draft_ids = head.draft_ids.to(target.device)
        self._target, self._device, self._dtype = target, target.device, target.dtype
        self._pack(head)
        layer = head.config.layer
        self._rotation = Rotation(layer, self._device, self._dtype)
        shape = CacheShape(
            layers=head.config.layers,
            kv_heads=layer.kv_heads,
            head_dim=layer.head_dim,
            context=target.config.context + head.config.block,
        )
        self._cache = KVCache(shape, self._device, self._dtype)
        self._views = [head.config.view(i) for i in range(head.config.layers)]
        self.on_device = self.device_block() if self._device.type == "cuda" else None

    def device_block(self) -> DeviceBlock | None:
        """Return what a GPU runs blocks with; None for layers with a window.

        Then, and where the target keeps its embeddings to itself, a block runs op by op.
        """
        table = self._table
        if table is None and isinstance(self._target, LlamaTarget):
            table = self._target.weights.embed
        if table is None or any(view.window is not None for view in self._views):
            return None
        return DeviceBlock(
            Parts(
                layers=self._layers,
                views=self._views,
                norm=self._norm,
                rotation=self._rotation,
                cache=self._cache,
                table=table,
                mask_token=self.config.mask_token,
                mask=self._mask,
            )
        )

    def _pack(self, head: DFlashHead) -> None:
        layers, eps = head.decoder_layers(), head.config.layer.eps
        self._fc = self._linear([head.fc])
        self._hidden_norm = RMSNorm(self._here(head.hidden_norm.weight), eps)
        self._context_kv = self._linear(
            part for layer in layers for part in (layer.self_attn.k_proj, layer.self_attn.v_proj)
        )
        self._context_norm = self._key_norms(layers)
        self._layers = [PackedLayer(layer, self._device, self._dtype) for layer in layers]
        self._norm = RMSNorm(self._here(head.norm.weight), eps)
        self._head = None if head.lm_head is None else self._linear([head.lm_head])
        embed, mask = head.embed_tokens, head.mask_embedding
        self._table = None if embed is None else self._here(embed.weight)
        self._mask = None if mask is None else self._here(mask)

    @property
    def length(self) -> int:
        """Tokens whose context is cached."""
        return self._cache.length

    def truncate(self, length: int) -> None:
        self._cache.truncate(length)

    @torch.inference_mode()
    def read(self, features: Tensor) -> None:
        """Append the context of the next tokens: features [rows, taps, hidden]."""
        rows, c = len(features), self.config.layer
        fused = self._fc(features.flatten(1).to(self._device, self._dtype))
        kv = self._context_kv(self._hidden_norm(fused))
        kv = kv.view(rows, self.config.layers, 2, c.kv_heads, c.head_dim)
        k = kv[:, :, 0].flatten(1, 2)
        if self._context_norm is not None:
            k = self._context_norm(k)
        cos, sin = (x[:, c.heads, None] for x in self._turns(rows))  # of the first key
        k = torch.addcmul(k * cos, k.roll(c.head_dim // 2, -1), sin)
        kv = torch.stack((k.view(rows, -1, c.kv_heads, c.head_dim), kv[:, :, 1]), dim=2)
        self._cache.reserve(rows)
        for layer in range(self.config.layers):
            self._cache.write(layer, kv[:, layer])
        self._cache.append(rows)

    @torch.inference_mode()
    def block(self, anchor: int, rows: int) -> Tensor:
        """Run a block of `rows` after the context; return final-normed hidden [rows, hidden]."""
        if self.on_device is not None:
            return self.on_device.run(anchor, rows)
        self._cache.reserve(rows)
        cos, sin = self._turns(rows)
        steps = {
            view: Pass(cos, sin, self._seen(view, rows)) for view in dict.fromkeys(self._views)
        }
        hidden = self._embed(anchor, rows)
        for index, layer in enumerate(self._layers):
            step = steps[self._views[index]]
            hidden = layer.run(layer.input_norm(hidden), hidden, step, (self._cache, index))
        return self._norm(hidden)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [rows, draft vocab], float32, of rows [rows, hidden]."""
        return self._target.head(hidden) if self._head is None else self._head(hidden).float()

    def _turns(self, rows: int) -> tuple[Tensor, Tensor]:
        return self._rotation.at(range(self.length, self.length + rows))

    def _seen(self, view: View, rows: int) -> Tensor | None:
        if not view.causal and (view.window is None or self.length + rows <= view.window):
            return None
        anchors = torch.tensor([[self.length]], device=self._device)
        context, block = reach(view, anchors, self.length, rows)
        seen = torch.cat((context[0, 0].expand(rows, -1), block), dim=1)
        return make_mask(seen, self.config.layer, self._dtype)

    def _embed(self, anchor: int, rows: int) -> Tensor:
        """Embeddings [rows, hidden] of the anchor and of masks after it."""
        mask, table = self.config.mask_token, self._table
        known = [anchor] if self._mask is not None else [anchor, *[mask] * (rows - 1)]
        block = self._target.embed(known) if table is None else table[known]
        if self._mask is None:
            return block
        masks = self._mask.expand(rows - 1, -1)
        return torch.cat((self._mask[None] if anchor == mask else block, masks))

    def _here(self, weight: Tensor) -> Tensor:
        return weight.detach().to(self._device, self._dtype)

    def _linear(self, parts: Iterable[nn.Linear]) -> Linear:
        parts = tuple(parts)
        biases = [self._here(part.bias) for part in parts if part.bias is not None]
        weight = torch.cat([self._here(part.weight) for part in parts])
        return Linear(weight, torch.cat(biases) if biases else None, alike=False)

    def _key_norms(self, layers: Iterable[DecoderLayer]) -> HeadNorm | None:
        norms = [layer.self_attn.k_norm for layer in layers]
        c = self.config.layer
        rows = [self._here(n.weight).expand(c.kv_heads, -1) for n in norms if n is not None]
        return HeadNorm(torch.cat(rows), c.eps) if rows else None
