"""`bench`: how fast plain decoding is, what drafters gain, what recording costs."""

import argparse
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from specviz.bench import prompts
from specviz.cli import bench_schemes, options, terminal
from specviz.config import MAX_DRAFT_LENGTH, MAX_TOKENS, DrafterOptions, require
from specviz.drafters import check_scheme
from specviz.errors import ConfigError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.peers import Peer
    from specviz.bench.report import Report
    from specviz.bench.speed import Plan
    from specviz.cli import Commands
    from specviz.models.load import Loaded


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("bench", help="measure speed, one process, alternating runs")
    options.add_model(parser)
    group = parser.add_argument_group("what to measure")
    group.add_argument("--against", default="", metavar="PEER", help="transformers")
    group.add_argument("--schemes", default="ngram,suffix", metavar="A,B")
    group.add_argument(
        "--draft-model", metavar="M", help="of the scheme draft_model: folder, GGUF file or hub id"
    )
    group.add_argument("-D", "--draft-length", type=int, default=8, metavar="D")
    group.add_argument("--classes", default=",".join(prompts.CLASSES), metavar="A,B")
    group.add_argument("--per-class", type=int, default=1, metavar="N", help="prompts per class")
    group.add_argument("--max-tokens", type=int, default=128, metavar="N")
    group.add_argument("--repeats", type=int, default=5, metavar="N")
    group.add_argument("--no-overhead", action="store_true", help="skip the cost of recording")
    bench_schemes.add_flags(parser)
    shape = parser.add_argument_group("results").add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="one JSON object on standard output")
    shape.add_argument("--markdown", action="store_true", help="tables to paste")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Measure and print."""
    if bench_schemes.wanted(args):
        return bench_schemes.command(args)
    from specviz.bench import report as reports

    result = measure(args)
    text = reports.as_json(result) if args.json else reports.as_text(result, markdown=args.markdown)
    sys.stdout.write(text + "\n")
    return 0


def measure(args: argparse.Namespace) -> "Report":
    """Run everything the flags ask for."""
    plan, names = plan_of(args), _names(args.against)
    from specviz.bench.overhead import overhead
    from specviz.bench.peers import check_peers
    from specviz.bench.report import Report, load_average
    from specviz.bench.runner import environment
    from specviz.bench.speed import against_peer, against_plain
    from specviz.models.load import load

    check_peers(names)
    progress = terminal.Progress()
    load_before = load_average()
    loaded = load(args.model, device=args.device, dtype=args.dtype, progress=progress)

    def say(what: str) -> None:
        progress(what, 0.0)

    report = Report(
        date=datetime.now(UTC).date().isoformat(),
        environment=environment(loaded),
        model=loaded.target.config.name,
        repeats=plan.repeats,
        draft_length=plan.draft_length,
        load=load_before,
        # First, because a draft model that cannot be used should not be found out at the end.
        schemes=against_plain(loaded, plan, say) if plan.schemes else (),
        peers=tuple(
            row for peer in peers(names, loaded) for row in against_peer(loaded, peer, plan, say)
        ),
        overheads=() if args.no_overhead else overhead(loaded, recorded(plan), "ngram", say),
    )
    progress.clear()
    return report


def peers(names: tuple[str, ...], loaded: "Loaded") -> "list[Peer]":
    """Load the peers on the same weights, device and dtype."""
    from specviz.bench.peers import TransformersPeer
    from specviz.models.load import find

    target = loaded.target
    return [TransformersPeer.load(find(loaded.spec), target.device, target.dtype) for _ in names]


def recorded(plan: "Plan") -> "Plan":
    """Return the plan for the cost of recording: a class with few drafts and one with many."""
    few = tuple(prompt for prompt in plan.prompts if prompt.prompt_class in ("chat", "copy"))
    return replace(plan, prompts=few or plan.prompts)


def plan_of(args: argparse.Namespace) -> "Plan":
    """Return the plan of the flags.

    Raises:
        ConfigError: A number is out of range, a class unknown, or a draft model missing.
    """
    for name, most in (
        ("per_class", 100),
        ("max_tokens", MAX_TOKENS),
        ("repeats", 1000),
        ("draft_length", MAX_DRAFT_LENGTH),
    ):
        given: int = getattr(args, name)
        require(1 <= given <= most, name, given, _("1 to {most}").format(most=most))
    schemes = tuple(check_scheme(name) for name in _names(args.schemes))
    if "draft_model" in schemes and args.draft_model is None:
        raise ConfigError(
            _(
                "the scheme draft_model needs a draft model and none is given; name a folder, a "
                "GGUF file or a hub id with --draft-model, or leave the scheme out"
            )
        )
    chosen = prompts.of_class(_names(args.classes))
    by_class = {name: [p for p in chosen if p.prompt_class == name] for name in prompts.CLASSES}

    from specviz.bench.speed import Plan

    return Plan(
        prompts=tuple(p for found in by_class.values() for p in found[: args.per_class]),
        schemes=schemes,
        draft_length=args.draft_length,
        tokens=args.max_tokens,
        repeats=args.repeats,
        options=DrafterOptions(draft_model=args.draft_model),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
