"""`bench --draft-lengths` or `--prompts`: every scheme at its best D on many prompts."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.bench import prompts, specbench
from specviz.cli import options, terminal
from specviz.config import MAX_DRAFT_LENGTH, DrafterOptions, SamplingParams, require
from specviz.drafters import check_scheme, describe
from specviz.errors import ConfigError
from specviz.models.store import cache_dir
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.schemes import Entry, Plan

TREE_LENGTHS = (6, 10, 16)  # nodes of a tree, where none are given
FLAGS = ("prompts", "draft_lengths", "tree", "confidence", "results")  # any of them means this


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that measure schemes at several draft lengths."""
    group = parser.add_argument_group("schemes at their best draft length, with any of these")
    group.add_argument("--prompts", metavar="FILE", help="Spec-Bench's jsonl: first turns")
    group.add_argument(
        "--spec-bench", action="store_true", help="of these the 48 that results are given for"
    )
    group.add_argument(
        "--draft-lengths",
        action="append",
        metavar="[SCHEME=]A,B",
        help="for all, or for one scheme or 'tree'; may be repeated",
    )
    group.add_argument("--tree", metavar="K,DEPTH", help="eagle3 drafts trees too")
    group.add_argument("--confidence", type=float, metavar="P", help="dspark cuts drafts, too")
    group.add_argument(
        "--head", action="append", default=[], metavar="SCHEME=DIR", help="instead of the shipped"
    )
    group.add_argument("--probes", type=int, default=8, metavar="N", help="prompts to find D on")
    group.add_argument("--temperature", type=float, default=0.0, metavar="T")
    group.add_argument(
        "--results", metavar="FILE", help="written as it goes; a measurement in it is finished"
    )


def wanted(args: argparse.Namespace) -> bool:
    """Whether the flags ask for this."""
    return any(getattr(args, name) is not None for name in FLAGS)


def command(args: argparse.Namespace) -> int:
    """Measure into a file and print what it holds."""
    plan = plan_of(args)
    from specviz.bench import schemes_report as reports
    from specviz.bench.report import load_average
    from specviz.bench.runner import environment
    from specviz.bench.schemes import Suite
    from specviz.bench.schemes_record import Head, Record
    from specviz.models.load import load

    load_before, progress = load_average(), terminal.Progress()
    loaded = load(args.model, device=args.device, dtype=args.dtype, progress=progress)
    suite, now = Suite(loaded, plan), datetime.now(UTC)
    head = Head(
        plan=plan.as_json(),
        model=loaded.target.config.name,
        sha=loaded.target.config.sha,
        drafts=suite.drafts,
        environment=environment(loaded),
        date=now.date().isoformat(),
        load=load_before,
    )
    record = Record(_file(args.results, now), head)
    sys.stderr.write(f"{record.path}\n")
    suite.run(record, lambda what: progress(what, len(record.visits) / plan.visits))
    progress.clear()
    found = reports.results(plan, record)
    text = reports.as_json(found) if args.json else reports.as_text(found, markdown=args.markdown)
    sys.stdout.write(text + "\n")
    return 0


def _file(given: str | None, now: datetime) -> Path:
    if given is not None:
        return Path(given)
    return cache_dir() / "bench" / f"schemes-{now:%Y%m%d-%H%M%S}.jsonl"


def plan_of(args: argparse.Namespace) -> "Plan":
    """Return the plan of the flags.

    Raises:
        ConfigError: a setting is out of range or a name unknown.
        PromptError: the prompts cannot be read.
    """
    params = SamplingParams(max_tokens=args.max_tokens, temperature=args.temperature)
    require(args.repeats >= 1, "repeats", args.repeats, _("1 or more"))
    require(args.probes >= 1, "probes", args.probes, _("1 or more"))
    chosen, entries = _prompts(args), tuple(_entries(args))
    from specviz.bench.schemes import Plan

    return Plan(
        prompts=chosen, entries=entries, params=params, repeats=args.repeats, probes=args.probes
    )


def _prompts(args: argparse.Namespace) -> tuple[specbench.BenchPrompt, ...]:
    if args.prompts is not None:
        found = specbench.read_prompts(Path(args.prompts))
        return specbench.selection(found) if args.spec_bench else found
    if args.spec_bench:
        raise ConfigError(_("--spec-bench chooses of a file; name it with --prompts"))
    names = tuple(name.strip() for name in args.classes.split(",") if name.strip())
    count: dict[str, int] = {}
    kept = []
    for prompt in prompts.of_class(names):
        count[prompt.prompt_class] = count.get(prompt.prompt_class, 0) + 1
        if count[prompt.prompt_class] <= args.per_class:
            kept.append(specbench.of_built_in(prompt))
    return tuple(kept)


def _entries(args: argparse.Namespace) -> "Iterator[Entry]":
    from specviz.bench.schemes import Entry

    names = [check_scheme(name.strip()) for name in args.schemes.split(",") if name.strip()]
    heads, lengths = _heads(args, names), _lengths(args, names)
    for name in names:
        if name == "none":
            raise ConfigError(_("plain decoding is always measured; leave out 'none'"))
        given = heads.get(name)
        own = DrafterOptions(draft_model=given) if name == "draft_model" else DrafterOptions()
        if describe(name).needs_head:
            own = DrafterOptions(head=given)
        every = lengths.get(name, lengths[""])
        yield Entry(label=name, scheme=name, lengths=every, options=own)
        if name == "eagle3" and args.tree is not None:
            top_k, depth = options.tree(args.tree)
            tree = replace(own, tree_top_k=top_k, tree_depth=depth)
            nodes = lengths.get("tree", TREE_LENGTHS)
            yield Entry(label=f"eagle3 tree {args.tree}", scheme=name, lengths=nodes, options=tree)
        if name == "dspark" and args.confidence is not None:
            cut = replace(own, confidence_threshold=args.confidence)
            label = f"dspark cut {args.confidence:g}"
            yield Entry(label=label, scheme=name, lengths=every, options=cut)


def _heads(args: argparse.Namespace, names: list[str]) -> dict[str, str]:
    found = {} if args.draft_model is None else {"draft_model": args.draft_model}
    for text in args.head:
        name, equals, folder = text.partition("=")
        if not equals or not folder or name not in names:
            said = _("head is {text!r}; allowed: SCHEME=DIR with one of the schemes {names}")
            raise ConfigError(said.format(text=text, names=", ".join(names)))
        found[name] = folder
    return found


def _lengths(args: argparse.Namespace, names: list[str]) -> dict[str, tuple[int, ...]]:
    """Return draft lengths by scheme or "tree"; those for all under ""."""
    found: dict[str, tuple[int, ...]] = {"": (args.draft_length,)}
    for text in args.draft_lengths or ():
        name, equals, numbers = text.rpartition("=")
        known = name in (*names, "tree") if equals else True
        words = [word.strip() for word in numbers.split(",")]
        fit = all(w.isascii() and w.isdecimal() and 1 <= int(w) <= MAX_DRAFT_LENGTH for w in words)
        if not known or not fit:
            said = _(
                "draft_lengths is {text!r}; allowed: numbers from 1 to {most} with commas between, "
                "after SCHEME= where they are for one of {names} only"
            )
            every = ", ".join((*names, "tree"))
            raise ConfigError(said.format(text=text, most=MAX_DRAFT_LENGTH, names=every))
        found[name] = tuple(dict.fromkeys(int(word) for word in words))
    return found
