"""What this machine can do, measured: how fast it copies, multiplies and takes exponentials.

Medians of repeats, kept in the cache folder under the machine's name. Nothing here loads torch
until something is measured.
"""

import os
import platform
import re
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cost.hardware import THIS, Family, Gpu, from_json, to_json
from specviz.errors import CacheError
from specviz.models.store import Progress, cache_dir, silent, write_atomically
from specviz.words import _

if TYPE_CHECKING:
    import torch

SECONDS = 0.5  # of measuring each figure
FEWEST = 5  # repeats, however long they take
COPY_BYTES = {"cpu": 64 << 20, "cuda": 1 << 30}  # larger than any cache
SIDE = {"cpu": 768, "cuda": 8192}  # of the square matrices
EXPS = {"cpu": 1 << 18, "cuda": 1 << 26}  # elements; on a CPU they stay in its cache
FALLBACK_MEMORY = 8e9


def path() -> Path:
    """File of this machine's figures."""
    name = re.sub(r"[^\w.-]", "_", platform.node()) or "machine"
    return cache_dir() / f"machine-{name}.json"


def saved() -> Gpu | None:
    """Return what was measured here before, None if nothing was or the file is damaged."""
    try:
        return from_json(path().read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def measure(device_name: str = "auto", progress: Progress = silent) -> Gpu:
    """Measure this machine, a few seconds, and keep the figures.

    Raises:
        ConfigError: there is no such device.
    """
    import torch

    from specviz.models.device import choose_device
    from specviz.models.device import device_name as title

    device = choose_device(device_name)
    kind = "cuda" if device.type == "cuda" else "cpu"
    progress(_("Measuring copy bandwidth"), 0.0)
    bandwidth = _bandwidth(device, COPY_BYTES[kind])
    progress(_("Measuring matmul rates"), 0.3)
    rates = {
        name: _matmul(device, dtype, SIDE[kind])
        for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32))
    }
    progress(_("Measuring exponentials"), 0.8)
    when = datetime.now(UTC).date().isoformat()
    threads = f", {torch.get_num_threads()} threads" if kind == "cpu" else ""
    source = f"measured {when}, torch {torch.__version__}{threads}, median"
    figures = ("bf16", "fp32", "bandwidth", "exps", "op_seconds")
    machine = Gpu(
        name=THIS,
        title=title(device),
        family=_family(device),
        bf16=rates["bf16"],
        fp32=rates["fp32"],
        bandwidth=bandwidth,
        memory=_memory(device),
        sms=_processors(device),
        exps=_exponentials(device, EXPS[kind]),
        op_seconds=_smallest(device),
        how="measured",
        sources=dict.fromkeys(figures, source),
    )
    with suppress(CacheError):  # then it is measured again next time
        write_atomically(path(), to_json(machine))
    progress(_("Measured"), 1.0)
    return machine


def _median(device: "torch.device", work: Callable[[], object]) -> float:
    """Median seconds of `work`, the first call not counted."""
    _wait(device, work)
    times: list[float] = []
    deadline = time.perf_counter() + SECONDS
    while len(times) < FEWEST or time.perf_counter() < deadline:
        times.append(_wait(device, work))
    return statistics.median(times)


def _wait(device: "torch.device", work: Callable[[], object]) -> float:
    import torch

    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    return time.perf_counter() - began


def _bandwidth(device: "torch.device", size: int) -> float:
    """Bytes read and written per second of a copy."""
    import torch

    source = torch.ones(size // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * size / _median(device, lambda: target.copy_(source))


def _matmul(device: "torch.device", dtype: "torch.dtype", side: int) -> float:
    """FLOP/s of a square matmul of random numbers; equal ones would draw less power."""
    import torch

    left, right = (torch.randn(side, side, device=device).to(dtype) for _side in range(2))
    return 2 * side**3 / _median(device, lambda: left @ right)


def _exponentials(device: "torch.device", count: int) -> float:
    import torch

    source = torch.rand(count, device=device)
    target = torch.empty_like(source)
    return count / _median(device, lambda: torch.exp(source, out=target))


def _smallest(device: "torch.device") -> float:
    """Seconds of an operation that moves nothing to speak of, from a hundred in a row."""
    import torch

    one = torch.ones(8, device=device)

    def many() -> None:
        for _each in range(100):
            one.add_(1.0)

    return _median(device, many) / 100


def _memory(device: "torch.device") -> float:
    import torch

    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    with suppress(ValueError, OSError, AttributeError):
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return FALLBACK_MEMORY


def _processors(device: "torch.device") -> int | None:
    import torch

    if device.type != "cuda":
        return None
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def _family(device: "torch.device") -> Family:
    import torch

    if device.type == "cpu":
        return "cpu"
    if device.type != "cuda" or torch.version.hip:
        return "cdna" if device.type == "cuda" else "other"
    major, minor = torch.cuda.get_device_capability(device)
    families: dict[int, Family] = {8: "ampere", 9: "hopper", 10: "blackwell", 12: "blackwell-rtx"}
    return "ada" if (major, minor) == (8, 9) else families.get(major, "other")
