"""Where a model runs and in which precision; speed is measured once per machine, not guessed."""

import json
import platform
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import torch

from specviz.errors import CacheError, ConfigError
from specviz.models.layers import Linear
from specviz.models.store import cache_dir, write_atomically
from specviz.words import _

DEVICES = ("auto", "cpu", "cuda", "mps")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

ROWS = (1, 8)  # plain decoding, and a round with seven drafted tokens
_SHAPE = (1536, 576)  # one matrix of the embedded model
_MATRICES = 24  # together larger than most caches: decoding reads its weights from memory
_SECONDS = 0.6  # of measuring


def choose_device(name: str = "auto") -> torch.device:
    """Return the device asked for, or the fastest kind there is.

    Raises:
        ConfigError: unknown, or not on this machine.
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": _has_mps()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    if name not in DEVICES:
        raise ConfigError(
            _("device is {name!r}; allowed: {devices}").format(
                name=name, devices=", ".join(DEVICES)
            )
        )
    if not there[name]:
        found = ", ".join(kind for kind, present in there.items() if present)
        raise ConfigError(
            _(
                "device is {name!r}, which torch {version} does not find here; there is: "
                "{found}. Choose one of these or 'auto'."
            ).format(name=name, version=torch.__version__, found=found)
        )
    return torch.device(name)


def choose_dtype(device: torch.device, name: str = "auto") -> torch.dtype:
    """Return the dtype asked for; "auto" is bf16 where decoding in it is faster than in fp32.

    The first "auto" on a machine measures for about a second; the cache folder keeps the answer.

    Raises:
        ConfigError: unknown dtype.
    """
    if name in DTYPES:
        return DTYPES[name]
    if name != "auto":
        raise ConfigError(
            _("dtype is {name!r}; allowed: auto, {dtypes}").format(
                name=name, dtypes=", ".join(DTYPES)
            )
        )
    times = decode_times(device)
    return DTYPES[min(times, key=lambda kind: times[kind])]


def decode_times(device: torch.device) -> dict[str, float]:
    """Return seconds of a decode-like pass, rows 1 and 8 added up, in "float32" and "bfloat16".

    Kept in the cache folder by device, torch version and number of threads.
    """
    path = cache_dir() / "dtype.json"
    key = f"{device_name(device)} | torch {torch.__version__} | {torch.get_num_threads()} threads"
    known = _read(path)
    if key not in known:
        known[key] = _measure(device)
        with suppress(CacheError):  # then it is measured again next time
            write_atomically(path, json.dumps(known, indent=1))
    return known[key]


def device_name(device: torch.device) -> str:
    """Return what the maker calls the device."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    with suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "linux":
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
        if sys.platform == "darwin":
            command = ["sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
    return platform.processor() or platform.machine()


def _has_mps() -> bool:
    return torch.backends.mps.is_available()


def _measure(device: torch.device) -> dict[str, float]:
    """Time both dtypes in turn and take the best of each: other programs only ever slow it.

    One thread: on a busy machine several wait for each other, and the waiting is what is timed.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _best_times(device)
    finally:
        torch.set_num_threads(threads)


def _best_times(device: torch.device) -> dict[str, float]:
    kinds = ["bfloat16", "float32"]
    if device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False):
        kinds = ["float32"]
    weights = {
        kind: [
            Linear(torch.full(_SHAPE, 0.01, dtype=DTYPES[kind], device=device))
            for _ in range(_MATRICES)
        ]
        for kind in kinds
    }
    for matrices in weights.values():
        for rows in ROWS:  # first calls set up kernels
            _pass(matrices, rows, device)
    best = {kind: dict.fromkeys(ROWS, float("inf")) for kind in kinds}
    deadline = time.perf_counter() + _SECONDS
    while time.perf_counter() < deadline:
        for kind, matrices in weights.items():
            for rows in ROWS:
                best[kind][rows] = min(best[kind][rows], _pass(matrices, rows, device))
    return {kind: sum(times.values()) for kind, times in best.items()}


@torch.inference_mode()
def _pass(matrices: list[Linear], rows: int, device: torch.device) -> float:
    hidden = torch.ones(rows, _SHAPE[1], dtype=matrices[0].dtype, device=device)
    _wait(device)
    began = time.perf_counter()
    for matrix in matrices:
        matrix(hidden)
    _wait(device)
    return time.perf_counter() - began


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _read(path: Path) -> dict[str, dict[str, float]]:
    """Return earlier measurements; anything odd counts as none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        key: times
        for key, times in content.items()
        if isinstance(times, dict)
        and times
        and all(kind in DTYPES and isinstance(t, float) for kind, t in times.items())
    }
