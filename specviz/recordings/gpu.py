"""Runs of `gpu-check` that come with the program: what a GPU measured, with device and date."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from specviz import recordings
from specviz.errors import TraceError
from specviz.words import _

PATTERN = "*gpu-check*.json"
COMPILED = Path("kernels") / "compiled.json"
Json = Mapping[str, object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured call of attention: seconds of a backend over packed rows G x (1 + D)."""

    backend: str
    group: int
    rows: int  # 1 + D
    context: int
    batch: int
    seconds: float
    block_m: int | None = None

    @property
    def packed(self) -> int:
        return self.group * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Seconds of a whole pass of one random target, by rows 1 + D."""

    target: str
    group: int
    context: int
    seconds: Mapping[int, float]

    @property
    def relative(self) -> dict[int, float]:
        """v(rows) / v(1)."""
        return {rows: t / self.seconds[1] for rows, t in self.seconds.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRun:
    """What one file says; a stage that failed left its part empty and its reason in `failed`."""

    device: str
    date: str  # YYYY-MM-DD
    tiny: bool  # a test of the check itself, whose times mean nothing
    points: tuple[Point, ...]
    fits: tuple[tuple[str, int, int, int, str], ...]  # backend, G, context, batch, in words
    passes: tuple[Passes, ...]
    goals: Mapping[str, tuple[float | None, float]]  # ratio and what is aimed at
    failed: Mapping[str, str]

    @property
    def label(self) -> str:
        """Device and date, as charts name the run."""
        return f"{self.device}, {self.date}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What the assembler made of one kernel for one architecture, without a GPU."""

    kernel: str
    arch: str
    block_m: int | None
    final: bool  # one split: the result needs no second launch
    warps: int
    registers: int
    spilled: int
    shared: int
    instructions: tuple[str, ...]


def gpu_runs(folder: Path | None = None) -> tuple[GpuRun, ...]:
    """Return every run in `folder`, the newest first; the recordings of the program if None.

    Raises:
        TraceError: a file is not what `gpu-check` writes.
    """
    files = sorted((folder or recordings.FOLDER).rglob(PATTERN))
    return tuple(sorted((read_run(file) for file in files), key=lambda r: r.date, reverse=True))


def read_run(file: Path) -> GpuRun:
    """Read one file of `gpu-check`.

    Raises:
        TraceError: it is not what `gpu-check` writes.
    """
    return _read(file, _run, _("{name} is not a file of gpu-check ({error}); make it again"))


def _run(found: Json) -> GpuRun:
    stages = cast("Mapping[str, Json]", found["stages"])
    results = {name: cast(Json, stage.get("result") or {}) for name, stage in stages.items()}
    attention, decode = results.get("attention", {}), results.get("decode", {})
    environment = cast(Json, found["environment"])
    goals = cast("Mapping[str, Json]", found.get("goals") or {})
    return GpuRun(
        device=str(environment["device"]),
        date=str(found["date"])[:10],
        tiny=bool(found["tiny"]),
        points=tuple(_point(p) for p in _list(attention, "points")),
        fits=tuple(
            (
                str(f["backend"]),
                _int(f["group"]),
                _int(f["context"]),
                _int(f["batch"]),
                str(f["text"]),
            )
            for f in _list(attention, "fits")
        ),
        passes=tuple(
            _passes(twin, size) for size in _list(decode, "sizes") for twin in _list(size, "twins")
        ),
        goals={
            name: (None if g["ratio"] is None else _float(g["ratio"]), _float(g["goal"]))
            for name, g in goals.items()
        },
        failed={n: str(s["error"]) for n, s in stages.items() if s["state"] != "ok"},
    )


def _list(found: Json, name: str) -> list[Json]:
    return cast("list[Json]", found.get(name) or [])


def _point(p: Json) -> Point:
    return Point(
        backend=str(p["backend"]),
        group=_int(p["group"]),
        rows=_int(p["rows"]),
        context=_int(p["context"]),
        batch=_int(p["batch"]),
        seconds=_float(p["seconds"]),
        block_m=None if p.get("block_m") is None else _int(p["block_m"]),
    )


def _passes(twin: Json, size: Json) -> Passes:
    return Passes(
        target=str(twin["target"]),
        group=_int(twin["group"]),
        context=_int(cast(Json, size["size"])["context"]),
        seconds={_int(r["rows"]): _float(r["seconds"]) for r in _list(twin, "rows")},
    )


def compiled(file: Path | None = None) -> tuple[str, tuple[Compiled, ...]]:
    """Return the version of triton and what it compiled, in the order of the file.

    Raises:
        TraceError: the file is missing or damaged.
    """
    text = _("{name} is not a record of compiled kernels ({error})")
    return _read(file or recordings.FOLDER / COMPILED, _kernels, text)


def _kernels(found: Json) -> tuple[str, tuple[Compiled, ...]]:
    return str(found["triton"]), tuple(map(_compiled, _list(found, "compiled")))


def _read(file: Path, parse: Callable[[Json], T], complaint: str) -> T:
    try:
        return parse(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise TraceError(complaint.format(name=file.name, error=why)) from error


def _compiled(line: Json) -> Compiled:
    constants = cast(Json, line["constants"])
    return Compiled(
        kernel=str(line["kernel"]),
        arch=str(line["arch"]),
        block_m=None if line["block_m"] is None else _int(line["block_m"]),
        final=bool(constants.get("DIRECT", True)),
        warps=_int(line["warps"]),
        registers=_int(line["registers"]),
        spilled=_int(line["spilled"]),
        shared=_int(line["shared"]),
        instructions=tuple(cast("list[str]", line["instructions"])),
    )


def _int(value: object) -> int:
    return int(str(value))


def _float(value: object) -> float:
    return float(str(value))
