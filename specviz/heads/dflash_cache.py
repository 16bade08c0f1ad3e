"""Drafting with a block head: context keys and values are made once per token and kept."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.cache.kv import CacheShape, KVCache
from specviz.heads.dflash import DFlashHead, reach
from specviz.heads.dflash_config import View
from specviz.heads.dflash_packed import pack
from specviz.models.attention import attend, pack_mask
from specviz.models.rope import RopeTable
from specviz.models.target import Target


@dataclass(frozen=True, slots=True)
class _Turns:
    """cos and sin [rows, heads, head_dim] of whatever lies side by side in a row."""

    cos: Tensor
    sin: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addcmul(x * self.cos, x.roll(x.shape[-1] // 2, -1), self.sin)


class BlockDecoder:
    """A head on a target's device and in its dtype, with the context of one sequence.

    `read` makes the context keys and values of tokens, for all layers in one product; `block`
    runs a block against them. Those of the block itself lie past `length`, where the next write
    overwrites them.
    """

    def __init__(self, head: DFlashHead, target: Target) -> None:
        """Copy the weights of `head`; of `target` only its tables are used."""
        self.config, self._target = head.config, target
        self._device, self._dtype = target.device, target.dtype
        self._weights = pack(head, self._device, self._dtype)
        layer = head.config.layer
        self._rope = RopeTable(layer.rope, layer.head_dim, self._device)
        shape = CacheShape(
            layers=head.config.layers,
            kv_heads=layer.kv_heads,
            head_dim=layer.head_dim,
            context=target.config.context + head.config.block,
        )
        self._cache = KVCache(shape, self._device, self._dtype)
        self._views = [head.config.view(i) for i in range(head.config.layers)]

    @property
    def length(self) -> int:
        """Tokens whose context is cached."""
        return self._cache.length

    def truncate(self, length: int) -> None:
        self._cache.truncate(length)

    @torch.inference_mode()
    def read(self, features: Tensor) -> None:
        """Append the context of the next tokens: features [rows, taps, hidden]."""
        rows, c, w = len(features), self.config.layer, self._weights
        fused = w.fc(features.flatten(1).to(self._device, self._dtype))
        kv = w.context_kv(w.hidden_norm(fused))
        kv = kv.view(rows, self.config.layers, 2, c.kv_heads, c.head_dim)
        k = kv[:, :, 0].flatten(1, 2)
        if w.context_norm is not None:
            k = w.context_norm(k)
        k = self._turns(rows, (0, k.shape[1], 0))(k)
        kv = torch.stack((k.view(rows, -1, c.kv_heads, c.head_dim), kv[:, :, 1]), dim=2)
        self._cache.reserve(rows)
        for layer in range(self.config.layers):
            self._cache.write(layer, kv[:, layer])
        self._cache.append(rows)

    @torch.inference_mode()
    def block(self, anchor: int, rows: int) -> Tensor:
        """Run a block of `rows` after the context; return final-normed hidden [rows, hidden]."""
        c, w = self.config.layer, self._weights
        self._cache.reserve(rows)
        turned = c.heads + c.kv_heads
        turns = self._turns(rows, (c.heads, c.kv_heads, c.kv_heads))
        masks = {view: self._mask(view, rows) for view in set(self._views)}
        hidden = self._embed(anchor, rows)
        for index, layer in enumerate(w.layers):
            x = layer.qkv(layer.input_norm(hidden)).view(turns.cos.shape)
            if layer.qk_norm is not None:
                x[:, :turned] = layer.qk_norm(x[:, :turned])
            x = turns(x)
            k, v = self._cache.write(index, x[:, c.heads :].view(rows, 2, c.kv_heads, c.head_dim))
            attended = attend(x[:, : c.heads], k, v, masks[self._views[index]])
            hidden = layer.o(attended).add_(hidden)
            gate, up = layer.gate_up(layer.post_norm(hidden)).chunk(2, dim=-1)
            hidden = layer.down(F.silu(gate).mul_(up)).add_(hidden)
        return w.norm(hidden)

    @torch.inference_mode()
    def logits(self, hidden: Tensor) -> Tensor:
        """Logits [rows, draft_vocab], float32, of rows [rows, hidden]."""
        own = self._weights.lm_head
        return self._target.head(hidden) if own is None else own(hidden).float()

    def _turns(self, rows: int, parts: tuple[int, int, int]) -> _Turns:
        """Turns of the next rows: so many scaled queries, keys, and values left alone."""
        queries, keys, values = parts
        start, width = self.length, self.config.layer.head_dim
        self._rope.reserve(start + rows)
        size = (rows, queries + keys + values, width)
        cos, sin = torch.ones(size, device=self._device), torch.zeros(size, device=self._device)
        cos[:, : queries + keys] = self._rope.cos[start : start + rows, None]
        sin[:, : queries + keys] = self._rope.sin[start : start + rows, None]
        cos[:, :queries] *= width**-0.5  # of the attention scores
        sin[:, :queries] *= width**-0.5
        return _Turns(cos.to(self._dtype), sin.to(self._dtype))

    def _mask(self, view: View, rows: int) -> Tensor | None:
        """What is added to the scores; None when every row sees everything."""
        near = view.window is None or self.length + rows <= view.window
        if near and not view.causal:
            return None
        anchors = torch.tensor([[self.length]], device=self._device)
        context, block = reach(view, anchors, self.length, rows)
        mask = torch.cat((context[0, 0].expand(rows, -1), block), dim=1)
        return pack_mask(mask, self.config.layer.group_size, self._dtype)

    def _embed(self, anchor: int, rows: int) -> Tensor:
        mask, own = self.config.mask_token, self._weights.embed
        masks = self._weights.mask
        if masks is None or own is not None:
            ids = [anchor, *[mask] * (rows - 1)]
            block = self._target.embed(ids) if own is None else own[ids]
        else:
            block = torch.cat((self._target.embed([anchor]), masks.expand(rows - 1, -1)))
        if masks is not None:
            block = block.clone()
            block[0 if anchor == mask else 1 :] = masks
        return block
