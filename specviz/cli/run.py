"""`run`: decode one prompt and show every round."""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import options, terminal
from specviz.config import require
from specviz.errors import ConfigError, SpecvizError
from specviz.events import Finish, LosslessReport, Round
from specviz.traces.store import check_place
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.runner import Request
    from specviz.cli import Commands
    from specviz.heads.base import Head
    from specviz.models.load import Loaded
    from specviz.session import DecodeSession
    from specviz.traces.schema import Trace

INTERRUPTED = 130


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("run", help="decode one prompt and show every round")
    options.add_prompt(parser)
    options.add_model(parser)
    options.add_scheme(parser)
    options.add_sampling(parser)
    group = parser.add_argument_group("results")
    group.add_argument("--json", action="store_true", help="one JSON object on standard output")
    group.add_argument("--trace", metavar="OUT", help="save the trace, gzip if it ends in .gz")
    group.add_argument("--no-lossless", action="store_true", help="no replay by plain decoding")
    group.add_argument(
        "--lossless-limit", type=int, metavar="N", help="longest output replayed, in tokens"
    )
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Decode, print, save; an interrupted run prints and saves what was done."""
    check_destination(args.trace)
    if args.trace:
        check_place(Path(args.trace))
    limit: int | None = args.lossless_limit
    require(limit is None or limit >= 0, "lossless_limit", limit, _("0 or more"))
    request = options.request(args)
    loaded, draft = load_models(args, request)
    run = Decoding(args, request, loaded, draft)
    status = run.decode()
    run.show()
    if run.failure is not None:
        raise run.failure
    return status


def load_models(
    args: argparse.Namespace, request: "Request"
) -> "tuple[Loaded, Loaded | Head | None]":
    """Load the target and its draft model or head, with progress on standard error."""
    from specviz.bench.drafts import load_draft
    from specviz.models.load import load

    progress = terminal.Progress()
    try:
        loaded = load(args.model, device=args.device, dtype=args.dtype, progress=progress)
        return loaded, load_draft(loaded, request.config, progress)
    finally:
        progress.clear()


class Decoding:
    """One run of the command: its session and what became of it."""

    def __init__(
        self,
        args: argparse.Namespace,
        request: "Request",
        loaded: "Loaded",
        draft: "Loaded | Head | None",
    ) -> None:
        from specviz.bench.runner import open_session

        self.args, self.request, self.loaded, self.draft = args, request, loaded, draft
        self.session: DecodeSession = open_session(loaded, request, draft)
        self.lossless = LosslessReport("not-run")
        self.end: Finish | None = None  # why it ended, if the session itself does not know
        self.failure: SpecvizError | None = None

    def decode(self) -> int:
        """Decode and check; return the exit status."""
        from specviz.bench.runner import LOSSLESS_LIMIT, check_lossless, decode

        limit = self.args.lossless_limit
        progress = terminal.Progress()
        if not self.args.json:
            self._head()
        try:
            decode(self.session, lambda event: self._see(event, progress))
            if not self.args.no_lossless:
                progress("Replaying through plain decoding", 0.0)
                self.lossless = check_lossless(
                    self.session, LOSSLESS_LIMIT if limit is None else limit
                )
        except KeyboardInterrupt:
            self.end = Finish("cancelled")
            return INTERRUPTED
        except SpecvizError as error:
            self.failure, self.end = error, Finish("error", str(error))
        finally:
            progress.clear()
        return 0

    def show(self) -> None:
        """Print the result and save the trace."""
        from specviz.cli import summary

        trace = self.trace()
        if self.args.json:
            sys.stdout.write(json.dumps(summary.as_json(trace), allow_nan=False) + "\n")
        else:
            text = terminal.visible(trace.text, keep="\n\t")
            sys.stdout.write(f"\n{text}\n\n{summary.paragraph(trace)}\n")
        if self.args.trace:
            from specviz.traces.store import save

            save(trace, Path(self.args.trace))

    def trace(self) -> "Trace":
        """Return the trace as far as it goes."""
        from specviz.bench.runner import to_trace

        trace = to_trace(
            self.session, self.loaded, self.request, draft=self.draft, lossless=self.lossless
        )
        return trace if trace.finish else replace(trace, finish=self.end)

    def _head(self) -> None:
        from specviz.cli.rounds import LEGEND

        sys.stdout.write(f"{LEGEND}\n\n")

    def _see(self, event: Round, progress: terminal.Progress) -> bool:
        if self.args.json:
            done = len(self.session.output) / self.request.params.max_tokens
            progress("Decoding", done)
        else:
            from specviz.cli.rounds import line

            sys.stdout.write(line(event, self.loaded.tokenizer.piece) + "\n")
        return True


def check_destination(name: str | None) -> None:
    """Refuse, before any work, to save where nothing can be saved.

    Raises:
        ConfigError: The folder does not exist, or the name is one of a folder.
    """
    if name is None:
        return
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(
            _(
                "the trace cannot be saved as {name!r}; give a file name in a folder that exists"
            ).format(name=name)
        )
