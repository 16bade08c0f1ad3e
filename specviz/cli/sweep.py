"""`sweep`: speedup measured against D and G, every point once, also after a kill."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.bench import prompts
from specviz.cli import options, terminal
from specviz.config import DrafterOptions
from specviz.errors import ConfigError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.sweep_log import Results
    from specviz.bench.sweep_plan import Plan, Prompt
    from specviz.cli import Commands
    from specviz.metrics.sweep import Mode

GROUPS: "tuple[Mode, ...]" = ("exact", "twin", "kernel")


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("sweep", help="measure speedup against D and G")
    options.add_model(parser)
    group = parser.add_argument_group("what to measure")
    add_prompts(group)
    group.add_argument("--schemes", default="ngram,suffix", metavar="A,B", help="or all")
    group.add_argument("--draft-lengths", default="1-8", metavar="LIST", help="as 1-8 or 1,2,4")
    group.add_argument(
        "--groups",
        default="",
        metavar="A,B",
        help="ways to turn G beside the target as it is: exact, twin, kernel",
    )
    group.add_argument("--temperatures", default="0", metavar="A,B")
    group.add_argument("--max-tokens", type=int, default=64, metavar="N")
    group.add_argument("--repeats", type=int, default=3, metavar="N")
    group.add_argument("--rows", type=int, default=64, metavar="N", help="most rows of v(rows)")
    group.add_argument("--seed", type=int, default=0, metavar="N")
    group.add_argument("--draft-model", metavar="M", help="folder, GGUF file or hub id")
    group = parser.add_argument_group("results")
    group.add_argument(
        "--out", metavar="DIR", help="goes on where this folder ends (default: in the user cache)"
    )
    group.add_argument("--json", action="store_true", help="one line per point on standard output")
    group.add_argument(
        "--draw",
        metavar="DIR",
        help="also write a table (Markdown) and pictures of verify cost and speedup over D (SVG)",
    )
    group.add_argument(
        "--read",
        metavar="FILE",
        help="measure nothing: print and draw a sweep.jsonl, or its folder",
    )
    parser.set_defaults(command=command)


def add_prompts(group: "argparse._ArgumentGroup") -> None:
    """Add the flags that choose the prompts."""
    group.add_argument("--prompts", metavar="F.jsonl", help='lines of {"prompt", "class", "id"}')
    group.add_argument("--classes", default="chat,code,copy", metavar="A,B", help="built-in ones")
    group.add_argument("--per-class", type=int, default=3, metavar="N", help="prompts per class")


def command(args: argparse.Namespace) -> int:
    """Measure what is missing, write the files, print every point."""
    from specviz.bench import sweep_readme

    results, folder = _read(Path(args.read)) if args.read else _measure(args)
    if args.draw:
        for path in sweep_readme.write(results, Path(args.draw)):
            sys.stderr.write(terminal.visible(_("wrote {path}").format(path=path)) + "\n")
    sys.stdout.write(_lines(results) if args.json else _text(results, folder))
    return 0


def _read(path: Path) -> "tuple[Results, Path]":
    from specviz.bench.sweep_log import FILE, read

    file = path / FILE if path.is_dir() else path
    if not file.is_file():
        text = _("there is no file {file}; give a sweep.jsonl, or the folder of a sweep")
        raise ConfigError(text.format(file=file))
    return read(file), file.parent


def _measure(args: argparse.Namespace) -> "tuple[Results, Path]":
    plan = plan_of(args)
    from specviz.bench import sweep_report as report
    from specviz.bench.sweep import Sweep
    from specviz.bench.sweep_log import Folder, default_folder
    from specviz.models.load import load

    progress = terminal.Progress()
    loaded = load(args.model, device=args.device, dtype=args.dtype, progress=progress)
    folder = Path(args.out) if args.out else default_folder(plan, loaded.target.config.name)
    log = Folder(folder)
    sweep = Sweep(loaded, plan, log)
    done = sweep.total - len(sweep.todo)
    for number, _task in enumerate(sweep, done + 1):
        progress(_("measured {n} of {all}").format(n=number, all=sweep.total), number / sweep.total)
    progress.clear()
    for scheme, reason in log.results.unavailable.items():
        terminal.complain(f"{scheme}: {reason}")
    report.write(log.results, folder)
    return log.results, folder


def plan_of(args: argparse.Namespace) -> "Plan":
    """Return the plan of the flags.

    Raises:
        ConfigError: A number, scheme, class or way to turn G is not one of those allowed.
    """
    from specviz.bench.sweep_plan import Plan

    groups = _names(args.groups)
    for name in groups:
        if name not in GROUPS:
            text = _("groups is {name!r}; allowed: {allowed}")
            raise ConfigError(text.format(name=name, allowed=", ".join(GROUPS)))
    return Plan(
        prompts=chosen_prompts(args),
        schemes=chosen_schemes(args),
        lengths=read_lengths(args.draft_lengths),
        temperatures=tuple(_number(t) for t in _names(args.temperatures)),
        groups=tuple(g for g in GROUPS if g in groups),
        tokens=args.max_tokens,
        repeats=args.repeats,
        rows=args.rows,
        seed=args.seed,
        options=DrafterOptions(draft_model=args.draft_model),
    )


def chosen_prompts(args: argparse.Namespace) -> "tuple[Prompt, ...]":
    """Return the prompts of a file, or the first built-in ones of each class.

    Raises:
        PromptError: The file cannot be read, or a line holds no prompt.
    """
    from specviz.bench.sweep_plan import Prompt
    from specviz.bench.sweep_prompts import read_prompts

    if args.prompts:
        return read_prompts(Path(args.prompts))
    known = prompts.of_class(_names(args.classes))
    by_class = [[p for p in known if p.prompt_class == name] for name in prompts.CLASSES]
    return tuple(Prompt.of(p) for found in by_class for p in found[: args.per_class])


def chosen_schemes(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the schemes of the flag; "all" is every one that drafts."""
    from specviz.drafters import SCHEMES

    every = tuple(scheme for scheme in SCHEMES if scheme != "none")
    return every if args.schemes == "all" else _names(args.schemes)


