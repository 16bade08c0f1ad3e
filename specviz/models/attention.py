"""Attention over the cache with the query heads of a group packed as rows: K and V never repeat."""

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.models.layers import FEW_ROWS


def pack_mask(mask: Tensor, group_size: int, dtype: torch.dtype) -> Tensor:
    """Turn bool [rows, total] into what `attend` adds to the scores [G * rows, total].

    `dtype` is that of queries and keys.
    """
    dtype = torch.float32 if len(mask) <= FEW_ROWS else dtype
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return added.masked_fill_(~mask, float("-inf")).repeat(group_size, 1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attend with G * rows packed rows per KV head; q comes scaled by head_dim ** -0.5.

    q [rows, kv_heads * G, head_dim]; k and v [kv_heads, total, head_dim]; mask of `pack_mask`.
    Returns [rows, kv_heads * G * head_dim].
    """
    rows, heads, head_dim = q.shape
    kv_heads = k.shape[0]
    packed = q.view(rows, kv_heads, -1, head_dim).permute(1, 2, 0, 3)
    packed = packed.reshape(kv_heads, -1, head_dim)
    out = (_few if rows <= FEW_ROWS else _many)(packed, k, v, mask)
    out = out.view(kv_heads, -1, rows, head_dim).permute(2, 0, 1, 3)
    return out.reshape(rows, heads * head_dim)


def _few(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    # The fused kernel splits its sums by the number of rows, a bf16 softmax treats the odd keys at
    # the end differently, and products change their blocking above 32 rows. Like this each row of
    # a chain comes out in the same bits, alone or with others.
    if q.shape[1] > FEW_ROWS:
        parts = [slice(at, at + FEW_ROWS) for at in range(0, q.shape[1], FEW_ROWS)]
        return torch.cat([_few(q[:, part], k, v, mask[part]) for part in parts], dim=1)
    scores = q @ k.transpose(1, 2) + mask
    return scores.softmax(dim=-1).to(q.dtype) @ v


def _many(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask, scale=1.0)
    return out[0]
