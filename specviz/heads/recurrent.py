"""Heads that feed on their own hidden state: what EAGLE-3 and MTP share, and how they train."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn

from specviz.heads.base import Head
from specviz.heads.layers import DecoderLayer, LayerShape, Turns

Map = Callable[[Tensor], Tensor]
Pack = Callable[[nn.Module], Map]


class Entry(NamedTuple):
    """What enters the first layer: the normed input of its attention, and the residual stream."""

    read: Tensor  # [..., rows, width]
    residual: Tensor  # [..., rows, hidden]


class Exit(NamedTuple):
    """What leaves the last layer: what the output head reads, and what the next step recycles."""

    normed: Tensor  # [..., rows, hidden]
    recycled: Tensor  # [..., rows, hidden]


class Stage(Protocol):
    """What surrounds the layers of a head; written once, over modules or over packed weights.

    Row i pairs the hidden state at position i with token i + 1 and predicts token i + 2.
    """

    def start(self, features: Tensor) -> Tensor:
        """Hidden states [..., rows, hidden] of target features [..., rows, taps, target hidden]."""
        ...

    def enter(self, embedded: Tensor, hidden: Tensor) -> Entry:
        """Mix the next token's embedding with the hidden state, both [..., rows, hidden]."""
        ...

    def leave(self, hidden: Tensor) -> Exit:
        """Norm what the last layer returned."""
        ...


class RecurrentHead(Head):
    """A head of one or more decoder layers that drafts token after token.

    `embed_tokens` and `lm_head` are None where the target's own are used; `draft_ids` [draft vocab]
    are the target's ids of the rows of `lm_head`, None if they are the same. With `blank_first`
    the embedding beside position 0 is zero.
    """

    shape: LayerShape
    layers: nn.ModuleList
    embed_tokens: nn.Embedding | None
    lm_head: nn.Linear | None
    draft_ids: Tensor | None
    blank_first: bool = False

    @abstractmethod
    def stage(self, pack: Pack) -> Stage:
        """Return what surrounds the layers, each module put through `pack`."""

    def decoder_layers(self) -> tuple[DecoderLayer, ...]:
        """Return the layers with their type."""
        return tuple(layer for layer in self.layers if isinstance(layer, DecoderLayer))

    def coverage(self, tokens: Sequence[int]) -> float:
        """Return the share of `tokens` that the head can say at all: no acceptance rate is above.

        1.0 for the empty text.
        """
        if self.draft_ids is None or not tokens:
            return 1.0
        known = torch.isin(torch.tensor(tokens), self.draft_ids.cpu())
        return float(known.float().mean())

    def forward(
        self, features: Tensor, tokens: Tensor, table: Tensor, steps: int = 1
    ) -> Iterator[Tensor]:
        """Unroll the head over a text as drafting does: training-time test (arXiv:2503.01840).

        Args:
            features: target hidden states [batch, rows, taps, hidden] at positions 0 to rows - 1.
            tokens: the text [batch, rows].
            table: the target's embedding table [vocab, hidden]; an own one comes first.
            steps: how often the head's own hidden states are recycled, plus one.

        Yields, per step j, what the output head reads [batch, rows, hidden]: row i predicts token
        i + 2 + j; the last 2 + j rows lack their token and are to be left out.
        """
        stage, hidden = self.stage(lambda module: module), None
        memories: list[_Memory] = [_Memory() for _ in self.layers]
        own = table if self.embed_tokens is None else self.embed_tokens.weight
        hidden = stage.start(features)
        rows = torch.arange(tokens.shape[1], device=tokens.device)
        for step in range(steps):
            following = nn.functional.pad(tokens[:, 1 + step :], (0, min(1 + step, len(rows))))
            embedded = nn.functional.embedding(following, own).to(hidden.dtype)
            if self.blank_first and step == 0:
                embedded = embedded * (rows > 0)[:, None]
            turns = Turns.at(self.shape, rows + step)
            read, hidden = stage.enter(embedded, hidden)
            for index, layer in enumerate(self.decoder_layers()):
                if index:
                    read = layer.input_layernorm(hidden)
                attended = memories[index].attend(layer, read, turns)
                hidden = layer.finish(hidden, attended, read)
            normed, hidden = stage.leave(hidden)
            yield normed


class _Memory:
    """Keys and values of a layer by step.

    A drafted row sees true rows up to its own, and of each step since only itself: at inference the
    rows between are those of other positions' drafts, which never existed.
    """

    def __init__(self) -> None:
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def attend(self, layer: DecoderLayer, read: Tensor, turns: Turns) -> Tensor:
        """Return [batch, rows, heads, head_dim]; the step's own keys are remembered."""
        s, attention = layer.shape, layer.self_attn
        self._keys.append(attention.keys(read, turns))
        self._values.append(attention.values(read))
        q = attention.queries(read, turns)
        q = q.view(*q.shape[:2], s.kv_heads, s.group_size, s.head_dim).transpose(1, 3)
        q = q * s.head_dim**-0.5  # [batch, group, kv_heads, rows, head_dim]
        first = self._keys[0].transpose(1, 2)[:, None]
        scores = (q @ first.transpose(-1, -2)).masked_fill(
            ~self._seen(read.shape[1], s.window, read.device), float("-inf")
        )
        own = [(q * k.transpose(1, 2)[:, None]).sum(-1, keepdim=True) for k in self._keys[1:]]
        weights = torch.cat((scores, *own), dim=-1).softmax(dim=-1)
        rows = read.shape[1]
        out = weights[..., :rows] @ self._values[0].transpose(1, 2)[:, None]
        for step, value in enumerate(self._values[1:]):
            out = out + weights[..., rows + step, None] * value.transpose(1, 2)[:, None]
        return out.transpose(1, 3).flatten(2, 3)

    def _seen(self, rows: int, window: int | None, device: torch.device) -> Tensor:
        """Which true rows a row sees: none after its own, none a window behind where it stands."""
        row = torch.arange(rows, device=device)
        back = row[:, None] - row[None, :]
        if window is None:
            return back >= 0
        return (back >= 0) & (back + len(self._keys) - 1 < window)
