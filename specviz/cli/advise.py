"""`advise`: which scheme and D for a model, a GPU, a load and how drafts are accepted."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal
from specviz.cost.acceptance import CLASSES, from_file
from specviz.cost.advise import Advice, Question, advise
from specviz.cost.hardware import GPUS, THIS, Gpu, find_gpu
from specviz.cost.kernels import KERNELS, find_kernel
from specviz.cost.model_card import built_in, facts, from_text, names
from specviz.cost.model_shape import ModelShape
from specviz.cost.reasons import sentences, title
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import Point, Profile, iid_profile
from specviz.errors import ConfigError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.cli import Commands

BYTES = {"float32": 4.0, "bfloat16": 2.0, "fp8": 1.0, "fp4": 4.25 / 8}
IID = "iid"


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("advise", help="which scheme and D fit a model and a GPU")
    model = parser.add_argument_group("model").add_mutually_exclusive_group()
    model.add_argument("--config", metavar="FILE", help="config.json of the target, - for stdin")
    model.add_argument(
        "--model",
        metavar="M",
        help=f"a built-in model, a folder or a config.json: {', '.join(names())}",
    )
    group = parser.add_argument_group("deployment")
    group.add_argument("--gpu", default="h200", help=f"{', '.join(GPUS)}, or {THIS} once measured")
    group.add_argument("--batch", type=int, default=1, metavar="N")
    group.add_argument("--context", type=int, default=8192, metavar="N", help="cached tokens")
    group.add_argument("--tp", type=int, default=1, metavar="N", help="tensor parallelism")
    group.add_argument("--weights", choices=BYTES, help="default: as the checkpoint stores them")
    group.add_argument("--kv", choices=("bfloat16", "fp8"), default="bfloat16", help="KV cache")
    group.add_argument("--kernel", help=f"of attention: {', '.join(KERNELS)}")
    group.add_argument("--peak", action="store_true", help="data-sheet rates, not achieved ones")
    group = parser.add_argument_group("acceptance")
    group.add_argument("--prompts", choices=CLASSES, default="chat", help="kind of prompt")
    group.add_argument("--profile", metavar="FILE", help="measured rates: a trace or a profile")
    group.add_argument("--scheme", metavar="S", help="only this scheme; names that of --profile")
    group.add_argument(
        "--acceptance", type=float, metavar="A", help="one rate for all positions (special case)"
    )
    group.add_argument("--draft-model", metavar="M", help="rank this built-in model as a drafter")
    parser.add_argument("--measure", action="store_true", help="measure this machine, and use it")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Answer on standard output."""
    from specviz.bench import machine

    this: Gpu | None
    if args.measure:
        this = machine.measure(progress=terminal.Progress())
        args.gpu = THIS
    else:
        this = machine.saved()
    advice = advise(question(args, this))
    if args.json:
        sys.stdout.write(json.dumps(as_json(advice), allow_nan=False) + "\n")
    else:
        sys.stdout.write(as_text(advice) + "\n")
    return 0


def question(args: argparse.Namespace, this: Gpu | None) -> Question:
    """Return the question the flags ask.

    Raises:
        ConfigError: a flag is out of range, or a file is no config or profile.
    """
    gpu = find_gpu(args.gpu, this)
    profiles = _profiles(args)
    return Question(
        place=Deployment(
            shape=shape(args.config, args.model),
            gpu=gpu if args.peak else gpu.achieved,
            kernel=find_kernel(args.kernel) if args.kernel else None,
            batch=args.batch,
            context=args.context,
            tp=args.tp,
            weight_bytes=BYTES[args.weights] if args.weights else None,
            kv_bytes=BYTES[args.kv],
        ),
        prompts=args.prompts,
        profiles=profiles,
        draft_model=built_in(args.draft_model) if args.draft_model else None,
        only=tuple(profiles) or ((args.scheme,) if args.scheme else ()),
    )


