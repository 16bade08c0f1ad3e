"""`trace`: show, compare, export and import recorded runs. None of it needs torch."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal
from specviz.errors import TraceError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.cli import Commands
    from specviz.traces.schema import Trace

FORMATS = ("json", "csv")


def add_command(commands: "Commands") -> None:
    """Register the command with its four actions."""
    parser = commands.add_parser("trace", help="show, compare, export or import recorded runs")
    actions = parser.add_subparsers(required=True, metavar="action")
    shown = actions.add_parser("show", help="every round of a trace")
    shown.add_argument("file", help="a trace, or the name of a recording that comes with specviz")
    shown.add_argument("--json", action="store_true", help="its numbers, as run --json prints them")
    shown.set_defaults(command=show)
    differ = actions.add_parser("diff", help="where two traces part")
    differ.add_argument("file")
    differ.add_argument("other")
    differ.add_argument("--json", action="store_true")
    differ.set_defaults(command=diff)
    out = actions.add_parser("export", help="a trace as JSON, or its rounds as CSV")
    out.add_argument("file")
    out.add_argument("--format", choices=FORMATS, default="json")
    out.add_argument("-o", "--out", metavar="FILE", help="(default: standard output)")
    out.set_defaults(command=export)
    taken = actions.add_parser("import", help="check a trace of ours and keep a copy")
    taken.add_argument("file")
    taken.add_argument("-o", "--out", metavar="FILE", required=True)
    taken.set_defaults(command=take_in)


def read(name: str) -> "Trace":
    """Load a trace file, or a recording by name.

    Raises:
        TraceError: There is no such file, or it is damaged, hostile or from a newer version.
    """
    from specviz import recordings
    from specviz.traces.store import load

    path = Path(name)
    if not path.exists() and name in recordings.names():
        path = recordings.path(name)
    return load(path)


def show(args: argparse.Namespace) -> int:
    """Print every round and the numbers of a trace."""
    from specviz.cli import summary
    from specviz.cli.rounds import LEGEND, line

    trace = read(args.file)
    if args.json:
        sys.stdout.write(json.dumps(summary.as_json(trace), allow_nan=False) + "\n")
        return 0
    title = terminal.visible(trace.title) or "untitled"
    sys.stdout.write(f"{title}, recorded {trace.created}\n{LEGEND}\n\n")
    for event in trace.rounds:
        sys.stdout.write(line(event, trace.piece) + "\n")
    text = terminal.visible(trace.text, keep="\n\t")
    sys.stdout.write(f"\n{text}\n\n{summary.paragraph(trace)}\n")
    return 0


def diff(args: argparse.Namespace) -> int:
    """Say where the outputs of two traces part and which settings differ."""
    from specviz.cli import difference

    a, b = read(args.file), read(args.other)
    found = difference.compare(a, b)
    text = json.dumps(found.as_json()) if args.json else difference.as_text(found, a, b)
    sys.stdout.write(text + "\n")
    return 0


def export(args: argparse.Namespace) -> int:
    """Write a trace in another format."""
    from specviz.cli.run import check_destination
    from specviz.cli.sheet import rounds_csv
    from specviz.traces.store import to_json

    check_destination(args.out)
    trace = read(args.file)
    text = to_json(trace) if args.format == "json" else rounds_csv(trace)
    if args.out is None:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        write(Path(args.out), text)
    return 0


def write(path: Path, text: str) -> None:
    """Write an exported file.

    Raises:
        TraceError: The disk or the permissions do not allow it.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise TraceError(
            _(
                "{path} cannot be written ({error}); give another file name or free some space"
            ).format(path=path, error=error)
        ) from error


def take_in(args: argparse.Namespace) -> int:
    """Check a trace and write it again in the newest schema."""
    from specviz.cli.run import check_destination
    from specviz.traces.store import save

    check_destination(args.out)
    trace = read(args.file)
    save(trace, Path(args.out))
    sys.stderr.write(f"{len(trace.rounds)} rounds kept in {args.out}\n")
    return 0
