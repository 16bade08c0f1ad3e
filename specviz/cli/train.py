"""`train`: make a head for a target out of the target's own answers."""

import argparse
import shlex
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal

if TYPE_CHECKING:
    from specviz.cli import Commands
    from specviz.train.loop import Report
    from specviz.train.recipe import Recipe
    from specviz.train.run import Request

PATHS = ("target", "data", "prompts", "features", "start", "out")
# field of Recipe: what it says in the help
SETTINGS = {
    "steps": "steps in all",
    "batch_tokens": "padded tokens per step",
    "rate": "peak learning rate",
    "warmup": "steps of rising rate",
    "optimizer": "adamw or muon",
    "weight_decay": "of matrices",
    "clip": "largest gradient norm",
    "seed": "of everything random",
    "draft_vocab": "ids the head can draft",
    "measure_every": "steps between held-out E[L]",
    "measure_on": "held-out texts it is measured on",
    "save_every": "steps between states to resume from",
    "depth": "drafts per round of that E[L] (eagle3, mtp)",
    "unrolled": "own steps in training (eagle3, mtp)",
    "step_decay": "weight of each further step (eagle3, mtp)",
    "hard": "share of the true token in soft labels",
    "kv_heads": "KV heads of the layer (eagle3)",
    "intermediate": "width of the MLP",
    "layers": "decoder layers (dflash, dspark, draft_model)",
    "block": "rows of a block (dflash, dspark)",
    "anchors": "blocks per text and step (dflash, dspark)",
    "first_row": "of a block that drafts: 0 the anchor, 1 the first mask (dflash, dspark)",
    "slot_weights": "decay or pace (dflash)",
    "gamma": "of the decay by slot (dflash, dspark)",
    "rank": "of the Markov head (dspark)",
}


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("train", help="train a head on the target's own answers")
    parser.add_argument("--scheme", required=True, help="draft_model, eagle3, mtp, dflash, dspark")
    parser.add_argument("--out", required=True, metavar="DIR", help="state, best head and card")
    group = parser.add_argument_group("target")
    group.add_argument(
        "--target", metavar="M", help="folder, GGUF file or hub id (default: embedded)"
    )
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, ...")
    group.add_argument("--dtype", default="auto", help="of the target: auto, float32, bfloat16")
    group.add_argument("--threads", type=int, metavar="N", help="CPU threads")
    group = parser.add_argument_group("data")
    group.add_argument(
        "--data", nargs="+", default=[], metavar="F", help=".parquet, .jsonl of answers"
    )
    group.add_argument(
        "--prompts", metavar="F", help=".jsonl of prompts or messages, answered first"
    )
    group.add_argument("--max-tokens", type=int, default=224, metavar="N", help="of an answer")
    group.add_argument(
        "--together", type=int, default=1, metavar="N", help="prompts answered in one batch"
    )
    group.add_argument("--rows", type=int, metavar="N", help="of each file at most")
    group.add_argument("--features", metavar="DIR", help="cache of hidden states on disk")
    group.add_argument(
        "--on-the-fly", action="store_true", help="make hidden states anew each time"
    )
    group.add_argument(
        "--prepare", action="store_true", help="stop once texts and features are there"
    )
    group.add_argument(
        "--start", metavar="DIR", help="head whose equally named weights to begin with"
    )
    group.add_argument("--until", type=int, metavar="STEP", help="stop there; a later run goes on")
    group = parser.add_argument_group("recipe", "defaults depend on the scheme")
    for name, text in SETTINGS.items():
        group.add_argument(
            "--" + name.replace("_", "-"), type=_kind(name), metavar="X", default=None, help=text
        )
    group.add_argument("--no-autocast", action="store_true", help="float32 throughout")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Train, or go on with it, and print where the head is."""
    wanted = recipe(args)
    from specviz.models.load import load
    from specviz.train.run import prepare, train

    request = request_of(args, wanted)
    if args.threads:
        import torch

        torch.set_num_threads(args.threads)
    progress = terminal.Progress()
    loaded = load(args.target, device=args.device, dtype=args.dtype, progress=progress)
    if args.prepare:
        source, _ = prepare(loaded, request, progress)
        progress.clear()
        sys.stdout.write(f"{len(source.examples)} texts are ready\n")
        return 0
    best = train(loaded, request, Meter(), progress)
    progress.clear()
    sys.stdout.write(f"{best}\n")
    return 0


class Meter:
    """One line for each measurement, and on a terminal one that is redrawn in between."""

    def __call__(self, report: "Report") -> None:
        stream = sys.stderr
        if report.acceptance_length is None and not stream.isatty() and report.step % 10:
            return
        line = (
            f"step {report.step}/{report.steps}  loss {report.loss:.3f}  "
            f"{report.tokens_per_second:.0f} tokens/s  {_duration(report.left)} left"
        )
        line += "".join(f"  {name} {value:.3f}" for name, value in report.parts.items())
        if report.acceptance_length is not None:
            line += f"  held-out E[L] {report.acceptance_length:.3f}"
        if stream.isatty():
            line = "\r\x1b[K" + line
        stream.write(line + ("" if stream.isatty() and report.acceptance_length is None else "\n"))
        stream.flush()


def recipe(args: argparse.Namespace) -> "Recipe":
    """Return the recipe of the scheme with what the flags change.

    Raises:
        ConfigError: the scheme or a setting is not allowed.
    """
    from specviz.train.recipe import default_recipe

    given = {name: getattr(args, name) for name in SETTINGS if getattr(args, name) is not None}
    if args.no_autocast:
        given["autocast"] = False
    return replace(default_recipe(args.scheme), **given)


def request_of(args: argparse.Namespace, wanted: "Recipe") -> "Request":
    """Return everything the flags ask for. Features lie beside `out` unless told otherwise."""
    from specviz.train.data import Answering
    from specviz.train.run import Request

    out = Path(args.out)
    features = Path(args.features) if args.features else out.parent / "features"
    return Request(
        recipe=wanted,
        data=tuple(Path(name) for name in args.data),
        prompts=None if args.prompts is None else Path(args.prompts),
        answering=Answering(max_tokens=args.max_tokens, together=args.together),
        rows=args.rows,
        features=None if args.on_the_fly else features,
        out=out,
        until=args.until,
        start=Path(args.start) if args.start else None,
        command=reproduce(args),
    )


def reproduce(args: argparse.Namespace) -> str:
    """Return a command that does the same, with names of files and not where they lie here."""
    words = ["python", "-m", "specviz", "train", "--scheme", args.scheme]
    for name in (*PATHS, "rows", *SETTINGS):
        value = getattr(args, name)
        if value is None or value == []:
            continue
        values = value if isinstance(value, list) else [value]
        if name in PATHS and not (name == "target" and not Path(str(value)).exists()):
            values = [Path(str(one)).name for one in values]
        words += ["--" + name.replace("_", "-"), *(str(one) for one in values)]
    for flag in ("on_the_fly", "no_autocast"):
        if getattr(args, flag):
            words.append("--" + flag.replace("_", "-"))
    return shlex.join(words)


def _kind(name: str) -> type:
    from specviz.train.recipe import Recipe

    kinds = {field.name: field.type for field in fields(Recipe)}
    if kinds[name] in (float, int | None, int):
        return float if kinds[name] is float else int
    return str


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60}:{minutes % 60:02} h" if minutes >= 60 else f"{minutes} min"
