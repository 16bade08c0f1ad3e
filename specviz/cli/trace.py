"""`trace`: show, compare, export and import recorded runs. None of it needs torch."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal
from specviz.errors import ConfigError, TraceError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.cli import Commands
    from specviz.traces.imports import EngineRun
    from specviz.traces.schema import Trace

FORMATS = ("json", "csv", "profile", "md", "html")
GZIP = b"\x1f\x8b"
HEAD = 4096  # bytes in which a trace of ours says that it is one


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
    out = actions.add_parser(
        "export",
        help="a trace as JSON, CSV, acceptance profile, Markdown for an issue, HTML replay",
    )
    out.add_argument("file")
    out.add_argument("--format", choices=FORMATS, default="json")
    out.add_argument("--without-prompt", action="store_true", help="leave the prompt out")
    out.add_argument("--against", metavar="FILE", help="md: a second run to compare with")
    out.add_argument("-o", "--out", metavar="FILE", help="(default: standard output)")
    out.set_defaults(command=export)
    taken = actions.add_parser(
        "import",
        help="check a trace of ours and keep a copy, or read what another engine logged",
        description="Another engine's log, /metrics page or JSON becomes a coarse run: what it "
        "did not say stays empty.",
    )
    taken.add_argument("file", help="- reads standard input")
    taken.add_argument("-o", "--out", metavar="FILE", help="needed for a trace of ours")
    taken.add_argument("--json", action="store_true", help="another engine's runs as JSON")
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
    from specviz.traces.html_replay import replay
    from specviz.traces.markdown import issue
    from specviz.traces.profile import of_trace
    from specviz.traces.schema import redact
    from specviz.traces.store import to_json

    check_destination(args.out)
    trace, other = read(args.file), read(args.against) if args.against else None
    if args.without_prompt:
        trace, other = redact(trace), redact(other) if other else None
    writers: dict[str, Callable[[], str]] = {
        "json": lambda: to_json(trace),
        "csv": lambda: rounds_csv(trace),
        "profile": lambda: of_trace(trace),
        "md": lambda: issue(trace, other),
        "html": lambda: replay(trace),
    }
    text = writers[args.format]()
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
    """Check a trace and write it again in the newest schema; read what another engine said.

    Raises:
        ConfigError: A trace of ours needs a place to be kept.
    """
    from specviz.cli.run import check_destination
    from specviz.traces.store import FORMAT, load, save

    check_destination(args.out)
    raw = _bytes(args.file)
    if not raw.startswith(GZIP) and FORMAT.encode() not in raw[:HEAD]:
        return _foreign(args, raw.decode("utf-8", "replace"))
    if args.out is None:
        raise ConfigError(_("a trace of specviz is imported into a file; give it with -o FILE"))
    trace = load(raw) if args.file == "-" else read(args.file)
    save(trace, Path(args.out))
    sys.stderr.write(f"{len(trace.rounds)} rounds kept in {args.out}\n")
    return 0


def _bytes(name: str) -> bytes:
    """Return the bytes of a file, or of standard input.

    Raises:
        TraceError: It cannot be opened, or is too large.
    """
    from specviz.traces.store import MAX_BYTES

    try:
        if name == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with open(name, "rb") as file:
                raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        text = _("{name} cannot be opened ({error}); give a file, or - for standard input")
        raise TraceError(text.format(name=name, error=error)) from error
    if len(raw) > MAX_BYTES:
        text = _("{name} is too large; give the part of the log that is about one run")
        raise TraceError(text.format(name=name))
    return raw


def _foreign(args: argparse.Namespace, text: str) -> int:
    from specviz.traces import imports

    runs = imports.read(text)
    plain = json.dumps([imports.as_json(run) for run in runs], allow_nan=False)
    if args.out is not None:
        write(Path(args.out), plain + "\n")
    lines = [plain] if args.json else [_engine_run(run) for run in runs]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _engine_run(run: "EngineRun") -> str:
    """Return one run of another engine in words."""
    from specviz.traces import imports

    lines = [f"{run.engine}, {run.source}, {run.about}"]
    lines += [f"  {name}: {value}" for name, value in imports.facts(run)]
    lines += [
        f"  {each.name}: {each.value:.4g}, worked out: {each.formula}"
        for each in imports.derived(run)
    ]
    lines += [f"  contradiction: {sentence}" for sentence in run.contradictions]
    return terminal.visible("\n".join(lines), keep="\n")
