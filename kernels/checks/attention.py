"""`tree_attention` in odd sizes, and with drafts that would love to see their own future."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from kernels.checks import Check
from kernels.testing import assert_kernel_close
from kernels.tree_attention import Attend, Inputs, chain_bits, pack_bits, tree_attention, tree_bits
from kernels.tree_attention.call import Backend
from kernels.tree_attention.reference import tree_attention as reference

DEEP = (-1, -1, 0, 0, 2, 4, 5, 6, 7, 8, 1)  # eight levels, with siblings on the way
FLAT = (-1,) * 6  # one level


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call: sizes, a tree (None: a chain), and how it is cut."""

    group: int
    nodes: int = 0
    past: tuple[int, ...] = (100,)
    parents: tuple[int, ...] | None = None
    kv_heads: int = 1
    head_dim: int = 64
    block_m: int | None = None
    splits: int | None = 1

    @property
    def name(self) -> str:
        shape = "chain" if self.parents is None else f"tree of {len(self.parents)}"
        cut = f"tile {self.block_m or 'auto'}, {self.splits or 'auto'} splits"
        past = " and ".join(map(str, self.past))
        drafted = f"D = {self.nodes}, " if self.parents is None else ""
        return (
            f"tree_attention: {shape}, G = {self.group}, {drafted}{past} cached, "
            f"{self.kv_heads} KV heads of {self.head_dim}, {cut}"
        )

    def inputs(self, device: torch.device, dtype: torch.dtype) -> Inputs:
        """Random tensors; what lies past the new keys is garbage, as in a used cache."""
        rows = 1 + (self.nodes if self.parents is None else len(self.parents))
        generator = torch.Generator().manual_seed(7)

        def random(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator).to(device, dtype)

        size = (len(self.past), self.kv_heads, max(self.past) + rows + 9, self.head_dim)
        return Inputs(
            random(len(self.past), rows, self.kv_heads * self.group, self.head_dim),
            random(*size),
            random(*size),
            torch.tensor(self.past, dtype=torch.int32, device=device),
            chain_bits(rows, device) if self.parents is None else tree_bits(self.parents, device),
        )

    def how(self, backend: Backend) -> Attend:
        return Attend(
            scale=self.head_dim**-0.5,
            longest=max(self.past),
            chain=self.parents is None,
            backend=backend,
            block_m=self.block_m if backend == "triton" else None,
            splits=self.splits if backend == "triton" else None,
        )


SMALL = (
    Case(group=3, nodes=0, past=(0,)),  # a single key
    Case(group=3, nodes=0, past=(62,)),  # 63 keys
    Case(group=5, nodes=2, past=(63, 0), kv_heads=2),
    Case(group=5, nodes=17, past=(130,), splits=2),
    Case(group=9, nodes=4, past=(33,), head_dim=80),
    Case(group=12, nodes=11, past=(64,), block_m=64),  # 144 rows in tiles of 64
    Case(group=1, nodes=16, past=(200, 1), block_m=16, splits=3),
    Case(group=4, past=(70,), parents=FLAT),
    Case(group=3, past=(129,), parents=DEEP, splits=2),
    Case(group=12, past=(40,), parents=DEEP, block_m=128),
    Case(group=2, past=(65,), parents=tuple(range(-1, 39)), block_m=32),  # two words of bits
)
MORE = tuple(
    Case(group=group, nodes=nodes, past=(3000, 63, 700), kv_heads=2, head_dim=128, splits=None)
    for group in (1, 3, 4, 5, 8, 9, 12, 16)
    for nodes in (0, 1, 3, 7, 15, 16, 17)
)


def checks(device: torch.device) -> Iterator[Check]:
    """Every backend that the device has, on every case; the interpreter knows no bf16."""
    on_gpu = device.type == "cuda"
    cases = (*SMALL, *MORE) if on_gpu else SMALL
    for dtype in (torch.float16, torch.bfloat16) if on_gpu else (torch.float16,):
        for case in cases:
            yield Check(f"{case.name}, {_short(dtype)}", partial(agrees, case, dtype, "triton"))
    for backend in ("triton", "sdpa"):
        for parents in (None, FLAT, DEEP):
            case = Case(group=3, nodes=5, past=(40,), parents=parents)
            name = f"tree_attention: {backend} hides the future from {_kind(parents)}"
            yield Check(name, partial(hides_the_future, case, backend))


def agrees(case: Case, dtype: torch.dtype, backend: Backend, device: torch.device) -> None:
    """Promise: at most twice the error of plain torch in the same dtype."""
    inputs = case.inputs(device, dtype)
    scale = case.head_dim**-0.5
    assert_kernel_close(
        tree_attention(inputs, case.how(backend)),
        reference(inputs, scale),
        reference(_exact(inputs), scale),
    )


def hides_the_future(case: Case, backend: Backend, device: torch.device) -> None:
    """Promise: a key that draws all attention is not seen by a row that must not see it.

    The same comparison must fail with the mask dropped, or it would prove nothing.
    """
    inputs = case.inputs(device, torch.float16)
    rows, past = inputs.rows, case.past[0]
    inputs.q[:] = 1.0
    inputs.k[:, :, past : past + rows] = 4.0  # every new key outweighs every cached one
    inputs.v[:, :, past : past + rows] = torch.arange(rows, device=device)[:, None].half() * 10
    scale = case.head_dim**-0.5
    exact = reference(_exact(inputs), scale)
    plain = reference(inputs, scale)
    assert_kernel_close(tree_attention(inputs, case.how(backend)), plain, exact)
    everything = pack_bits(torch.ones(rows, rows, dtype=torch.bool, device=device))
    blind = tree_attention(replace(inputs, ancestors=everything), case.how(backend))
    try:
        assert_kernel_close(blind, plain, exact)
    except AssertionError:
        return
    raise AssertionError("without its mask the kernel passes the same test")


def _exact(inputs: Inputs) -> Inputs:
    q, k, v = inputs.q.double(), inputs.k.double(), inputs.v.double()
    return replace(inputs, q=q, k=k, v=v)


def _kind(parents: Sequence[int] | None) -> str:
    return "a chain" if parents is None else f"a tree of {len(parents)} nodes"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
