"""Cost ladders of attention that others published: NVIDIA's measurements and NVIDIA's own model.

They are what can be shown without a GPU. None of them is a verify pass of ours, and each says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from specviz.cost.kernel_rows import MAIN, REDUCTION
from specviz.words import later

MLA_SOURCE = later(
    "NVIDIA, aiconfigurator-core 0.12.0 (Apache-2.0): decode of MLA, one query token, so that the "
    "heads take the part of G (1 + D) rows; 8192 cached tokens, batch 128"
)
FACTOR_SOURCE = later(
    "NVIDIA, flashinfer @fb28d724, fmhaKernels.cuh: experimental kernel-timing model of "
    "trtllm-gen, read from the source, not measured here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Microseconds by rows, measured by NVIDIA; what is to be learned from it."""

    title: str
    us: Mapping[int, float]
    note: str

    @property
    def relative(self) -> dict[int, float]:
        """Time over that of one row."""
        return {rows: t / self.us[1] for rows, t in self.us.items()}


_ROWS = (1, 16, 32, 64, 128)


def _ladder(title: str, us: tuple[float, ...], note: str) -> Ladder:
    return Ladder(title=title, us=dict(zip(_ROWS, us, strict=True)), note=note)


MLA: tuple[Ladder, ...] = (
    _ladder("H200, TensorRT-LLM, FP8", (213, 215, 220, 226, 438),
            later("a tile of 64 rows: the second one costs as much as the first")),
    _ladder("H200, TensorRT-LLM, BF16", (287, 286, 289, 295, 486),
            later("the same tile, less of it seen: twice the bytes")),
    _ladder("H100, TensorRT-LLM, BF16", (404, 409, 411, 417, 515),
            later("memory is the limit until 64 rows and hides most of the step")),
    _ladder("A100, TensorRT-LLM, BF16, batch 64", (1378, 1372, 1365, 1361, 2314),
            later("a tile of 64 rows")),
    _ladder("B200, TensorRT-LLM, FP8", (104, 105, 161, 135, 137),
            later("a tile of 16 rows runs twice at 32; 128 rows take two SMs")),
    _ladder("L40S, SGLang, BF16", (1755, 1706, 3221, 6380, 12458),
            later("a tile of 16 rows: every further one costs a whole one")),
)  # fmt: skip


def factors() -> dict[int, tuple[float, float]]:
    """Return by tile the time of the main loop per key and of the reduction, 8 rows = 1."""
    return {tile: (MAIN[tile], REDUCTION[tile]) for tile in MAIN}
