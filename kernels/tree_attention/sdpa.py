"""torch's attention on rows packed by hand: K and V never repeat. The path of a CPU."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from kernels.tree_attention.call import Attend, Inputs
from kernels.tree_attention.masks import unpack_bits


def packed_mask(past: Tensor, ancestors: Tensor, total: int, batch: int) -> Tensor:
    """Return bool [batch, rows, total]: cached keys, then ancestors, then nothing.

    past [batch]; ancestors [rows, words] or [batch, rows, words].
    """
    among = unpack_bits(ancestors)
    rows = among.shape[-1]
    among = among.expand(batch, rows, rows)
    new = torch.arange(total, device=past.device) - past[:, None]  # [batch, total]
    index = new.clamp(0, rows - 1)[:, None].expand(batch, rows, total)
    drafted = among.gather(2, index) & (new < rows)[:, None]
    return torch.where((new < 0)[:, None], True, drafted)


def prepare(inputs: Inputs, how: Attend) -> Callable[[], Tensor]:
    """Make the mask, once for all layers of a pass; keys up to `longest` + rows are read."""
    batch, rows, group = inputs.batch, inputs.rows, inputs.group
    kv_heads, head_dim, total = inputs.kv_heads, inputs.head_dim, how.longest + inputs.rows
    mask = packed_mask(inputs.past, inputs.ancestors, total, batch).repeat(1, group, 1)[:, None]

    def run() -> Tensor:
        packed = inputs.q.view(batch, rows, kv_heads, group, head_dim).permute(0, 2, 3, 1, 4)
        packed = packed.reshape(batch, kv_heads, group * rows, head_dim)
        k, v = inputs.k[:, :, :total], inputs.v[:, :, :total]
        out = F.scaled_dot_product_attention(packed, k, v, attn_mask=mask, scale=how.scale)
        out = out.view(batch, kv_heads, group, rows, head_dim).permute(0, 3, 1, 2, 4)
        return out.reshape(batch, rows, kv_heads * group, head_dim)

    return run
