"""Attention over the cache with the query heads of a group packed as rows: K and V never repeat."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.models.layers import FEW_ROWS

# Packed rows from which on a CPU's sums are the same, measured in fp32 and bf16: 3 with AMX, 4 with
# AVX2.
COMPANY = 4

# (q, k, v, mask of `pack_mask`) -> what `attend` returns
Attention = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def pack_mask(mask: Tensor, group_size: int, dtype: torch.dtype) -> Tensor:
    """Turn bool [rows, total] into what `attend` adds to the scores [G * rows, total].

    `dtype` is that of queries and keys.
    """
    added = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return added.masked_fill_(~mask, float("-inf")).repeat(group_size, 1)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attend with G * rows packed rows per KV head; q comes scaled by head_dim ** -0.5.

    q [rows, kv_heads * G, head_dim]; k and v [kv_heads, total, head_dim]; mask of `pack_mask`, or
    None: then every row sees every key, and its bits may depend on the rows beside it.
    Returns [rows, kv_heads * G * head_dim].
    """
    rows, heads, head_dim = q.shape
    kv_heads = k.shape[0]
    packed = q.view(rows, kv_heads, -1, head_dim).permute(1, 2, 0, 3)
    packed = packed.reshape(1, kv_heads, -1, head_dim)
    k, v = k[None], v[None]
    if mask is None:
        out = F.scaled_dot_product_attention(packed, k, v, scale=1.0)
    else:
        # Sums over keys are blocked by the number of packed rows. A few at a time, and keys in
        # whole blocks, each row of a chain comes out in the same bits, alone or with others.
        step = packed.shape[2] if rows > FEW_ROWS else FEW_ROWS
        parts = [
            _part(packed[:, :, at : at + step], k, v, mask[at : at + step])
            for at in range(0, packed.shape[2], step)
        ]
        out = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
    out = out.view(kv_heads, -1, rows, head_dim).permute(2, 0, 1, 3)
    return out.reshape(rows, heads * head_dim)


def _part(packed: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attend with some packed rows; fewer than four get company: alone they round otherwise."""
    rows = packed.shape[2]
    if rows < COMPANY:
        more = (0, 0, 0, COMPANY - rows)
        packed, mask = torch.constant_pad_nd(packed, more), torch.constant_pad_nd(mask, more)
    out = F.scaled_dot_product_attention(packed, k, v, attn_mask=mask, scale=1.0)
    return out[:, :, :rows]
