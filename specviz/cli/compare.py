"""`compare`: the same prompts through several schemes, and the verdict which one wins here."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from specviz.cli import options, sweep, terminal
from specviz.config import DrafterOptions
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.sweep_log import Memory
    from specviz.bench.sweep_plan import Plan
    from specviz.cli import Commands
    from specviz.metrics.sweep import Point


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("compare", help="the same prompts through several schemes")
    options.add_model(parser)
    group = parser.add_argument_group("what to compare")
    sweep.add_prompts(group)
    group.add_argument("--schemes", default="all", metavar="A,B", help="or all")
    group.add_argument("-D", "--draft-length", type=int, default=5, metavar="D")
    group.add_argument("--draft-model", metavar="M", help="folder, GGUF file or hub id")
    group.add_argument("--temperature", type=float, default=0.0, metavar="T")
    group.add_argument("--max-tokens", type=int, default=64, metavar="N")
    group.add_argument("--repeats", type=int, default=2, metavar="N")
    group.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Run every scheme on every prompt, plain decoding between, and print the table."""
    plan = plan_of(args)
    from specviz.bench.sweep import Sweep
    from specviz.bench.sweep_log import Memory
    from specviz.bench.sweep_points import points
    from specviz.metrics.sweep import ALL
    from specviz.models.load import load

    progress = terminal.Progress()
    loaded = load(args.model, device=args.device, dtype=args.dtype, progress=progress)
    log = Memory()
    work = Sweep(loaded, plan, log)
    for number, _task in enumerate(work, 1):
        progress(_("measured {n} of {all}").format(n=number, all=work.total), number / work.total)
    progress.clear()
    for scheme, reason in log.results.unavailable.items():
        terminal.complain(f"{scheme}: {reason}")
    found = [p for p in points(log.results.samples, ()) if p.prompt_class == ALL]
    sys.stdout.write(_json(found, log) if args.json else _text(found, log))
    return 0


def plan_of(args: argparse.Namespace) -> "Plan":
    """Return the plan of the flags: one D, no passes.

    Raises:
        ConfigError: A number or scheme is not one of those allowed.
        PromptError: The prompts cannot be read.
    """
    from specviz.bench.sweep_plan import Plan

    return Plan(
        prompts=sweep.chosen_prompts(args),
        schemes=sweep.chosen_schemes(args),
        lengths=(args.draft_length,),
        temperatures=(args.temperature,),
        tokens=args.max_tokens,
        repeats=args.repeats,
        rows=0,
        seed=args.seed,
        options=DrafterOptions(draft_model=args.draft_model),
    )


def _json(found: "list[Point]", log: "Memory") -> str:
    from specviz.bench.sweep_report import line, measured
    from specviz.cost.verdict import judge, rank
    from specviz.views.compare_table import departures

    head, runs = log.results.head, [measured(p) for p in found]
    whole = {
        "measured": asdict(head) if head else None,
        "schemes": [dict(line(p)) | {"verdict": judge(measured(p)).outcome} for p in found],
        "verdict": rank(runs).text,
        "outcome": rank(runs).outcome,
        "departures": departures(found, log.traces),
        "unavailable": log.results.unavailable,
    }
    return json.dumps(whole, allow_nan=False) + "\n"


def _text(found: "list[Point]", log: "Memory") -> str:
    from specviz.bench.sweep_report import measured
    from specviz.cost.verdict import judge, rank
    from specviz.views.compare_table import columns, departures, rows

    table = [columns(), *rows(found, log.results.samples, log.traces)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)) for r in table]
    runs = [measured(p) for p in found]
    said = [rank(runs).text, "", *(judge(run).text for run in runs)]
    text = "\n".join([*lines, "", *said, *departures(found, log.traces)])
    return terminal.visible(text + "\n", keep="\n")
