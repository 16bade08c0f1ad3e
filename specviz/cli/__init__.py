"""The command line: one file for each command, nothing heavy imported before it is needed."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from specviz.cli import (
    advise,
    bench,
    calibrate,
    compare,
    conformance,
    doctor,
    export,
    gpu_check,
    measure,
    run,
    sweep,
    terminal,
    trace,
    train,
)
from specviz.errors import SpecvizError
from specviz.words import set_language

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

REFUSED = 2  # as argparse: the request could not be carried out as given
PIPE_CLOSED = 141


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="specviz",
        description="Real speculative decoding, one round at a time.",
        epilog="Progress goes to standard error; results, text or JSON, to standard output.",
    )
    commands = top.add_subparsers(required=True, metavar="command")
    for module in (
        run,
        trace,
        doctor,
        bench,
        conformance,
        compare,
        sweep,
        train,
        measure,
        calibrate,
        advise,
        export,
        gpu_check,
    ):
        module.add_command(commands)
    return top


def _asked() -> str:
    """Return the language that the system speaks, in the order in which gettext looks."""
    names = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
    return next(filter(None, (os.environ.get(name, "") for name in names)), "").split(":")[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, 2 refused, 130 interrupted."""
    set_language(_asked())
    args = parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = args.command
    terminal.forgive_encoding()
    try:
        status = command(args)
        sys.stdout.flush()
        return status
    except SpecvizError as error:
        terminal.complain(str(error))
        return REFUSED
    except KeyboardInterrupt:
        terminal.complain("interrupted")
        return run.INTERRUPTED
    except BrokenPipeError:
        # The reader went away. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
