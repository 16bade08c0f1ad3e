"""The same decoder layer for drafting: fused products, a KV cache, few small operations."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.cache.kv import KVCache, in_blocks
from specviz.heads.latent import LatentAttention, LatentMaps, Map
from specviz.heads.layers import DecoderLayer, LayerShape, Mlp
from specviz.models.attention import attend, pack_mask
from specviz.models.layers import HeadNorm, Linear, RMSNorm


@dataclass(frozen=True, slots=True)
class Pass:
    """What all layers of one pass over new rows share."""

    cos: Tensor  # [rows, heads + 2 * kv_heads, head_dim], scaled on queries, 1 on values
    sin: Tensor  # the same, 0 on values
    mask: Tensor | None  # of `make_mask`; None: everything is seen


class Rotation:
    """cos and sin of every position, laid out for heads permuted by `rotary_order`.

    Made once and extended by doubling; the first half of the sines is negated, so that turning x is
    x * cos + roll(x) * sin. Dimensions that do not turn have the angle 0.
    """

    def __init__(self, shape: LayerShape, device: torch.device, dtype: torch.dtype) -> None:
        self._shape, self._device, self._dtype = shape, device, dtype
        turning = shape.frequencies
        still = torch.zeros(shape.head_dim // 2 - len(turning))
        self._frequencies = torch.cat((turning, still))
        self._amplitude = torch.cat((torch.full_like(turning, shape.amplitude), still + 1)).repeat(
            2
        )
        counts = torch.tensor([shape.heads, shape.kv_heads, shape.kv_heads])
        self._kinds = torch.arange(3).repeat_interleave(counts).to(device)  # q, k, v
        self._cos = self._sin = torch.empty(0)  # [positions, kinds, head_dim]

    def at(self, positions: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return cos and sin [rows, heads + 2 * kv_heads, head_dim] of the positions."""
        if max(positions) >= len(self._cos):
            self._grow(max(positions) + 1)
        first, rows = positions[0], len(positions)
        if tuple(positions) == tuple(range(first, first + rows)):
            cos, sin = self._cos[first : first + rows], self._sin[first : first + rows]
        else:
            index = torch.tensor(positions, device=self._device)
            cos, sin = self._cos[index], self._sin[index]
        return cos.index_select(1, self._kinds), sin.index_select(1, self._kinds)

    @property
    def place(self) -> int:
        """Where the tables lie; it changes when they grow."""
        return self._cos.data_ptr()

    def reserve(self, positions: int) -> None:
        """Make sure that positions 0 to `positions - 1` are there."""
        if positions > len(self._cos):
            self._grow(positions)

    def rows(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return what `at` does, for positions [rows] on the device that were reserved."""
        cos, sin = self._cos[positions], self._sin[positions]
        return cos.index_select(1, self._kinds), sin.index_select(1, self._kinds)

    def _grow(self, needed: int) -> None:
        needed = max(needed, 2 * len(self._cos), 256)
        angle = torch.arange(needed, dtype=torch.float32)[:, None] * self._frequencies
        cos = torch.cat((angle.cos(), angle.cos()), dim=1) * self._amplitude
        sin = torch.cat((-angle.sin(), angle.sin()), dim=1) * self._amplitude
        scale = self._shape.head_dim**-0.5  # of the attention scores, applied to the queries
        kinds = (cos * scale, cos, torch.ones_like(cos)), (sin * scale, sin, torch.zeros_like(sin))
        self._cos, self._sin = (
            torch.stack(kind, dim=1).to(self._device, self._dtype) for kind in kinds
        )


def rotary_order(shape: LayerShape) -> Tensor:
    """Return the order of a head's dimensions in which dimension i pairs with i + head_dim / 2.

    With partial rotary only the leading dimensions turn; queries and keys permuted alike have the
    same products.
    """
    turning = (shape.rotary or shape.head_dim) // 2
    order = torch.arange(shape.head_dim)
    low, high, rest = order[:turning], order[turning : 2 * turning], order[2 * turning :]
    first, second = rest.chunk(2) if len(rest) else (rest, rest)
    return torch.cat((low, first, high, second))


class PackedLayer:
    """A `DecoderLayer` copied into the form that is fastest here; later training does not reach it.

    Only the KV cache it is given holds state.
    """

    def __init__(self, layer: DecoderLayer, device: torch.device, dtype: torch.dtype) -> None:
        self.shape, a = layer.shape, layer.self_attn
        self._device, self._dtype = device, dtype
        s, order = layer.shape, rotary_order(layer.shape)
        self.input_norm = self.norm(layer.input_layernorm)
        self._post_norm = self.norm(layer.post_attention_layernorm)
        self._gate: Linear | None = None
        if isinstance(a, LatentAttention):
            maps = LatentMaps(a, lambda module: pack_module(module, device, dtype))
            there = order.to(device)
            self._qkv: Map = lambda x: maps(x)[..., there]
            self._o = self._fused((_rows(a.wide_output(order)),))
            order = torch.arange(s.head_dim)
        else:
            queries, gates = _split_gates(a.q_proj, s)
            turned = (
                _permuted(queries, s.heads, order),
                _permuted(_rows(a.k_proj), s.kv_heads, order),
            )
            self._qkv = self._fused((*turned, _rows(a.v_proj)))
            self._gate = self._fused((gates,)) if gates is not None else None
            self._o = self._fused((_rows(a.o_proj),))
        self._qk_norm = None
        if a.q_norm is not None and a.k_norm is not None:
            q = a.q_norm.weight.detach()[order].expand(s.heads, -1)
            k = a.k_norm.weight.detach()[order].expand(s.kv_heads, -1)
            self._qk_norm = HeadNorm(torch.cat((q, k)).to(device, dtype), s.eps)
        self._mlp: torch.nn.Module | None = None
        if isinstance(layer.mlp, Mlp):
            self._gate_up = self._fused((_rows(layer.mlp.gate_proj), _rows(layer.mlp.up_proj)))
            self._down = self._fused((_rows(layer.mlp.down_proj),))
        else:
            self._mlp = deepcopy(layer.mlp).to(device, dtype)

    def norm(self, norm: torch.nn.RMSNorm) -> RMSNorm:
        """Pack a norm for the same device and dtype."""
        return RMSNorm(norm.weight.detach().to(self._device, self._dtype), self.shape.eps)

    def project(self, x: Tensor, step: Pass) -> tuple[Tensor, Tensor]:
        """Turned and scaled queries [rows, heads, head_dim], and kv [rows, 2, kv_heads, head_dim].

        x [rows, width] is what attention reads, normed.
        """
        s = self.shape
        rows: Tensor = self._qkv(x).view(-1, s.heads + 2 * s.kv_heads, s.head_dim)
        if self._qk_norm is not None:
            turned = rows[:, : s.heads + s.kv_heads]
            turned.copy_(self._qk_norm(turned))
        rows = torch.addcmul(rows * step.cos, rows.roll(s.head_dim // 2, -1), step.sin)
        return rows[:, : s.heads], rows[:, s.heads :].view(-1, 2, s.kv_heads, s.head_dim)

    def finish(self, residual: Tensor, attended: Tensor, x: Tensor) -> Tensor:
        """Everything after attention.

        residual [rows, hidden], attended [rows, heads * head_dim]; x is what attention read.
        """
        if self._gate is not None:
            attended = attended * torch.sigmoid(self._gate(x))
        hidden = self._o(attended).add_(residual)
        normed = self._post_norm(hidden)
        if self._mlp is not None:
            out: Tensor = self._mlp(normed)
            return out.add_(hidden)
        gate, up = self._gate_up(normed).chunk(2, dim=-1)
        return self._down(F.silu(gate).mul_(up)).add_(hidden)

    def run(self, x: Tensor, residual: Tensor, step: Pass, cached: tuple[KVCache, int]) -> Tensor:
        """Run the layer on new rows; keys and values go past the end of `cached` (cache, layer)."""
        cache, index = cached
        q, kv = self.project(x, step)
        k, v = cache.write(index, kv)
        mask = step.mask
        if mask is None:
            end = cache.length + len(kv)
            k, v = k[:, :end], v[:, :end]
            if k.is_cuda:
                rows = self.shape.group_size * len(kv)
                mask = torch.zeros(rows, 1, device=k.device, dtype=k.dtype).expand(-1, end)
        return self.finish(residual, attend(q, k, v, mask), x)

    def _fused(self, parts: Sequence["_Rows"]) -> Linear:
        weight = torch.cat([part.weight for part in parts]).to(self._device, self._dtype)
        biases = [part.bias for part in parts if part.bias is not None]
        bias = torch.cat(biases).to(self._device, self._dtype) if biases else None
        return Linear(weight.contiguous(), bias, alike=False)


def pack_module(module: torch.nn.Module, device: torch.device, dtype: torch.dtype) -> Map:
    """Copy a linear map or norm into its fast form."""
    if isinstance(module, torch.nn.Linear):
        bias: Tensor | None = module.bias
        bias = None if bias is None else bias.detach().to(device, dtype)
        return Linear(module.weight.detach().to(device, dtype).contiguous(), bias, alike=False)
    assert isinstance(module, torch.nn.RMSNorm)
    return RMSNorm(module.weight.detach().to(device, dtype), module.eps or 1e-6)


def make_mask(seen: Tensor, shape: LayerShape, dtype: torch.dtype) -> Tensor | None:
    """Turn bool [rows, keys] into the mask of a `Pass`; None if every row sees everything.

    The cache returns keys in whole blocks; those after `keys` are hidden.
    """
    if bool(seen.all()):
        return None
    spare = in_blocks(seen.shape[1]) - seen.shape[1]
    return pack_mask(F.pad(seen, (0, spare)), shape.group_size, dtype)


@dataclass(frozen=True, slots=True)
class _Rows:
    weight: Tensor
    bias: Tensor | None


def _rows(linear: torch.nn.Linear) -> _Rows:
    bias: Tensor | None = linear.bias
    return _Rows(linear.weight.detach(), None if bias is None else bias.detach())


def _permuted(part: _Rows, heads: int, order: Tensor) -> _Rows:
    index = (torch.arange(heads)[:, None] * len(order) + order).flatten().to(part.weight.device)
    return _Rows(part.weight[index], None if part.bias is None else part.bias[index])


def _split_gates(q_proj: torch.nn.Linear, shape: LayerShape) -> tuple[_Rows, _Rows | None]:
    """Queries, and the gates that lie beside them head by head."""
    whole = _rows(q_proj)
    if not shape.gated:
        return whole, None
    heads = torch.arange(2 * shape.heads * shape.head_dim).view(shape.heads, 2, shape.head_dim)
    halves = []
    for half in range(2):
        index = heads[:, half].flatten()
        bias = None if whole.bias is None else whole.bias[index]
        halves.append(_Rows(whole.weight[index], bias))
    return halves[0], halves[1]
