"""The tensors of one call and how to run it."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kernels.errors import KernelError
from kernels.tree_attention.masks import words_for
from kernels.tree_attention.plan import Problem

Backend = Literal["triton", "flash", "flex", "sdpa"]
BACKENDS: tuple[Backend, ...] = ("triton", "flash", "flex", "sdpa")


@dataclass(frozen=True, slots=True)
class Inputs:
    """Queries of the new tokens and the cache that already holds their keys and values.

    Raises:
        KernelError: shapes or dtypes that do not fit together.
    """

    q: Tensor  # [batch, rows, heads, head_dim]; row 0 is the root; head h has KV head h // G
    k: Tensor  # [batch, kv_heads, capacity, head_dim]; the new keys are at past .. past + rows
    v: Tensor  # the same
    past: Tensor  # [batch] int32: cached tokens of each sequence
    ancestors: Tensor  # [rows, words] or [batch, rows, words] int32 of `tree_bits`

    def __post_init__(self) -> None:
        q, k, v, past, bits = self.q, self.k, self.v, self.past, self.ancestors
        if q.dim() != 4 or k.dim() != 4 or k.shape != v.shape or q.shape[3] != k.shape[3]:
            raise KernelError(
                f"q is {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}; needed: "
                "[batch, rows, heads, head_dim] and twice [batch, kv_heads, capacity, head_dim]"
            )
        if q.shape[0] != k.shape[0] or q.shape[2] % k.shape[1] or past.shape != q.shape[:1]:
            raise KernelError(
                f"q is {tuple(q.shape)}, k {tuple(k.shape)}, past {tuple(past.shape)}: the batches "
                "must agree and the query heads must divide among the KV heads"
            )
        needed = (q.shape[1], words_for(q.shape[1]))
        if bits.shape[-2:] != needed or bits.dtype != torch.int32:
            raise KernelError(
                f"ancestors is {bits.dtype} {tuple(bits.shape)}; needed: int32 {needed}"
            )

    @property
    def batch(self) -> int:
        return self.q.shape[0]

    @property
    def rows(self) -> int:
        """1 + nodes."""
        return self.q.shape[1]

    @property
    def kv_heads(self) -> int:
        return self.k.shape[1]

    @property
    def group(self) -> int:
        """G: query heads per KV head."""
        return self.q.shape[2] // self.kv_heads

    @property
    def head_dim(self) -> int:
        return self.q.shape[3]

    def problem(self, longest: int) -> Problem:
        """Return the call in numbers."""
        return Problem(
            batch=self.batch,
            rows=self.rows,
            kv_heads=self.kv_heads,
            group=self.group,
            head_dim=self.head_dim,
            longest=longest,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attend:
    """How to run: `longest` bounds the cached tokens of every sequence and is known to the host."""

    scale: float
    longest: int
    chain: bool = False  # the new rows are a chain: flash-attn may run it
    backend: Literal["auto"] | Backend = "auto"
    block_m: int | None = None  # of the triton backend; None: the smallest tile that fits
    splits: int | None = None  # of the triton backend; None: enough to fill the SMs
