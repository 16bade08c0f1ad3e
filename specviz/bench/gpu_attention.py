"""Sweep of `tree_attention`: G x (1 + D) x context x batch, each backend in turn at each point."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import product
from time import monotonic

import torch

from specviz.bench.gpu_fit import fit
from specviz.bench.gpu_time import timed
from specviz.models.own_kernels import find_own_kernels
from specviz.recordings import gpu

find_own_kernels()  # before the next line, which needs it
from kernels.tree_attention import (  # noqa: E402
    BACKENDS,
    Attend,
    Backend,
    Inputs,
    chain_bits,
    plan_of,
    prepare,
    unavailable,
)

SLOW = 0.02  # seconds: a backend slower than this is not asked for more rows of that series


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is swept, and for how long at most."""

    groups: tuple[int, ...] = (8, 4, 1, 16, 2, 3, 32)
    rows: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64)
    contexts: tuple[int, ...] = (8192, 1024, 32768)
    batches: tuple[int, ...] = (64, 1, 8)
    kv_heads: int = 8
    head_dim: int = 128
    seconds: float = 120.0
    flex_seconds: float = 25.0  # flex compiles anew for many shapes: it would eat all the time


TINY = Grid(
    groups=(2, 3),
    rows=(1, 2, 3, 4, 5),
    contexts=(48,),
    batches=(1, 2),
    kv_heads=1,
    head_dim=16,
    seconds=20.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(gpu.Point):
    """A call as it is measured. Bandwidth counts the keys and values that must be read once."""

    how: str
    bytes_per_second: float
    splits: int | None = None


@dataclass(slots=True)
class Series:
    """All rows of one G, context and batch."""

    group: int
    context: int
    batch: int
    grid: Grid
    device: torch.device
    refused: dict[str, str]  # shared by all series: why a backend has no such points
    spent: dict[str, float]  # seconds by backend, compiling included

    def points(self, until: float) -> Iterator[Point]:
        """Measure until the time is up; a backend that fails or is slow is left out from there."""
        dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        room = self.context + max(self.grid.rows)
        size = (self.batch, self.grid.kv_heads, room, self.grid.head_dim)
        k, v = (torch.randn(size, device=self.device, dtype=dtype) for _kv in range(2))
        past = torch.full((self.batch,), self.context, dtype=torch.int32, device=self.device)
        out: set[Backend] = {"flex"} if self.device.type != "cuda" else set()
        for rows in self.grid.rows:
            heads = self.grid.kv_heads * self.group
            q = torch.randn(
                self.batch, rows, heads, self.grid.head_dim, device=self.device, dtype=dtype
            )
            inputs = Inputs(q, k, v, past, chain_bits(rows, self.device))
            for backend in BACKENDS:
                if monotonic() > until or backend in out or self._over(backend):
                    continue
                if why := unavailable(backend, q, chain=True):
                    self.refused.setdefault(backend, why)
                    continue
                began = monotonic()
                point = self._point(backend, inputs)
                self.spent[backend] = self.spent.get(backend, 0.0) + monotonic() - began
                if point is None or point.seconds > SLOW:
                    out.add(backend)
                if point is not None:
                    yield point

    def _over(self, backend: Backend) -> bool:
        """Whether flex has had its time."""
        return backend == "flex" and self.spent.get("flex", 0.0) > self.grid.flex_seconds

    def _point(self, backend: Backend, inputs: Inputs) -> Point | None:
        scale = self.grid.head_dim**-0.5
        how = Attend(scale=scale, longest=self.context, chain=True, backend=backend)
        try:
            found = timed(self.device, prepare(backend, inputs, how))
        except Exception as error:  # of any library, compiler or device: no such point
            place = f"G = {self.group}, {inputs.rows} rows, {self.context} cached, {self.batch}"
            self.refused.setdefault(backend, f"{place}: {type(error).__name__}: {error}"[:500])
            return None
        read = 2 * self.batch * self.grid.kv_heads * (self.context + inputs.rows)
        size = read * self.grid.head_dim * inputs.k.element_size()
        plan = plan_of(inputs, how) if backend == "triton" else None
        return Point(
            backend=backend,
            group=self.group,
            rows=inputs.rows,
            context=self.context,
            batch=self.batch,
            seconds=found.seconds,
            how=found.how,
            bytes_per_second=size / found.seconds,
            block_m=plan.block_m if plan else None,
            splits=plan.splits if plan else None,
        )


def sweep(device: torch.device, grid: Grid) -> dict[str, object]:
    """Measure the grid, most telling series first, and fit each; what time left out is counted."""
    until, points = monotonic() + grid.seconds, list[Point]()
    refused, spent = dict[str, str](), dict[str, float]()
    series = list(product(grid.contexts, grid.batches, grid.groups))
    for context, batch, group in series:
        if monotonic() > until:
            break
        one = Series(group, context, batch, grid, device, refused, spent)
        points += one.points(until)
    swept = {(p.context, p.batch, p.group) for p in points}
    return {
        "grid": asdict(replace(grid)),
        "points": [asdict(point) for point in points],
        "fits": fits(points),
        "series_left_out": len(series) - len(swept),
        "against_the_best": against_the_best(points),
        "refused": refused,
        "seconds_by_backend": spent,
    }


def fits(points: list[Point]) -> list[dict[str, object]]:
    """Fit every series of at least four points over its packed rows."""
    found = []
    for key in dict.fromkeys((p.backend, p.group, p.context, p.batch) for p in points):
        mine = [p for p in points if (p.backend, p.group, p.context, p.batch) == key]
        if len(mine) >= 4:
            shape = fit([p.rows * p.group for p in mine], [p.seconds for p in mine])
            names = dict(zip(("backend", "group", "context", "batch"), key, strict=True))
            found.append(names | asdict(shape) | {"text": shape.text})
    return found


def against_the_best(points: list[Point]) -> dict[str, object]:
    """How our kernel compares with the fastest other backend, point by point."""
    ratios = []
    for mine in (p for p in points if p.backend == "triton"):
        others = [
            p.seconds
            for p in points
            if p.backend != "triton"
            and (p.group, p.rows, p.context, p.batch)
            == (mine.group, mine.rows, mine.context, mine.batch)
        ]
        if others:
            ratios.append(mine.seconds / min(others))
    over = sum(ratio > 1.05 for ratio in ratios)
    return {"points": len(ratios), "worst": max(ratios, default=None), "over_5_percent": over}
