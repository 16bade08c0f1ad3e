"""New rows of a recurrent head without the host in them: a CUDA graph for each number of rows.

Lengths, positions and tokens are numbers on the device, and a whole chain is drafted in one graph:
each token is chosen where the next row reads it, and the host learns of all at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.cache.kv import KVCache
from specviz.heads.choice import Guess
from specviz.heads.device_choice import DeviceRule
from specviz.heads.packed import PackedLayer, Pass, Rotation
from specviz.heads.recurrent import Stage
from specviz.models.graphs import Graphs
from specviz.models.own_kernels import find_own_kernels
from specviz.models.transfer import fetch

find_own_kernels()  # before the next line, which needs it
from kernels.tree_attention import Attend, Choices, Inputs, chain_bits, tree_attention  # noqa: E402

Said = tuple[Tensor, Tensor]  # logits [rows, draft vocab] float32, hidden [rows, hidden] to recycle


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a runner is made of."""

    stage: Stage
    layers: Sequence[PackedLayer]
    rotation: Rotation
    cache: KVCache
    table: Tensor  # [vocab, hidden] embeddings
    head: Callable[[Tensor], Tensor]  # normed [rows, hidden] -> logits float32
    blank_first: bool


class DeviceRows:
    """Reads true rows and drafts chains; results are overwritten by the next call of that size."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.graphs = parts, Graphs(parts.table.device)
        self._choices = Choices()
        self._entries: dict[tuple[object, ...], Tensor] = {}  # what graphs read beside a packet
        self._bits: dict[int, Tensor] = {}

    @torch.inference_mode()
    def read(self, features: Tensor, tokens: Sequence[int], past: int) -> Said:
        """Read rows `past` and on: features [rows, taps, hidden], tokens that follow them.

        The logits are of the last row alone.
        """
        rows = len(tokens)
        entry, bits = self._entry("features", features), self._mask(rows)

        def work(packet: Tensor) -> Said:
            hidden = self.parts.stage.start(entry)
            normed, recycled = self._rows(hidden, packet[1:], packet[:1], bits)
            return self.parts.head(normed[-1:]), recycled

        return self.graphs.run(self._key("read", rows), self._packet([past, *tokens]), work)

    @torch.inference_mode()
    def chain(
        self, said: Said, rule: DeviceRule, uniforms: Sequence[float], past: int
    ) -> list[Guess]:
        """Draft a token for each of `uniforms` after `said`, whose last row counts."""
        logits, hidden = self._entry("logits", said[0][-1:]), self._entry("hidden", said[1][-1:])
        bits, numbers = self._mask(1), torch.tensor(uniforms, dtype=torch.float64)

        def work(packet: Tensor) -> tuple[Tensor, Tensor]:
            return self._chain((logits, hidden), rule, packet, bits)

        key = self._key("chain", len(uniforms)) + rule.key
        packet = self._packet([past, *numbers.view(torch.int64).tolist()])
        found, q = self.graphs.run(key, packet, work)
        (flat,) = fetch((found.flatten(),))
        q = q.clone()  # it is looked at after the next draft was made
        return [
            Guess(int(flat[i]), flat[i + 1], flat[i + 2], q[i // 3, None] if len(q) else None)
            for i in range(0, len(flat), 3)
        ]

    def _chain(
        self, said: Said, rule: DeviceRule, packet: Tensor, bits: Tensor
    ) -> tuple[Tensor, Tensor]:
        logits, hidden = said
        uniforms, numbers, drawn = packet[1:].view(torch.float64), list[Tensor](), list[Tensor]()
        for index in range(len(uniforms)):
            guess = rule.choose(logits[-1], uniforms[index])
            numbers.append(guess.numbers)
            if guess.q is not None:
                drawn.append(guess.q)
            if index + 1 < len(uniforms):
                normed, hidden = self._rows(hidden, guess.token, packet[:1] + index, bits)
                logits = self.parts.head(normed)
        return torch.stack(numbers), torch.cat(drawn) if drawn else logits.new_empty(0, 0)

    def _rows(self, hidden: Tensor, tokens: Tensor, past: Tensor, bits: Tensor) -> Said:
        """Run rows at positions `past` [1] and on; keys and values go to the same places."""
        p, rows = self.parts, len(tokens)
        slots = past + torch.arange(rows, device=past.device)
        step, counted = Pass(*p.rotation.rows(slots), None), past.int()
        how = Attend(scale=1.0, longest=p.cache.capacity - rows, chain=True)
        embedded = p.table[tokens]
        if p.blank_first:
            embedded = embedded * (slots > 0)[:, None]
        read, hidden = p.stage.enter(embedded, hidden)
        for index, layer in enumerate(p.layers):
            if index:
                read = layer.input_norm(hidden)
            q, kv = layer.project(read, step)
            cached = p.cache.storage[index]  # [2, kv_heads, capacity, head_dim]
            cached.index_copy_(2, slots, kv.permute(1, 2, 0, 3))
            inputs = Inputs(q[None], cached[:1], cached[1:], counted, bits)
            attended = tree_attention(inputs, how, self._choices).reshape(rows, -1)
            hidden = layer.finish(hidden, attended, read)
        return p.stage.leave(hidden)

    def _entry(self, name: str, values: Tensor) -> Tensor:
        """Copy values to where graphs read what has their name and shape."""
        key = (name, *values.shape)
        if key not in self._entries:
            self._entries[key] = torch.empty_like(values)
        return self._entries[key].copy_(values)

    def _mask(self, rows: int) -> Tensor:
        if rows not in self._bits:
            self._bits[rows] = chain_bits(rows, self.graphs.device)
        return self._bits[rows]

    def _key(self, what: str, rows: int) -> tuple[object, ...]:
        """Name a graph; room for its rows is made before, for a graph reads fixed places."""
        cache = self.parts.cache
        cache.reserve(rows)
        self.parts.rotation.reserve(cache.capacity)
        return what, rows, cache.storage.data_ptr(), self.parts.rotation.place

    def _packet(self, numbers: Sequence[int]) -> Tensor:
        pinned = self.graphs.device.type == "cuda"
        return torch.tensor(numbers, dtype=torch.int64, pin_memory=pinned)
