"""`measure`: held-out E[L] of saved heads, by class of prompt, and how far a copy moves it."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal
from specviz.config import MAX_DRAFT_LENGTH, require
from specviz.words import _

if TYPE_CHECKING:
    from specviz.cli import Commands
    from specviz.train.evaluate import Acceptance

    Found = dict[str, Acceptance]


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("measure", help="held-out E[L] of saved heads and draft models")
    parser.add_argument("heads", nargs="+", metavar="DIR", help="folders; changes are to the first")
    parser.add_argument("--data", nargs="+", required=True, metavar="F", help=".parquet, .jsonl")
    parser.add_argument("--rows", type=int, metavar="N", help="of each file at most")
    parser.add_argument("--features", metavar="DIR", help="cache of hidden states on disk")
    parser.add_argument("--texts", type=int, default=48, metavar="N", help="held-out texts")
    parser.add_argument("--depth", type=int, default=4, metavar="N", help="drafts per round")
    parser.add_argument("--target", metavar="M", help="folder, GGUF file or hub id")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ...")
    parser.add_argument("--dtype", default="auto", help="of the target: auto, float32, bfloat16")
    parser.add_argument("--no-autocast", action="store_true", help="float32 throughout")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Measure each head on the same texts and print a line for each class of prompt."""
    require(args.texts >= 1, "texts", args.texts, _("1 or more"))
    depth = args.depth
    fits = 1 <= depth <= MAX_DRAFT_LENGTH
    require(fits, "depth", depth, _("1 to {most}").format(most=MAX_DRAFT_LENGTH))
    found = _measure(args)
    sys.stdout.write((_as_json(found) if args.json else _as_text(found)) + "\n")
    return 0


def _measure(args: argparse.Namespace) -> "dict[str, Found]":
    from specviz.models.load import load
    from specviz.train.run import own_target
    from specviz.train.saved import Extent, Texts, measure_saved, read_course

    progress = terminal.Progress()
    loaded = load(args.target, device=args.device, dtype=args.dtype, progress=progress)
    target = own_target(loaded)
    # All are read before the first is measured: a wrong folder is told at once.
    courses = {name: read_course(Path(name), target, args.depth) for name in args.heads}
    features = Path(args.features) if args.features else None
    data = tuple(Path(name) for name in args.data)
    source = Texts(data=data, rows=args.rows, features=features).open(target, progress)
    extent = Extent(texts=args.texts, depth=args.depth, autocast=not args.no_autocast)
    found: dict[str, Found] = {}
    for done, (name, course) in enumerate(courses.items()):
        progress(_("measuring {name}").format(name=name), done / len(courses))
        found[name] = measure_saved(course, source, extent)
    progress.clear()
    return found


def _as_json(found: "dict[str, Found]") -> str:
    shown = {
        name: {
            kind: {
                "rounds": counts.rounds,
                "acceptance_length": round(counts.length, 4),
                "accepted_by_position": [round(n / counts.rounds, 4) for n in counts.by_position],
            }
            for kind, counts in kinds.items()
        }
        for name, kinds in found.items()
    }
    return json.dumps(shown)


def _as_text(found: "dict[str, Found]") -> str:
    """Return one line for each class, "all" last: rounds, E[L], and the change to the first."""
    (_name, first), *others = found.items()
    lines = [_("held-out E[L], teacher-forced, greedy, the target's own token included")]
    lines += [f"{letter}: {name}" for letter, name in zip("ABCDEFGHIJ", found, strict=False)]
    for kind in sorted(first, key=lambda kind: (kind == "all", kind)):
        base = first[kind]
        line = f"{kind:<20} {base.rounds:>6} rounds  A {base.length:.3f}"
        for letter, (_other, counts) in zip("BCDEFGHIJ", others, strict=False):
            change = 100 * (counts[kind].length / base.length - 1)
            line += f"  {letter} {counts[kind].length:.3f} ({change:+.2f}%)"
        lines.append(line)
    return "\n".join(lines)
