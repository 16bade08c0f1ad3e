"""`gpu-check`: test the kernels on the device and measure everything a GPU can tell."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from specviz.cli import terminal
from specviz.config import require
from specviz.words import _

if TYPE_CHECKING:
    from collections.abc import Mapping

    from specviz.cli import Commands

FAILED = 1


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser(
        "gpu-check", help="test and measure everything on a GPU, under 8 minutes, no network"
    )
    parser.add_argument("--out", default="gpu-check", metavar="DIR", help="JSON and plots go here")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda")
    parser.add_argument("--stages", default="", metavar="A,B", help="some of the stages")
    parser.add_argument("--tiny", action="store_true", help="tiny sizes: tests the check itself")
    parser.add_argument(
        "--model",
        default=os.environ.get("SPECVIZ_MODEL", ""),
        metavar="DIR",
        help="folder of the embedded model, if not in the cache (or SPECVIZ_MODEL)",
    )
    parser.add_argument("--stage", default="", help=argparse.SUPPRESS)  # one, in this process
    parser.add_argument("--bandwidth", type=float, default=1e12, help=argparse.SUPPRESS)
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Run the stages, write the files; the status is 1 if a stage failed."""
    from specviz.bench.gpu_check import STAGES, run_all, run_stage
    from specviz.models.device import choose_device

    device = choose_device(args.device)
    if args.stage:
        require(args.stage in STAGES, "stage", args.stage, ", ".join(STAGES))
        outcome = run_stage(
            args.stage, device, tiny=args.tiny, bandwidth=args.bandwidth, model=args.model
        )
        Path(args.out).write_text(json.dumps(asdict(outcome)), "utf-8")
        return 0
    stages = [s.strip() for s in args.stages.split(",") if s.strip()] or list(STAGES)
    for stage in stages:
        require(stage in STAGES, "stages", stage, ", ".join(STAGES))
    tiny = args.tiny or device.type == "cpu"  # real sizes would take a CPU hours
    progress = terminal.Progress()

    def say(stage: str) -> None:
        progress(_("{stage}").format(stage=stage), stages.index(stage) / len(stages))

    found = run_all(stages, device, say, tiny=tiny, model=args.model)
    progress.clear()
    folder = Path(args.out)
    _write(found, folder)
    outcomes = cast("Mapping[str, Mapping[str, object]]", found["stages"])
    for name, said in outcomes.items():
        line = f"{said['state']:6} {name} ({float(str(said['seconds'])):.0f} s)"
        sys.stdout.write(f"{line} {said['error']}".rstrip() + "\n")
    sys.stdout.write(_("written to {folder}").format(folder=folder) + "\n")
    return FAILED if any(o["state"] != "ok" for o in outcomes.values()) else 0


def _write(found: "Mapping[str, object]", folder: Path) -> None:
    from specviz.bench.gpu_charts import charts

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gpu-check.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    for name, chart in charts(found):
        (folder / name).write_text(chart.svg(), "utf-8")
