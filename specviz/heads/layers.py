"""The decoder layer heads are made of, as modules to train; `packed` is its fast form."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from specviz.heads.yarn import Yarn
from specviz.models.rope import Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentShape:
    """Widths of latent attention: DeepSeek-V3's kv_lora_rank, qk_rope_head_dim and so on.

    A head of the layer is `turning + still` wide, and there are as many KV heads as heads.
    """

    kv_rank: int
    turning: int
    still: int
    value: int
    q_rank: int | None = None  # None: queries are projected at once
    interleaved: bool = True  # pairs that turn together lie side by side
    sharpness: float = 1.0  # what YaRN multiplies attention scores by


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """Shape of the decoder layers of a head."""

    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    eps: float
    rope: Rope
    rotary: int | None = None  # leading dimensions of a head that turn; None: all
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    gated: bool = False  # Qwen3-Next: q_proj also makes a gate on what attention returns
    window: int | None = None  # how many positions back a row sees, None for all
    latent: LatentShape | None = None

    def __post_init__(self) -> None:
        assert self.heads % self.kv_heads == 0  # readers say so in words
        assert self.head_dim % 2 == 0

    @property
    def group_size(self) -> int:
        """G: query heads per KV head."""
        return self.heads // self.kv_heads

    @property
    def frequencies(self) -> Tensor:
        """Radians per position [rotary / 2], float32."""
        return self.rope.frequencies(self.rotary or self.head_dim)

    @property
    def amplitude(self) -> float:
        """What turned dimensions are multiplied by."""
        return self.rope.amplitude if isinstance(self.rope, Yarn) else 1.0


@dataclass(frozen=True, slots=True)
class Turns:
    """How far each row's heads are turned: cos and sin [..., rows, rotary]."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def at(cls, shape: LayerShape, positions: Tensor) -> "Turns":
        """Make the turns of rows at `positions` [..., rows]."""
        angle = positions[..., None].float() * shape.frequencies.to(positions.device)
        angle = torch.cat((angle, angle), dim=-1)
        return cls(angle.cos() * shape.amplitude, angle.sin() * shape.amplitude)

    def __call__(self, x: Tensor) -> Tensor:
        """Turn x [..., rows, heads, head_dim]; dimensions past `rotary` stay."""
        cos, sin = self.cos[..., None, :].to(x.dtype), self.sin[..., None, :].to(x.dtype)
        width = cos.shape[-1]
        turned, rest = x[..., :width], x[..., width:]
        low, high = turned.chunk(2, dim=-1)
        turned = turned * cos + torch.cat((-high, low), dim=-1) * sin
        return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned


class Attention(nn.Module):
    """Projections of grouped-query attention; who sees whom is the caller's affair."""

    def __init__(self, shape: LayerShape, width: int | None = None) -> None:
        """Make projections that read rows of `width`, the hidden size if None."""
        super().__init__()
        self.shape, width = shape, width or shape.hidden
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        self.q_proj = nn.Linear(width, q * (1 + shape.gated), bias=shape.qkv_bias)
        self.k_proj = nn.Linear(width, kv, bias=shape.qkv_bias)
        self.v_proj = nn.Linear(width, kv, bias=shape.qkv_bias)
        self.o_proj = nn.Linear(q, shape.hidden, bias=shape.o_bias)
        self.q_norm = nn.RMSNorm(shape.head_dim, shape.eps) if shape.qk_norm else None
        self.k_norm = nn.RMSNorm(shape.head_dim, shape.eps) if shape.qk_norm else None

    def queries(self, x: Tensor, turns: Turns) -> Tensor:
        """Turned queries [..., rows, heads, head_dim] of x [..., rows, width]."""
        q = self._by_head(self.q_proj(x), self.shape.heads)[..., : self.shape.head_dim]
        return turns(q if self.q_norm is None else self.q_norm(q))

    def keys(self, x: Tensor, turns: Turns) -> Tensor:
        """Turned keys [..., rows, kv_heads, head_dim]."""
        k = self._by_head(self.k_proj(x), self.shape.kv_heads)
        return turns(k if self.k_norm is None else self.k_norm(k))

    def values(self, x: Tensor) -> Tensor:
        """Values [..., rows, kv_heads, head_dim]."""
        return self._by_head(self.v_proj(x), self.shape.kv_heads)

    def merge(self, attended: Tensor, x: Tensor) -> Tensor:
        """Output [..., rows, hidden] of attended [..., rows, heads, head_dim]."""
        if self.shape.gated:
            gate = self._by_head(self.q_proj(x), self.shape.heads)[..., self.shape.head_dim :]
            attended = attended * torch.sigmoid(gate)
        out: Tensor = self.o_proj(attended.flatten(-2))
        return out

    def _by_head(self, x: Tensor, heads: int) -> Tensor:
        return x.view(*x.shape[:-1], heads, -1)


def attend_batched(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attend with gradients: q [..., rows, heads, head_dim], k and v [..., keys, kv_heads, ...].

    mask is bool, broadcastable to [..., heads, rows, keys]; None is causal. Returns the shape
    of q.
    """
    q, k, v = (x.transpose(-2, -3) for x in (q, k, v))
    out = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=mask is None, enable_gqa=True
    )
    return out.transpose(-2, -3)


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: LayerShape, intermediate: int | None = None) -> None:
        super().__init__()
        width, inner, bias = shape.hidden, intermediate or shape.intermediate, shape.mlp_bias
        self.gate_proj = nn.Linear(width, inner, bias=bias)
        self.up_proj = nn.Linear(width, inner, bias=bias)
        self.down_proj = nn.Linear(inner, width, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DecoderLayer(nn.Module):
    """Attention and MLP around a residual stream, named as in Hugging Face checkpoints."""

    def __init__(
        self, shape: LayerShape, width: int | None = None, mlp: nn.Module | None = None
    ) -> None:
        """Make a layer whose attention reads rows of `width`; `mlp` is SwiGLU if None."""
        super().__init__()
        self.shape = shape
        self.input_layernorm = nn.RMSNorm(shape.hidden, shape.eps)
        self.self_attn = _attention(shape)(shape, width)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden, shape.eps)
        self.mlp = mlp or Mlp(shape)

    def finish(self, residual: Tensor, attended: Tensor, x: Tensor) -> Tensor:
        """Everything after attention; x is what attention read."""
        hidden = residual + self.self_attn.merge(attended, x)
        out: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return out

    def forward(self, hidden: Tensor, turns: Turns, mask: Tensor | None = None) -> Tensor:
        """Run the layer as in an ordinary decoder; mask as in `attend_batched`."""
        x, attention = self.input_layernorm(hidden), self.self_attn
        q, k, v = attention.queries(x, turns), attention.keys(x, turns), attention.values(x)
        return self.finish(hidden, attend_batched(q, k, v, mask), x)


def _attention(shape: LayerShape) -> type[Attention]:
    if shape.latent is None:
        return Attention
    from specviz.heads.latent import LatentAttention  # it builds on this module

    return LatentAttention