def shape(config: str | None, model: str | None) -> ModelShape:
    """Return the model of --config or --model; the embedded one without either.

    Raises:
        ConfigError: there is no such model, or its config.json cannot be read.
    """
    if config == "-":
        return from_text(sys.stdin.read(), "stdin")
    given = Path(config) if config else Path(model) if model else None
    if given is not None and (given / "config.json").is_file():
        given = given / "config.json"
    if given is not None and (config or given.is_file()):
        name = given.parent.resolve().name if given.name == "config.json" else given.stem
        return from_text(_read(given).decode("utf-8", errors="replace"), name)
    return built_in(model or "SmolLM2-135M")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        text = _("{path} cannot be read ({error}); give a file that is there")
        raise ConfigError(text.format(path=path, error=error.strerror or error)) from error


def _profiles(args: argparse.Namespace) -> dict[str, Profile]:
    if args.profile is not None:
        named, profile = from_file(_read(Path(args.profile)), Path(args.profile).name)
        scheme = args.scheme or named
        if not scheme:
            text = _("{file} does not name its drafter; say it with --scheme")
            raise ConfigError(text.format(file=args.profile))
        return {scheme: profile}
    if args.acceptance is not None:
        return {args.scheme or "eagle3": iid_profile(args.acceptance)}
    return {}


def as_json(advice: Advice) -> dict[str, object]:
    """Return the answer as one JSON object; `how` says how each kind of number is known."""
    place, rule = advice.question.place, advice.rule
    return {
        "model": place.shape.name,
        "gpu": place.gpu.name,
        "batch": place.batch,
        "context": place.context,
        "tp": place.tp,
        "group_size": advice.group_size,
        "tile": advice.tile,
        "d_star": advice.d_star,
        "optimum": {"scheme": advice.scheme, **_point(advice.optimum)},
        "rule": {
            "draft_length": rule.draft_length,
            "scheme": rule.scheme or None,
            "speedup": rule.point.speedup if rule.point else None,
            "loss": rule.loss,
            "agrees": rule.agrees,
        },
        "schemes": [
            {
                "scheme": choice.scheme,
                **_point(choice.best),
                "acceptance": {
                    "rates": choice.profile.rates,
                    "how": choice.profile.how,
                    "iid": choice.profile.iid,
                    "source": choice.profile.source,
                },
                "extrapolated": choice.extrapolated,
            }
            for choice in advice.choices
        ],
        "kernels": [
            {
                "name": row.kernel.name,
                "version": row.kernel.version,
                "rows": row.layout.rows,
                "tile": row.layout.tile,
                "blocks": row.layout.blocks,
                "utilisation": row.layout.utilisation,
                "relative_time": row.layout.relative_time,
                "free_draft_length": row.free_length,
                "used": row.used,
            }
            for row in advice.kernels
        ],
        "edges": asdict(advice.edges),
        "free_rows": dict(advice.free_rows),
        "plain_pass_seconds": advice.plain.seconds,
        "memory_bytes": place.memory,
        "fits": place.memory <= place.gpu.memory,
        "reasons": sentences(advice),
        "how": dict(advice.how),
        "sources": dict(place.gpu.sources),
    }


def _point(point: Point) -> dict[str, float]:
    return {
        "draft_length": point.draft_length,
        "speedup": point.speedup,
        "acceptance_length": point.expected_length,
        "verify": point.verify,
        "draft": point.draft,
    }


def as_text(advice: Advice) -> str:
    """Return the answer for people: the card, the schemes, the kernels, the reasons."""
    place = advice.question.place
    lines = [f"{place.shape.name} on {place.gpu.title}, batch {place.batch}, "
             f"context {place.context}, tensor parallelism {place.tp}", ""]  # fmt: skip
    lines += [f"  {fact.name}: {fact.value}" for fact in facts(place.shape, place.tp)]
    lines += ["", _("Best D of each scheme (modelled)")]
    for choice in advice.choices:
        best = choice.best
        lines.append(
            f"  {title(choice.scheme):12} D = {best.draft_length:<3} {best.speedup:.2f}x  "
            f"E[L] {best.expected_length:.2f}  ({choice.profile.how})"
        )
    lines += ["", _("Rows of one KV head at D = {d}").format(d=advice.optimum.draft_length)]
    for row in advice.kernels:
        layout = row.layout
        lines.append(
            f"  {row.kernel.title:26} {layout.rows} rows in {layout.blocks} x {layout.tile}, "
            f"{layout.utilisation:.0%} used{'  *' if row.used else ''}"
        )
    lines += ["", *(f"- {line}" for line in sentences(advice))]
    return terminal.visible("\n".join(lines), keep="\n")
