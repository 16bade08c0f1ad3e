"""Unrolling a one-layer head over the rows that are supervised, and no others."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.heads.layers import DecoderLayer, Turns
from specviz.heads.recurrent import RecurrentHead


@dataclass(frozen=True, slots=True)
class Chosen:
    """Rows of texts, padded at the end with the last: all [batch, rows].

    Row i pairs the features of position i with token i + 1 and predicts token i + 2; `real` is
    False for padding.
    """

    at: Tensor
    real: Tensor

    @classmethod
    def of(cls, supervised: Tensor) -> "Chosen":
        """Choose the rows whose token is in supervised [batch, length]."""
        able = F.pad(supervised[:, 2:], (0, 2))
        most = max(1, int(able.sum(dim=1).max()))
        order = torch.argsort(~able, dim=1, stable=True)[:, :most]
        real = able.gather(1, order)
        return cls(order, real)


def unroll(
    head: RecurrentHead, features: Tensor, tokens: Tensor, table: Tensor, chosen: Chosen
) -> Iterator[Tensor]:
    """Yield, step after step and without end, what `head.forward` yields at the chosen rows.

    Rows of the prompt are read for their keys and values only, and only true rows are: in steps of
    the head's own they do not exist. Arguments are as of `head.forward`, rows as of `Chosen`;
    yields [batch, rows, hidden].
    """
    (layer,) = head.decoder_layers()
    stage, attention, s = head.stage(lambda module: module), layer.self_attn, head.shape
    own = table if head.embed_tokens is None else head.embed_tokens.weight
    last, at = tokens.shape[1] - 1, chosen.at
    everywhere = torch.arange(last + 1, device=tokens.device)
    hidden = stage.start(features)
    following = tokens[:, (everywhere + 1).clamp_max(last)]
    read, residual = stage.enter(F.embedding(following, own).to(hidden.dtype), hidden)
    turns = Turns.at(s, everywhere)
    memory = _Memory(layer, attention.keys(read, turns), attention.values(read), at)
    read, residual = _take(read, at), _take(residual, at)
    step = 0
    while True:
        turns = Turns.at(s, at + step)
        if step:
            memory.add(attention.keys(read, turns), attention.values(read))
        attended = memory.attend(attention.queries(read, turns))
        normed, hidden = stage.leave(layer.finish(residual, attended, read))
        yield normed
        step += 1
        following = tokens.gather(1, (at + 1 + step).clamp_max(last))
        read, residual = stage.enter(F.embedding(following, own).to(hidden.dtype), hidden)


class _Memory:
    """Keys and values of all true rows, and of each step since those of the row itself."""

    def __init__(self, layer: DecoderLayer, keys: Tensor, values: Tensor, at: Tensor) -> None:
        self._shape = layer.shape
        self._keys, self._values = keys.transpose(1, 2), values.transpose(1, 2)
        self._own: list[tuple[Tensor, Tensor]] = []
        back = at[:, :, None] - torch.arange(keys.shape[1], device=at.device)
        seen = back >= 0
        if layer.shape.window is not None:
            seen &= back < layer.shape.window
        self._seen = seen[:, None, None]  # [batch, 1, 1, rows, keys]

    def add(self, keys: Tensor, values: Tensor) -> None:
        """Remember one step: [batch, rows, kv_heads, head_dim]."""
        self._own.append((keys.transpose(1, 2)[:, :, None], values.transpose(1, 2)[:, :, None]))

    def attend(self, q: Tensor) -> Tensor:
        """Return [batch, rows, heads, head_dim] for queries of that shape."""
        s = self._shape
        q = q.view(*q.shape[:2], s.kv_heads, s.group_size, s.head_dim).permute(0, 2, 3, 1, 4)
        q = q * s.head_dim**-0.5
        scores = (q.flatten(2, 3) @ self._keys.mT).view(*q.shape[:4], -1)
        scores = scores.masked_fill(~self._seen, float("-inf"))
        near = [(q * keys).sum(dim=-1, keepdim=True) for keys, _ in self._own]
        weights = torch.cat((scores, *near), dim=-1).softmax(dim=-1).to(q.dtype)
        far = weights[..., : scores.shape[-1]]
        out: Tensor = (far.flatten(2, 3) @ self._values).view(q.shape)
        for step, (_, values) in enumerate(self._own):
            out = out + weights[..., scores.shape[-1] + step, None] * values
        return out.permute(0, 3, 1, 2, 4).flatten(2, 3)


def _take(x: Tensor, at: Tensor) -> Tensor:
    return x.gather(1, at[..., None].expand(-1, -1, x.shape[-1]))
