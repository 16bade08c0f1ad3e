"""Which backend runs a call: what was asked for, or what was fastest when it was measured here."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from subprocess import CalledProcessError

import torch
from torch import Tensor

from kernels.errors import BackendUnavailable
from kernels.tree_attention.call import Backend
from kernels.tree_attention.plan import Problem, tile_rows

WARM_UP, REPEATS, INSIDE = 2, 5, 4


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, why it was taken, and what each one took, in seconds, where that was measured."""

    backend: Backend
    reason: str
    seconds: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # backend -> why it is out


def shape_class(problem: Problem, dtype: torch.dtype, chain: bool) -> str:
    """Name the calls that are measured once for all: sizes rounded up to powers of two."""
    tiles = -(-problem.packed // tile_rows(problem.packed))
    return (
        f"{'chain' if chain else 'tree'}, rows to {tiles * tile_rows(problem.packed)}, "
        f"context to {_power(max(problem.longest, 256))}, batch to {_power(problem.batch)}, "
        f"{problem.kv_heads} KV heads of {problem.head_dim}, {str(dtype).removeprefix('torch.')}"
    )


class Choices:
    """Memory of what was measured, by device and shape class; a file keeps it if `path` is set."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.made: dict[str, Choice] = {}
        if path is not None:
            with suppress(OSError, ValueError, TypeError, AttributeError):  # then measure again
                kept = json.loads(path.read_text("utf-8"))
                self.made = {key: Choice(**value) for key, value in kept.items()}

    def choose(
        self,
        key: str,
        candidates: Sequence[Backend],
        prepare: Callable[[Backend], Callable[[], Tensor]],
        refused: dict[str, str],
    ) -> Choice:
        """Return the fastest of `candidates`, measured the first time that `key` is seen."""
        if key in self.made:
            return self.made[key]
        if len(candidates) == 1 or torch.cuda.is_current_stream_capturing():
            only = candidates[0]
            why = "the only one" if len(candidates) == 1 else "not measured: a graph was captured"
            return Choice(only, why, refused=refused)
        refused = dict(refused)
        seconds = dict[str, float]()
        for backend in candidates:
            try:
                seconds[backend] = _seconds(prepare(backend))
            except _failures() as error:
                refused[backend] = f"failed when it was measured: {str(error).splitlines()[0]}"
        if not seconds:
            raise BackendUnavailable(
                "no backend could run this: " + "; ".join(f"{b}: {w}" for b, w in refused.items())
            )
        best = min((b for b in candidates if b in seconds), key=lambda b: seconds[b])
        self.made[key] = Choice(best, "the fastest when measured here", seconds, refused)
        self._keep()
        return self.made[key]

    def _keep(self) -> None:
        if self.path is None:
            return
        with suppress(OSError):  # a full disk: it is measured again next time
            self.path.parent.mkdir(parents=True, exist_ok=True)
            kept = {key: asdict(choice) for key, choice in self.made.items()}
            fresh = self.path.with_suffix(f".{os.getpid()}")
            fresh.write_text(json.dumps(kept, indent=1), "utf-8")
            fresh.replace(self.path)


def _power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _failures() -> tuple[type[Exception], ...]:
    """Ways in which a backend says no: torch, a library, triton's compiler or the C compiler it
    builds its launcher with.
    """  # noqa: D205
    plain = (RuntimeError, ValueError, TypeError, OSError, AssertionError, CalledProcessError)
    try:
        from triton.errors import TritonError
    except ImportError:
        return plain
    return (*plain, TritonError)


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _seconds(run: Callable[[], Tensor]) -> float:
    """Median of CUDA event times, mask included; launches are left out where they can be captured.

    A pass replays a graph, so what launching costs the host says nothing about it.
    """
    for _ in range(WARM_UP):
        run()
    call = _captured(run)
    times = list[float]()
    for _ in range(REPEATS):
        begin, end = _event(), _event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000)
    return median(times)


def _captured(run: Callable[[], Tensor]) -> Callable[[], object]:
    """Return the replay of a few calls as one graph; the calls themselves if that cannot be."""
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(INSIDE):
                run()
    except RuntimeError:
        torch.cuda.synchronize()
        return lambda: [run() for _ in range(INSIDE)]
    return graph.replay
