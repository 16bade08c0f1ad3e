"""A block of drafts without the host in it: a CUDA graph for each number of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.cache.kv import KVCache
from specviz.heads.dflash_config import View
from specviz.heads.packed import PackedLayer, Pass, Rotation
from specviz.models.graphs import Graphs
from specviz.models.layers import RMSNorm
from specviz.models.own_kernels import find_own_kernels

find_own_kernels()  # before the next line, which needs it
from kernels.tree_attention import (  # noqa: E402
    Attend,
    Choices,
    Inputs,
    chain_bits,
    pack_bits,
    tree_attention,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a block decoder is made of; a view is causal or sees its whole block, without window."""

    layers: Sequence[PackedLayer]
    views: Sequence[View]
    norm: RMSNorm
    rotation: Rotation
    cache: KVCache
    table: Tensor  # [vocab, hidden] embeddings
    mask_token: int
    mask: Tensor | None  # [hidden], instead of the mask token's row


class DeviceBlock:
    """Runs blocks; a result is overwritten by the next block of as many rows."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.graphs = parts, Graphs(parts.table.device)
        self._choices = Choices()
        self._bits: dict[tuple[int, bool], Tensor] = {}

    @torch.inference_mode()
    def run(self, anchor: int, rows: int) -> Tensor:
        """Run a block of `rows` after the cached context; return final-normed [rows, hidden]."""
        p = self.parts
        p.cache.reserve(rows)
        p.rotation.reserve(p.cache.capacity)
        bits = [self._seen(rows, view.causal) for view in p.views]
        pinned = self.graphs.device.type == "cuda"
        packet = torch.tensor([p.cache.length, anchor], dtype=torch.int64, pin_memory=pinned)
        key = (rows, p.cache.storage.data_ptr(), p.rotation.place)
        return self.graphs.run(key, packet, lambda numbers: self._block(numbers, rows, bits))

    def _block(self, packet: Tensor, rows: int, bits: Sequence[Tensor]) -> Tensor:
        p, past = self.parts, packet[:1]
        slots, counted = past + torch.arange(rows, device=past.device), past.int()
        step = Pass(*p.rotation.rows(slots), None)
        hidden = self._embed(packet[1:], rows)
        for index, layer in enumerate(p.layers):
            read = layer.input_norm(hidden)
            q, kv = layer.project(read, step)
            cached = p.cache.storage[index]  # [2, kv_heads, capacity, head_dim]
            cached.index_copy_(2, slots, kv.permute(1, 2, 0, 3))
            inputs = Inputs(q[None], cached[:1], cached[1:], counted, bits[index])
            longest, chain = p.cache.capacity - rows, p.views[index].causal
            how = Attend(scale=1.0, longest=longest, chain=chain)
            attended = tree_attention(inputs, how, self._choices).reshape(rows, -1)
            hidden = layer.finish(hidden, attended, read)
        return p.norm(hidden)

    def _embed(self, anchor: Tensor, rows: int) -> Tensor:
        """Embeddings [rows, hidden] of the anchor [1] and of masks after it."""
        p = self.parts
        mask = p.table[p.mask_token] if p.mask is None else p.mask
        first = torch.where((anchor == p.mask_token)[:, None], mask, p.table[anchor])
        return torch.cat((first, mask.expand(rows - 1, -1)))

    def _seen(self, rows: int, causal: bool) -> Tensor:
        """Bits of who sees whom in a block; they stay where they are, for graphs read them."""
        key = (rows, causal)
        if key not in self._bits:
            device = self.graphs.device
            whole = torch.ones(rows, rows, dtype=torch.bool, device=device)
            self._bits[key] = chain_bits(rows, device) if causal else pack_bits(whole)
        return self._bits[key]
