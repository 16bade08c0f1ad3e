"""`conformance`: the same drafters in our decoder and in vLLM, acceptance side by side."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.bench import prompts
from specviz.cli import terminal
from specviz.config import require
from specviz.drafters import check_scheme, describe
from specviz.errors import ConfigError, SpecvizError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.conformance.job import Job
    from specviz.bench.conformance.table import Row
    from specviz.cli import Commands
    from specviz.models.load import Loaded

SCHEMES = "none,ngram,draft_model,eagle3,dflash,dspark,mtp"
# Beside the 20 built-in prompts, so that the classes are 24 prompts in all.
MORE = (
    "Explain how rainbows form to a curious child.",
    "Why does memory bandwidth matter?",
    "Give me five interesting facts about bees.",
    "What are the pros and cons of solar panels?",
)
WORK = Path("build/conformance")


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("conformance", help="E[L] of our decoder and of vLLM's")
    parser.add_argument(
        "--python",
        type=Path,
        default=Path("build/conformance-venv/bin/python"),
        metavar="P",
        help="interpreter that has vLLM (made by: make conformance)",
    )
    parser.add_argument("--model", metavar="M", help="target (default: the embedded model)")
    parser.add_argument("--schemes", default=SCHEMES, metavar="A,B")
    parser.add_argument(
        "--drafter",
        action="append",
        default=[],
        metavar="S=DIR",
        help="folder of the head or draft model of a scheme (default: the shipped one)",
    )
    parser.add_argument(
        "-D", "--draft-length", type=int, default=4, metavar="D", help="blocks draft whole ones"
    )
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument("--prompts", type=int, default=24, metavar="N")
    parser.add_argument("--prompt-file", type=Path, metavar="F", help="one prompt a line instead")
    parser.add_argument("--out", type=Path, default=WORK, metavar="DIR", help="where files go")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Run every scheme in both engines and print a table."""
    schemes = tuple(check_scheme(name.strip()) for name in args.schemes.split(",") if name.strip())
    for name, most in (("draft_length", 64), ("max_tokens", 2048), ("prompts", 1000)):
        given: int = getattr(args, name)
        require(1 <= given <= most, name, given, _("1 to {most}").format(most=most))
    given_folders = folders(args.drafter)
    from specviz.bench.conformance.table import as_text
    from specviz.models.load import load

    loaded = load(args.model, device="cpu", dtype=args.dtype)
    rows: list[Row] = []
    for scheme in schemes:
        try:
            job = make_job(scheme, loaded, args, given_folders)
        except SpecvizError as error:  # the others can still be compared
            terminal.complain(f"{scheme}: {error}")
            continue
        rows.append(compare(job, loaded, args))
    if args.json:
        sys.stdout.write(json.dumps([row.facts() for row in rows]) + "\n")
    else:
        sys.stdout.write(as_text(rows) + "\n")
    return 0


def folders(pairs: list[str]) -> dict[str, Path]:
    """Read `scheme=folder` pairs.

    Raises:
        ConfigError: one is not of that form.
        UnknownScheme: there is no such scheme.
    """
    found = {}
    for pair in pairs:
        scheme, sep, folder = pair.partition("=")
        if not (sep and folder):
            text = _("drafter is {pair!r}; allowed: SCHEME=FOLDER, as eagle3=heads/mine")
            raise ConfigError(text.format(pair=pair))
        found[check_scheme(scheme)] = Path(folder)
    return found


def make_job(
    scheme: str, loaded: "Loaded", args: argparse.Namespace, given: dict[str, Path]
) -> "Job":
    """Export what drafts and return the job of both engines.

    Raises:
        ConfigError: nothing is given or shipped for the scheme.
        ModelError: it cannot be used.
    """
    from specviz.bench.conformance.folders import draft_length, export
    from specviz.bench.conformance.job import Job
    from specviz.bench.drafts import find as find_shipped
    from specviz.models.load import find

    target, drafter, length = find(loaded.spec), None, 0 if scheme == "none" else args.draft_length
    if describe(scheme).needs_head or describe(scheme).needs_model:
        source = given.get(scheme) or find_shipped(loaded.target.config, scheme)
        if source is None:
            raise ConfigError(_("nothing is shipped for this target; give --drafter SCHEME=DIR"))
        drafter = export(source, (args.out / scheme / "drafter").resolve(), loaded.target, target)
        length = draft_length(drafter, loaded.target, args.draft_length)
    return Job(
        scheme=scheme,
        target=target.resolve(),
        drafter=drafter,
        draft_length=length,
        tokens=args.max_tokens,
        dtype=args.dtype,
        prompts=tuple(loaded.tokenizer.chat(text) for text in texts(args)),
    )


def texts(args: argparse.Namespace) -> list[str]:
    """Return the prompts of the flags."""
    if args.prompt_file is not None:
        try:
            lines = args.prompt_file.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(error)) from error
        return [line for line in lines if line.strip()][: args.prompts]
    return [*(prompt.text for prompt in prompts.BUILT_IN), *MORE][: args.prompts]


def compare(job: "Job", loaded: "Loaded", args: argparse.Namespace) -> "Row":
    """Decode in both engines; what vLLM refuses becomes part of the row."""
    from specviz.bench.conformance import theirs
    from specviz.bench.conformance.ours import Ours
    from specviz.bench.conformance.table import Row

    progress = terminal.Progress()
    ours = Ours(loaded, job).decode(progress)
    progress(f"{job.scheme}: vLLM", 0.0)
    row = Row(scheme=job.scheme, draft_length=job.draft_length, ours=ours)
    context = min(2048, loaded.target.config.context)
    try:
        counted = theirs.decode(job, args.python, args.out / job.scheme, context)
    except SpecvizError as error:
        return Row(scheme=row.scheme, draft_length=row.draft_length, ours=ours, refusal=str(error))
    finally:
        progress.clear()
    return Row(scheme=row.scheme, draft_length=row.draft_length, ours=ours, theirs=counted)
