"""What every backend must compute: plain softmax attention, one mask, nothing packed."""

import torch
from torch import Tensor

from kernels.tree_attention.call import Inputs
from kernels.tree_attention.masks import unpack_bits


def tree_attention(inputs: Inputs, scale: float) -> Tensor:
    """Return [batch, rows, heads, head_dim] in the dtype of the inputs."""
    q, rows = inputs.q, inputs.rows
    among = unpack_bits(inputs.ancestors).expand(inputs.batch, rows, rows)
    out = torch.empty_like(q)
    for b in range(inputs.batch):
        cached = int(inputs.past[b])
        seen = torch.cat((among.new_ones(rows, cached), among[b]), dim=1)  # [rows, total]
        for head in range(q.shape[2]):
            k = inputs.k[b, head // inputs.group, : cached + rows]
            v = inputs.v[b, head // inputs.group, : cached + rows]
            scores = (q[b, :, head] @ k.T) * scale  # [rows, total]
            out[b, :, head] = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
    return out
