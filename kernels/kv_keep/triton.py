"""Our kernel: one program for each row of the leading dimensions, tokens in order."""

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def move_path(
    cache, start, path, accepted, size_1, size_2, stride_0, stride_1, stride_2, stride_token, width,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy token by token. A lane reads and writes the same column, and a source is never behind
    its goal, so no other lane is waited for.
    """  # noqa: D205
    index = tl.program_id(0).to(tl.int64)
    at = (index // (size_1 * size_2)) * stride_0
    at += (index // size_2 % size_1) * stride_1 + (index % size_2) * stride_2
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first = tl.load(start).to(tl.int64) + 1
    for i in range(tl.load(accepted).to(tl.int32)):
        node = tl.load(path + i).to(tl.int64)
        if node != i:
            source = cache + at + (first + node) * stride_token + column
            value = tl.load(source, mask=column < width, other=0.0)
            goal = cache + at + (first + i) * stride_token + column
            tl.store(goal, value, mask=column < width)


def kv_keep(cache: Tensor, start: Tensor, path: Tensor, accepted: Tensor) -> None:
    """One launch; shapes as in the contract."""
    lead = [*[1] * (5 - cache.dim()), *cache.shape[:-2]]  # [3]
    strides = [*[0] * (5 - cache.dim()), *cache.stride()[:-2]]
    width = cache.shape[-1]
    block = min(1024, triton.next_power_of_2(width))
    move_path[(int(torch.Size(lead).numel()), triton.cdiv(width, block))](
        cache, start, path, accepted, lead[1], lead[2], *strides, cache.stride(-2), width,
        BLOCK=block, num_warps=1 if block <= 128 else 4,
    )  # fmt: skip
