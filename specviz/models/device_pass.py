"""A scoring pass without the host in it: lengths, positions and mask are numbers on the device.

So one CUDA graph per number of rows serves every round, and attention runs our packed kernel.
"""

from collections.abc import Hashable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.cache.kv import KVCache
from specviz.events import Attention as Ran
from specviz.events import Draft
from specviz.models.graphs import Graphs
from specviz.models.llama_config import LlamaConfig
from specviz.models.llama_weights import LayerWeights, LlamaWeights
from specviz.models.own_kernels import find_own_kernels
from specviz.models.rope import RopeTable
from specviz.verify.masks import draft_positions

find_own_kernels()  # before the next line, which needs it
from kernels.tree_attention import (  # noqa: E402
    Attend,
    Choices,
    Inputs,
    choose,
    plan_of,
    tree_attention,
    tree_bits,
)


class DevicePass:
    """Scores root and draft of a Llama-family model that sees its whole past in every layer."""

    def __init__(
        self,
        config: LlamaConfig,
        weights: LlamaWeights,
        rope: RopeTable,
        taps: tuple[int, ...] = (),
        choices: Choices | None = None,
    ) -> None:
        self.config, self.weights, self.rope, self.taps = config, weights, rope, taps
        self.graphs = Graphs(weights.embed.device)
        self.choices = Choices() if choices is None else choices
        self._ran: dict[tuple[int, bool], Ran] = {}  # by rows, and whether they were a chain
        self._keys: dict[tuple[int, bool], Hashable] = {}  # of the graph that ran them last

    def score(self, root: int, draft: Draft, cache: KVCache) -> Tensor:
        """Return logits [1 + nodes, vocab] float32; keys, values and taps are past the cache.

        The result is overwritten by the next pass over as many rows.
        """
        rows, past = 1 + len(draft), cache.length
        cache.reserve(rows)
        self.rope.reserve(cache.capacity)
        packet = self._packet(root, draft, past)
        places = (cache.storage.data_ptr(), self.rope.cos.data_ptr())
        key = (rows, draft.is_chain, cache.capacity, places)
        self._keys[rows, draft.is_chain] = key

        def work(numbers: Tensor) -> Tensor:
            return self._pass(numbers, rows, draft.is_chain, cache)

        return self.graphs.run(key, packet, work)

    def ran(self, draft: Draft) -> Ran:
        """Return what scored such a draft here, an empty answer if none was scored."""
        what = (1 + len(draft), draft.is_chain)
        found = self._ran.get(what, Ran())
        return replace(found, eager=self.graphs.reasons.get(self._keys.get(what), ""))

    def _note(self, inputs: Inputs, how: Attend) -> None:
        backend = choose(inputs, how, self.choices).backend
        tile = plan_of(inputs, how).block_m if backend == "triton" else None
        self._ran[inputs.rows, how.chain] = Ran(backend, tile)

    def _packet(self, root: int, draft: Draft, past: int) -> Tensor:
        """All that a round brings, in one copy: past, tokens, positions, ancestors."""
        bits = tree_bits(draft.parents)
        rows = len(bits)
        packet = torch.empty(
            1 + rows * (2 + bits.shape[1]),
            dtype=torch.int64,
            pin_memory=self.graphs.device.type == "cuda",
        )
        packet[0] = past
        packet[1 : 1 + rows] = torch.tensor([root, *draft.tokens])
        packet[1 + rows : 1 + 2 * rows] = torch.tensor(draft_positions(draft, past))
        packet[1 + 2 * rows :] = bits.flatten()
        return packet

    @torch.inference_mode()
    def _pass(self, packet: Tensor, rows: int, chain: bool, cache: KVCache) -> Tensor:
        w, c = self.weights, self.config.target
        past, tokens = packet[:1].int(), packet[1 : 1 + rows]
        positions = packet[1 + rows : 1 + 2 * rows]
        bits = packet[1 + 2 * rows :].view(rows, -1).int()
        slots = packet[0] + torch.arange(rows, device=packet.device)
        cos, sin = self._turns(positions)
        how = Attend(scale=1.0, longest=cache.capacity - rows, chain=chain)
        hidden = F.embedding(tokens, w.embed)
        for index, layer in enumerate(w.layers):
            self._tap(index, hidden, cache, slots)
            x = self._project(layer, layer.input_norm(hidden), cos, sin)
            kv = cache.storage[index]  # [2, kv_heads, capacity, head_dim]
            new = x[:, c.heads :].view(rows, 2, c.kv_heads, c.head_dim)
            kv.index_copy_(2, slots, new.permute(1, 2, 0, 3))
            inputs = Inputs(x[None, :, : c.heads], kv[:1], kv[1:], past, bits)
            attended = tree_attention(inputs, how, self.choices).reshape(rows, -1)
            if not index:
                self._note(inputs, how)
            hidden = layer.o(attended).add_(hidden)
            gate, up = layer.gate_up(layer.post_norm(hidden)).chunk(2, dim=-1)
            hidden = layer.down(F.silu(gate).mul_(up)).add_(hidden)
        hidden = w.norm(hidden)
        self._tap(len(w.layers), hidden, cache, slots)
        return w.head(hidden).float()

    def _turns(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines, sines [rows, heads + 2 * kv_heads, head_dim]: queries scaled, values left."""
        c = self.config.target
        turned = c.heads + c.kv_heads
        size = (len(positions), turned + c.kv_heads, c.head_dim)
        cos = torch.ones(size, device=positions.device)
        sin = torch.zeros(size, device=positions.device)
        cos[:, :turned] = self.rope.cos[positions][:, None]
        sin[:, :turned] = self.rope.sin[positions][:, None]
        cos[:, : c.heads] *= c.head_dim**-0.5
        sin[:, : c.heads] *= c.head_dim**-0.5
        dtype = self.weights.embed.dtype
        return cos.to(dtype), sin.to(dtype)

    def _project(self, layer: LayerWeights, normed: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Turned queries, turned keys and values [rows, heads + 2 * kv_heads, head_dim]."""
        c = self.config.target
        x = layer.qkv(normed).view(cos.shape)
        if layer.qk_norm is not None:
            turned = x[:, : c.heads + c.kv_heads]
            turned.copy_(layer.qk_norm(turned))
        return torch.addcmul(x * cos, x.roll(c.head_dim // 2, -1), sin)

    def _tap(self, index: int, hidden: Tensor, cache: KVCache, slots: Tensor) -> None:
        for tap, wanted in enumerate(self.taps):
            if wanted == index:
                cache.taps_storage[:, tap].index_copy_(0, slots, hidden)
