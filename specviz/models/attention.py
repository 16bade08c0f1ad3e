"""Attention over the cache with the query heads of a group packed as rows: K and V never repeat."""

import torch
from torch import Tensor
from torch.nn import functional as F


def pack_mask(mask: Tensor, group_size: int, dtype: torch.dtype) -> Tensor:
    """Turn bool [rows, total] into what `attend` adds to the scores [G * rows, total]."""
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return added.masked_fill_(~mask, float("-inf")).repeat(group_size, 1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attend with G * rows packed rows per KV head.

    q [rows, kv_heads * G, head_dim]; k and v [kv_heads, total, head_dim]; mask of `pack_mask`,
    None when every row sees everything. Returns [rows, kv_heads * G * head_dim].
    """
    rows, heads, head_dim = q.shape
    kv_heads = k.shape[0]
    packed = q.view(rows, kv_heads, -1, head_dim).permute(1, 2, 0, 3)
    packed = packed.reshape(1, kv_heads, -1, head_dim)
    out = F.scaled_dot_product_attention(packed, k[None], v[None], attn_mask=mask)
    out = out.view(kv_heads, -1, rows, head_dim).permute(2, 0, 1, 3)
    return out.reshape(rows, heads * head_dim)
