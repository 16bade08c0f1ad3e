"""One command for a GPU: checks every kernel, measures what pays, and writes one file of JSON.

Each stage is a process of its own with a limit of time: a kernel that hangs or corrupts the device
takes its stage with it and no other.
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from itertools import takewhile
from pathlib import Path
from time import monotonic, perf_counter

import torch

from specviz import __version__
from specviz.bench.gpu_goals import goals
from specviz.models.device import device_name
from specviz.words import _

FORMAT = 1
# Seconds that each stage may take on a GPU; together under 8 minutes.
LIMITS = {"kernels": 90, "device": 20, "attention": 150, "decode": 125, "schemes": 90}
STAGES = tuple(LIMITS)
KERNEL_SECONDS = 65.0  # of checking kernels; what is left out then is counted
SAMPLE = 6  # of the kernel checks, when only the command itself is tested
TINY_FACTOR = 10  # a CPU that others use is given longer for its tiny sizes
PACKAGES = ("torch", "triton", "transformers", "flash-attn", "flash-attn-4")
FALLBACK_BANDWIDTH = 1e12  # bytes/s; only a share that is called so depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a stage found, or why it found nothing."""

    stage: str
    state: str  # "ok" or "failed"
    seconds: float
    error: str = ""
    result: dict[str, object] | None = None


def run_stage(
    stage: str, device: torch.device, *, tiny: bool, bandwidth: float, model: str = ""
) -> Outcome:
    """Run one stage in this process; whatever goes wrong becomes its outcome."""
    began = perf_counter()
    work: dict[str, Callable[[], dict[str, object]]] = {
        "kernels": lambda: _kernels(device, tiny=tiny),
        "device": lambda: measure_device(device),
        "attention": lambda: _sweep(device, tiny=tiny),
        "decode": lambda: _decode(device, bandwidth, tiny=tiny),
        "schemes": lambda: _schemes(device, model, tiny=tiny),
    }
    try:
        result = work[stage]()
    except Exception as error:  # of any library, compiler or device: the other stages go on
        text = f"{type(error).__name__}: {error}"
        return Outcome(
            stage=stage, state="failed", seconds=perf_counter() - began, error=text[:2000]
        )
    bad = result.get("failed")
    return Outcome(
        stage=stage,
        state="failed" if bad else "ok",
        seconds=perf_counter() - began,
        error=_("{n} kernel checks failed").format(n=bad) if bad else "",
        result=result,
    )


def check_kernels(
    device: torch.device, every: int = 1, seconds: float = KERNEL_SECONDS
) -> dict[str, object]:
    """Run the kernel checks on the device, or one in `every`; on a CPU through the interpreter."""
    if device.type != "cuda":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    from specviz.models.own_kernels import find_own_kernels

    find_own_kernels()
    from kernels.checks import all_checks, outcomes

    chosen, until = list(all_checks(device))[::every], monotonic() + seconds
    found = dict(outcomes(takewhile(lambda check: monotonic() < until, chosen), device))
    failed = {name: error for name, error in found.items() if error}
    return {
        "checks": len(found),
        "not_run": len(chosen) - len(found),
        "failed": len(failed),
        "failures": failed,
    }


def measure_device(device: torch.device) -> dict[str, object]:
    """Measure copy bandwidth and matmul rates."""
    from specviz.bench.machine import measure

    return asdict(measure(device.type))


def _kernels(device: torch.device, *, tiny: bool) -> dict[str, object]:
    if tiny:
        return check_kernels(device, SAMPLE, TINY_FACTOR * KERNEL_SECONDS)
    return check_kernels(device)


def _sweep(device: torch.device, *, tiny: bool) -> dict[str, object]:
    from specviz.bench.gpu_attention import TINY, Grid, sweep

    return sweep(device, TINY if tiny else Grid())


def _decode(device: torch.device, bandwidth: float, *, tiny: bool) -> dict[str, object]:
    from specviz.bench.gpu_decode import SIZES, TINY, measure_size

    sizes = TINY if tiny else SIZES
    found, wrong = list[dict[str, object]](), dict[str, str]()
    for size in sizes:
        try:
            found.append(measure_size(device, size, bandwidth))
        except Exception as error:  # of any library or device: the other size goes on
            wrong[size.name] = f"{type(error).__name__}: {error}"[:1000]
    if not found:
        raise RuntimeError(str(wrong))
    return {"sizes": found, "failures": wrong}


def _schemes(device: torch.device, model: str, *, tiny: bool) -> dict[str, object]:
    from specviz.bench.gpu_schemes import measure_schemes

    return measure_schemes(device, model, tiny=tiny)


def run_all(
    stages: Sequence[str],
    device: torch.device,
    report: Callable[[str], None],
    *,
    tiny: bool,
    model: str = "",
) -> dict[str, object]:
    """Run the stages, each in its own process; return everything that the file holds.

    `model` is the folder of the embedded model; "" is where the program keeps it.
    """
    outcomes, bandwidth = dict[str, Outcome](), FALLBACK_BANDWIDTH
    for stage in stages:
        report(stage)
        more = ["--bandwidth", str(bandwidth), "--model", model, *(["--tiny"] if tiny else [])]
        outcomes[stage] = _apart(stage, device, more, LIMITS[stage] * (TINY_FACTOR if tiny else 1))
        if stage == "device" and outcomes[stage].result is not None:
            bandwidth = float(str((outcomes[stage].result or {})["bandwidth"]))
    return {
        "format": FORMAT,
        "specviz": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "tiny": tiny,
        "environment": environment(device),
        "goals": goals({name: o.result or {} for name, o in outcomes.items()}, bandwidth),
        "stages": {stage: asdict(outcome) for stage, outcome in outcomes.items()},
    }


def _apart(stage: str, device: torch.device, more: Sequence[str], limit: float) -> Outcome:
    """Run a stage in a process that may hang, crash or lose its device."""
    began = perf_counter()
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "outcome.json"
        command = [sys.executable, "-m", "specviz", "gpu-check", "--stage", stage]
        command += ["--device", device.type, "--out", str(file), *more]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
            error = _("its process ended with status {status}: {said}").format(
                status=done.returncode, said=done.stderr.strip()[-1000:]
            )
        except subprocess.TimeoutExpired:
            error = _("it took longer than {limit} seconds").format(limit=limit)
        with suppress(OSError, ValueError, TypeError):
            return Outcome(**json.loads(file.read_text("utf-8")))
    return Outcome(stage=stage, state="failed", seconds=perf_counter() - began, error=error)


def environment(device: torch.device) -> dict[str, object]:
    """Return device, driver and versions."""
    versions = dict[str, str]()
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "device": device_name(device),
        "type": device.type,
        "driver": _driver() if device.type == "cuda" else None,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
    }


def _driver() -> str | None:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.splitlines()[0].strip()
    return None
