"""Lap times of one round: the wall clock on a CPU, CUDA events on a GPU."""

import time
from dataclasses import dataclass, field
from itertools import pairwise

import torch


@dataclass(slots=True)
class Stopwatch:
    """Marks the ends of phases; on a GPU nothing waits until the times are read."""

    device: torch.device
    started: float = field(default_factory=time.perf_counter)
    marks: list[tuple[str, float, torch.cuda.Event | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lap("")

    def lap(self, name: str) -> None:
        """End the phase `name`; a name may end several phases, they add up."""
        event = None
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record()
        self.marks.append((name, time.perf_counter(), event))

    def seconds(self) -> dict[str, float]:
        """Seconds by phase, and "total" on the wall clock since the start."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        total = time.perf_counter() - self.started
        laps: dict[str, float] = {}
        for (_, before, first), (name, after, last) in pairwise(self.marks):
            spent = after - before
            if first is not None and last is not None:
                spent = first.elapsed_time(last) / 1000
            laps[name] = laps.get(name, 0.0) + spent
        return laps | {"total": total}
