"""Latent attention: queries, keys and values through narrow projections (arXiv:2405.04434)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from specviz.heads.layers import Attention, LayerShape, Turns

EPS = 1e-6  # of the norms in the middle, whatever the config says of the others
Map = Callable[[Tensor], Tensor]


class LatentAttention(Attention):
    """Attention of DeepSeek-V3, with keys and values spelled out.

    Per head the dimensions that turn come first here, the even ones before the odd ones: what is
    stored interleaved is then turned in halves, and products of queries and keys stay the same.
    """

    def __init__(self, shape: LayerShape, width: int | None = None) -> None:
        """Make projections that read rows of `width`, the hidden size if None."""
        nn.Module.__init__(self)  # the projections of ordinary attention are not there
        latent, width = shape.latent, width or shape.hidden
        assert latent is not None
        self.shape, self.latent = shape, latent
        self.q_norm = self.k_norm = None
        q, bias = shape.heads * shape.head_dim, shape.qkv_bias
        if latent.q_rank is None:
            self.q_proj = nn.Linear(width, q, bias=False)
        else:
            self.q_a_proj = nn.Linear(width, latent.q_rank, bias=bias)
            self.q_a_layernorm = nn.RMSNorm(latent.q_rank, EPS)
            self.q_b_proj = nn.Linear(latent.q_rank, q, bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(width, latent.kv_rank + latent.turning, bias=bias)
        self.kv_a_layernorm = nn.RMSNorm(latent.kv_rank, EPS)
        self.kv_b_proj = nn.Linear(
            latent.kv_rank, shape.heads * (latent.still + latent.value), bias=False
        )
        self.o_proj = nn.Linear(shape.heads * latent.value, shape.hidden, bias=shape.o_bias)

    def queries(self, x: Tensor, turns: Turns) -> Tensor:
        return turns(LatentMaps(self, lambda module: module).queries(x))

    def keys(self, x: Tensor, turns: Turns) -> Tensor:
        return turns(LatentMaps(self, lambda module: module).keys_and_values(x)[0])

    def values(self, x: Tensor) -> Tensor:
        return LatentMaps(self, lambda module: module).keys_and_values(x)[1]

    def merge(self, attended: Tensor, x: Tensor) -> Tensor:
        out: Tensor = self.o_proj(attended[..., : self.latent.value].flatten(-2))
        return out

    def wide_output(self, order: Tensor) -> nn.Linear:
        """Return o_proj for values filled up to the width of keys, their dimensions in `order`."""
        s, value = self.shape, self.latent.value
        by_head = self.o_proj.weight.detach().view(-1, s.heads, value)
        wide = nn.Linear(1, 1, bias=False)
        wide.weight = nn.Parameter(pad(by_head, (0, s.head_dim - value))[..., order].flatten(1))
        if self.o_proj.bias is not None:
            wide.bias = nn.Parameter(self.o_proj.bias.detach())
        return wide


class LatentMaps:
    """The narrow projections, each module put through `pack`, and what they spell out."""

    def __init__(self, attention: LatentAttention, pack: Callable[[nn.Module], Map]) -> None:
        self._shape, self._latent = attention.shape, attention.latent
        names: tuple[str, ...] = ("q_a_proj", "q_a_layernorm", "q_b_proj")
        if attention.latent.q_rank is None:
            names = ("q_proj",)
        self._q = [pack(attention.get_submodule(name)) for name in names]
        self._kv_a = pack(attention.kv_a_proj_with_mqa)
        self._kv_norm = pack(attention.kv_a_layernorm)
        self._kv_b = pack(attention.kv_b_proj)

    def queries(self, x: Tensor) -> Tensor:
        """Queries [..., rows, heads, head_dim] of x [..., rows, width], not yet turned."""
        for step in self._q:
            x = step(x)
        x = x.view(*x.shape[:-1], self._shape.heads, self._shape.head_dim)
        still, turning = _cut(x, self._latent.still)
        return torch.cat((self._in_halves(turning), still), dim=-1) * self._latent.sharpness

    def keys_and_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys, not yet turned, and values filled up to the same width, both by head."""
        s, latent = self._shape, self._latent
        narrow, turning = _cut(self._kv_a(x), latent.kv_rank)
        wide = self._kv_b(self._kv_norm(narrow.contiguous()))
        wide = wide.view(*wide.shape[:-1], s.heads, latent.still + latent.value)
        still, value = _cut(wide, latent.still)
        shared = self._in_halves(turning)[..., None, :].expand(*still.shape[:-1], -1)
        return torch.cat((shared, still), dim=-1), pad(value, (0, s.head_dim - latent.value))

    def __call__(self, x: Tensor) -> Tensor:
        """Queries, keys and values side by side [rows, 3 * heads, head_dim]."""
        keys, values = self.keys_and_values(x)
        return torch.cat((self.queries(x), keys, values), dim=-2)

    def _in_halves(self, turning: Tensor) -> Tensor:
        if not self._latent.interleaved:
            return turning
        return torch.cat((turning[..., ::2], turning[..., 1::2]), dim=-1)


def _cut(x: Tensor, at: int) -> tuple[Tensor, Tensor]:
    return x[..., :at], x[..., at:]
