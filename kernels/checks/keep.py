"""`kv_keep`: the path, in order, and nothing else."""

from collections.abc import Iterator
from functools import partial

import torch

from kernels.checks import Check
from kernels.kv_keep import kv_keep

SHAPES = ((2, 2, 3, 40, 80), (40, 96), (3, 40, 33))


def checks() -> Iterator[Check]:
    """Yield caches of 5, 2 and 3 dimensions, paths with and without moves."""
    for shape in SHAPES:
        for path in ((0, 3, 4, 8), (0, 1), (), (2,)):
            yield Check(f"kv_keep: {path} in {shape}", partial(keeps, shape, path))


def keeps(shape: tuple[int, ...], path: tuple[int, ...], device: torch.device) -> None:
    """Promise: rows start + 1 .. are those of the path; every other row stays as it was."""
    cache = torch.randn(shape, generator=torch.Generator().manual_seed(2)).to(device)
    before, start = cache.clone(), 11
    padded = torch.tensor([*path, *[-1] * (9 - len(path))], device=device)
    kept = torch.tensor(len(path), device=device)
    kv_keep(cache, torch.tensor(start, device=device), padded, kept, "triton")
    wanted = before.clone()
    for i, node in enumerate(path):
        wanted[..., start + 1 + i, :] = before[..., start + 1 + node, :]
    assert torch.equal(cache, wanted)
