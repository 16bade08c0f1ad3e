"""How a launch of our kernel is cut: rows of a tile, keys of a block, splits, warps, stages."""

from dataclasses import dataclass, replace

from kernels.errors import KernelError

TILES = (16, 32, 64, 128)  # BLOCK_M: what a user sees as "the tile"
MOST_SPLITS = 64
LEAST_BLOCKS = 4  # of keys for each split: below, the reduction costs more than it saves


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """What a plan needs to know of a GPU; the compute capability is 80, 90, 100, 120."""

    capability: int
    sms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One call in numbers. `longest` bounds the cached tokens of every sequence."""

    batch: int
    rows: int  # 1 + nodes
    kv_heads: int
    group: int
    head_dim: int
    longest: int

    @property
    def packed(self) -> int:
        """G * (1 + D): rows per KV head."""
        return self.group * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The cut of one launch."""

    block_m: int
    block_n: int
    splits: int
    warps: int
    stages: int
    tail: int  # keys of a masked block: the new ones and what is left of the cached ones
    scale: float = 1.0


def tile_rows(packed: int) -> int:
    """Return the smallest tile that holds `packed` rows, 128 if none does."""
    return next((tile for tile in TILES if packed <= tile), TILES[-1])


def make_plan(
    problem: Problem,
    device: Device,
    scale: float,
    block_m: int | None = None,
    splits: int | None = None,
) -> Plan:
    """Choose a cut; `block_m` and `splits` overrule.

    Raises:
        KernelError: `block_m` is no tile, or `splits` is out of range.
    """
    tile = tile_rows(problem.packed) if block_m is None else block_m
    if tile not in TILES:
        raise KernelError(f"block_m is {tile}; allowed: {', '.join(map(str, TILES))}")
    if splits is not None and not 1 <= splits <= MOST_SPLITS:
        raise KernelError(f"splits is {splits}; allowed: 1 to {MOST_SPLITS}")
    cut = _cut(tile, problem.head_dim, device.capability)
    return replace(cut, splits=splits or _splits(problem, device, tile, cut.block_n), scale=scale)


def _cut(tile: int, head_dim: int, capability: int) -> Plan:
    """Return what compiled with next to no spilled register, on every architecture in the test.

    Only sm_9x and sm_10x have matrix instructions of 64 rows and more; with the 16-row one of the
    others a tile of 64 needs the registers of 8 warps, and one of 128 blocks of half the keys.
    """
    big = capability // 10 in (9, 10)
    narrow = head_dim > 128 or (tile == 128 and not big)
    block_n = 32 if narrow else 64
    return Plan(
        block_m=tile,
        block_n=block_n,
        splits=1,
        warps=8 if tile == 128 or (tile == 64 and not big) else 4,
        stages=_stages(capability, head_dim, block_n),
        tail=16 if tile == 128 and not big else 32,
    )


def _splits(problem: Problem, device: Device, tile: int, block_n: int) -> int:
    """Split keys until each SM has two programs, but never into slivers."""
    programs = problem.batch * problem.kv_heads * -(-problem.packed // tile)
    wanted = -(-2 * device.sms // programs)
    room = problem.longest // (block_n * LEAST_BLOCKS)
    return max(1, min(wanted, room, MOST_SPLITS))


def _stages(capability: int, head_dim: int, block_n: int) -> int:
    """Return how many blocks of keys and values are in flight.

    Consumer Blackwell (sm_120) and Ada give a block 99 KiB of shared memory, data-centre parts
    163 KiB and more.
    """
    pair = 4 * head_dim * block_n  # bytes of one block of keys and values in 16 bits
    room = 72 * 1024 if capability in (86, 89, 120, 121) else 128 * 1024
    return max(2, min(3, room // pair))
