"""torch's flex_attention: the mask is code. Compiled on a GPU, step by step on a CPU."""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol, cast

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from kernels.tree_attention.call import Attend, Inputs
from kernels.tree_attention.masks import WORD


class _Flex(Protocol):
    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        block_mask: BlockMask,
        scale: float,
        enable_gqa: bool,
    ) -> Tensor: ...


@lru_cache
def _attend(compiled: bool) -> _Flex:
    return cast(_Flex, torch.compile(flex_attention, dynamic=True) if compiled else flex_attention)


def block_mask(past: Tensor, ancestors: Tensor, rows: int, total: int) -> BlockMask:
    """Say who sees whom as flex wants it; shapes as in the contract, made anew every round."""
    shared = ancestors[None] if ancestors.dim() == 2 else ancestors
    among = shared.expand(len(past), *shared.shape[1:])

    def seen(b: Tensor, h: Tensor, row: Tensor, key: Tensor) -> Tensor:
        new = key - past[b]
        inside = new.clamp(0, rows - 1)
        bit = (among[b, row, inside // WORD] >> (inside % WORD)) & 1
        return (new < 0) | ((new < rows) & (bit == 1))

    return create_block_mask(seen, len(past), None, rows, total, device=past.device)


def prepare(inputs: Inputs, how: Attend) -> Callable[[], Tensor]:
    """Make the mask, once for all layers of a pass; keys up to `longest` + rows are read."""
    total = how.longest + inputs.rows
    mask = block_mask(inputs.past, inputs.ancestors, inputs.rows, total)
    attend = _attend(inputs.q.is_cuda)

    def run() -> Tensor:
        out = attend(
            inputs.q.transpose(1, 2),
            inputs.k[:, :, :total],
            inputs.v[:, :, :total],
            block_mask=mask,
            scale=how.scale,
            enable_gqa=inputs.group > 1,
        )
        return out.transpose(1, 2)

    return run
