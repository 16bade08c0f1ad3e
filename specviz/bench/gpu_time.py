"""Seconds of a piece of work: CUDA events around replayed graphs, or the clock on a CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch

REPEATS, INSIDE = 5, 4  # graphs replayed, calls inside one


@dataclass(frozen=True, slots=True)
class Timed:
    """Median seconds of one call, and how the calls were made."""

    seconds: float
    how: str  # "graph", "eager" or "clock"


def timed(device: torch.device, work: Callable[[], object], *, capture: bool = True) -> Timed:
    """Time `work` after a warm-up; with `capture` without its launch costs, where that is possible.

    Work that replays graphs of its own is timed as it is, with `capture` off.
    """
    work()
    if device.type != "cuda":
        return Timed(median(_clocked(work) for _ in range(REPEATS)), "clock")
    torch.cuda.synchronize(device)
    how, call, calls = _captured(work) if capture else ("eager", work, 1)
    call()
    times = []
    for _ in range(REPEATS):
        begin, end = _event(), _event()
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1000 / calls)
    return Timed(median(times), how)


def _captured(work: Callable[[], object]) -> tuple[str, Callable[[], object], int]:
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(INSIDE):
                work()
    except RuntimeError:  # something in it waits for the device
        torch.cuda.synchronize()
        return "eager", work, 1
    return "graph", graph.replay, INSIDE


def _clocked(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