def read_lengths(text: str) -> tuple[int, ...]:
    """Read draft lengths: "1-8", "1,2,4", or both, as "1-4,8".

    Raises:
        ConfigError: it is no such list.
    """
    found: list[int] = []
    for part in _names(text):
        low, _dash, high = part.partition("-")
        if not low.isdecimal() or not (high or low).isdecimal() or len(part) > 9:
            raise ConfigError(
                _("draft lengths are {text!r}; allowed: numbers and ranges, as 1-4,8").format(
                    text=text
                )
            )
        found += range(int(low), min(int(high or low), 10_000) + 1)
    return tuple(dict.fromkeys(found))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            _("temperatures is {text!r}; allowed: numbers with commas between").format(text=text)
        ) from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _lines(results: "Results") -> str:
    from specviz.bench import sweep_report as report

    return "".join(json.dumps(each, allow_nan=False) + "\n" for each in report.lines(results))


def _text(results: "Results", folder: Path) -> str:
    from specviz.bench.sweep_points import median_error, points
    from specviz.bench.sweep_report import best_points, measured
    from specviz.cost.verdict import rank
    from specviz.metrics.sweep import ALL

    found = points(results.samples, results.passes)
    rows = [f"{'scheme':12} {'D':>3} {'G':>3} {'mode':6} {'class':8} {'E[L]':>6} "
            f"{'speedup':>8} {'interval':>12} {'predicted':>9}"]  # fmt: skip
    for p in found:
        said = "-" if p.predicted is None else f"{p.predicted:.2f}"
        rows.append(
            f"{p.cell.scheme:12} {p.cell.draft_length:3} {p.cell.group_size:3} {p.cell.mode:6} "
            f"{p.prompt_class:8} {p.acceptance_length:6.2f} {p.speedup:8.2f} "
            f"{f'{p.low:.2f}-{p.high:.2f}':>12} {said:>9}"
        )
    error = median_error(found)
    if error is not None:
        text = _("Predicted and measured differ by {share} (median over {n} points).")
        rows += ["", text.format(share=f"{error:.0%}", n=len(found))]
    own = results.head.group_size if results.head else 0
    whole = [p for p in found if p.prompt_class == ALL and p.cell.group_size == own]
    rows += [rank([measured(p) for p in best_points(whole)]).text, "", str(folder)]
    return terminal.visible("\n".join(rows) + "\n", keep="\n")
