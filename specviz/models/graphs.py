"""Work captured once as a CUDA graph and replayed; where that cannot be, it runs as it is."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor

from specviz.words import later

WARM_UP = 2  # eager runs before a capture: kernels are compiled and measured in them
MOST = 64  # graphs kept: each holds the memory of its intermediate results

Made = TypeVar("Made", bound=Tensor | tuple[Tensor, ...])  # what work leaves, always in one place


@dataclass(frozen=True, slots=True)
class Captured:
    """A graph, the tensor it reads and what it writes."""

    graph: torch.cuda.CUDAGraph
    packet: Tensor
    output: Tensor | tuple[Tensor, ...]


class Graphs:
    """Captured work by key. `reasons` says for each key that runs eagerly why it does.

    Work reads one packet and tensors that never move; it must not wait for the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.reasons: dict[Hashable, str] = {}
        self._captured: dict[Hashable, Captured] = {}

    @property
    def captured(self) -> int:
        """How many graphs there are."""
        return len(self._captured)

    def run(self, key: Hashable, packet: Tensor, work: Callable[[Tensor], Made]) -> Made:
        """Return work(packet) with the packet on the device; a replay overwrites the last result.

        `packet` is on the host, pinned where there is a GPU, so its copy waits for nothing.
        """
        if self.device.type != "cuda":
            self.reasons[key] = later("CUDA graphs need a CUDA device; this is {device}").format(
                device=self.device.type
            )
        if key not in self._captured and key not in self.reasons:
            self._capture(key, packet, work)
        if key in self.reasons:
            return work(packet.to(self.device, non_blocking=True))
        kept = self._captured[key]
        kept.packet.copy_(packet, non_blocking=True)
        kept.graph.replay()
        return cast(Made, kept.output)

    def forget(self) -> None:
        """Drop all graphs, for when a tensor they read was replaced."""
        self._captured.clear()
        self.reasons.clear()

    def _capture(
        self, key: Hashable, packet: Tensor, work: Callable[[Tensor], Tensor | tuple[Tensor, ...]]
    ) -> None:
        if len(self._captured) >= MOST:
            del self._captured[next(iter(self._captured))]
        static = packet.to(self.device)
        try:
            self._captured[key] = self._captured_work(static, work)
        except RuntimeError as error:  # torch says in it which operation cannot be captured
            first = error.__context__ or error  # ending a broken capture fails once more
            self.reasons[key] = later("it could not be captured: {why}").format(
                why=(str(first) or type(first).__name__).splitlines()[0]
            )

    def _captured_work(
        self, static: Tensor, work: Callable[[Tensor], Tensor | tuple[Tensor, ...]]
    ) -> Captured:
        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            for _run in range(WARM_UP):
                work(static)
        torch.cuda.current_stream(self.device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = work(static)
        return Captured(graph, static, output)
