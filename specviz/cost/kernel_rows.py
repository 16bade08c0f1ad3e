"""Rules of attention kernels: rows of a verify pass -> tiles and blocks.

Each was read from the open source of its kernel. `relative_time` is there only where a source
has one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

# Time of the main loop per KV token and tile, and of the reduction over splits, 8 rows = 1:
# NVIDIA's own kernel-timing model (flashinfer fmhaKernels.cuh, prims_ts fmha_decode_config.py).
MAIN: Mapping[int, float] = {8: 1.0, 16: 1.2, 32: 1.48, 64: 1.68, 128: 2.2}
REDUCTION: Mapping[int, float] = {8: 1.0, 16: 1.03, 32: 1.08, 64: 1.2, 128: 1.32}


@dataclass(frozen=True, slots=True)
class Layout:
    """The rows of one sequence and KV head in a kernel: `blocks` of `tile` rows each."""

    rows: int  # G * (1 + D): what is asked for
    tile: int
    blocks: int
    relative_time: float | None = None  # main loop per KV token, an 8-row tile = 1

    @property
    def computed(self) -> int:
        """Rows the kernel works on, empty ones included."""
        return self.tile * self.blocks

    @property
    def utilisation(self) -> float:
        """Used rows / computed rows."""
        return self.rows / self.computed


Rule = Callable[[int, int, int], Layout]  # (G, 1 + D, head size)


def _up(part: int, whole: int) -> int:
    return -(-part // whole)


def _next_power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def fixed(tile: int) -> Rule:
    """Rows are packed one after another into tiles of one size."""
    return lambda group, tokens, _head: Layout(group * tokens, tile, _up(group * tokens, tile))


def fa2(group: int, tokens: int, _head: int) -> Layout:
    """Packs only a single token; a verify pass gives every query head its own tiles."""
    if tokens == 1:
        return Layout(group, 64, _up(group, 64))
    return Layout(group * tokens, 64, group * _up(tokens, 64))


def fa3(group: int, tokens: int, head: int) -> Layout:
    """Tiles of 192 rows up to head size 96, then of 128."""
    tile = 192 if head <= 96 else 128
    return Layout(group * tokens, tile, _up(group * tokens, tile))


def fa4(group: int, tokens: int, _head: int) -> Layout:
    """One block of 128 rows, then blocks of 256 that two groups of warps share."""
    rows = group * tokens
    return Layout(rows, 128, 1) if rows <= 128 else Layout(rows, 256, _up(rows, 256))


def ladder(group: int, tokens: int, _head: int) -> Layout:
    """Whole tokens go into the smallest of 8, 16, 32, 64 and 128 rows that takes them all."""
    rows = group * tokens
    tile = next((step for step in MAIN if rows <= step), 128)
    # the heads of one token alone may need several tiles
    blocks = _up(tokens, tile // group) if group <= tile else tokens * _up(group, tile)
    return Layout(rows, tile, blocks, blocks * MAIN[tile])


def mla_ladder(group: int, tokens: int, _head: int) -> Layout:
    """Each drafted token is a column of blocks of its own."""
    tile = 8 if group <= 8 else 16 if group <= 32 else 64
    return Layout(group * tokens, tile, tokens * _up(group, tile))


def xqa_hopper(group: int, tokens: int, _head: int) -> Layout:
    """Tiles of 64 rows; 8, 16 or 32 while they take all rows."""
    rows = group * tokens
    tile = next((step for step in (8, 16, 32) if rows <= step), 64)
    return Layout(rows, tile, _up(rows, tile))


def flashinfer_fa2(group: int, tokens: int, head: int) -> Layout:
    """Tiles of 16, 64 or 128 rows, smaller for wide heads."""
    rows = group * tokens
    if head >= 512:
        tile = 16 if rows <= 16 else 32
    else:
        tile = 16 if rows <= 16 else 64 if rows <= 64 or head >= 256 else 128
    return Layout(rows, tile, _up(rows, tile))


def vllm_triton(group: int, tokens: int, _head: int) -> Layout:
    """Whole tokens in tiles of 16 rows, of the next power of two for a larger G."""
    tile = 16 if group <= 16 else _next_power(group)
    return Layout(group * tokens, tile, _up(tokens, tile // group))


def flex(group: int, tokens: int, _head: int) -> Layout:
    """One tile of the next power of two."""
    rows = group * tokens
    return Layout(rows, max(16, _next_power(rows)), 1)


def rocm(group: int, tokens: int, _head: int) -> Layout:
    """A decode variant of 16 rows, else tiles of 128."""
    rows = group * tokens
    tile = 16 if rows <= 16 else 128
    return Layout(rows, tile, _up(rows, tile))
