"""`export`: a serving configuration for an engine, or a head in another published layout."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.engines import ENGINES, export
from specviz.engines.plan import DRAFT, SERVED, TARGET, Plan
from specviz.errors import ConfigError
from specviz.words import _

if TYPE_CHECKING:
    from specviz.cli import Commands
    from specviz.heads.base import Head

PACKED = "packed"  # no layout: int8 weights, for shipping
WHOLE = "huggingface"  # of draft models that share the target's tables
HEADS = ("zlab", "deepspec", "eagle", "speculators")
FORMATS = (*HEADS, PACKED, WHOLE)


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser(
        "export", help="a serving configuration for an engine, or a head in another layout"
    )
    group = parser.add_argument_group("serving configuration")
    group.add_argument("--engine", metavar="E", help=", ".join(ENGINES))
    group.add_argument("--scheme", metavar="S", help=", ".join(SERVED))
    group.add_argument("-D", "--draft-length", type=int, default=5, metavar="D")
    group.add_argument("--target", default=TARGET, metavar="M", help="hub id or path")
    group.add_argument("--draft", default=DRAFT, metavar="M", help="draft model or head")
    group.add_argument("--ngram-min", type=int, default=2, metavar="N")
    group.add_argument("--ngram-max", type=int, default=4, metavar="N")
    group.add_argument("--tree", metavar="K,NODES", help="a tree: K children, NODES drafted tokens")
    group = parser.add_argument_group("head or draft model")
    group.add_argument("--head", metavar="DIR", help="folder to write anew")
    group.add_argument("--model", metavar="M", help="its target (default: the embedded model)")
    group.add_argument("--format", choices=FORMATS, help="layout; huggingface: of a draft model")
    group.add_argument("--out", metavar="DIR", help="folder to write to")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Write a configuration to standard output, or a head to a folder."""
    if (args.engine is None) == (args.head is None):
        raise ConfigError(_("give either --engine and --scheme, or --head, --format and --out"))
    return _write_head(args) if args.head is not None else _write_config(args)


def _write_config(args: argparse.Namespace) -> int:
    if args.scheme is None:
        text = _("no scheme was given; add --scheme with one of {names}")
        raise ConfigError(text.format(names=", ".join(SERVED)))
    top_k, nodes = _tree(args.tree)
    plan = Plan(
        scheme=args.scheme,
        draft_length=0 if args.scheme == "none" else args.draft_length,
        target=args.target,
        draft=args.draft,
        ngram_min=args.ngram_min,
        ngram_max=args.ngram_max,
        tree_top_k=top_k,
        tree_nodes=nodes,
    )
    snippet = export(args.engine, plan)
    if args.json:
        sys.stdout.write(json.dumps(asdict(snippet) | {"draft_length": plan.draft_length}) + "\n")
    else:
        sys.stdout.write(snippet.text + "\n")
        for note in snippet.notes:
            sys.stderr.write(f"{note}\n")
    return 0


def _tree(text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 0
    top_k, _comma, nodes = text.partition(",")
    if not (top_k.isdecimal() and nodes.isdecimal() and int(top_k) and int(nodes)):
        said = _("tree is {text!r}; allowed: K,NODES, as 4,16")
        raise ConfigError(said.format(text=text[:80]))
    return int(top_k), int(nodes)


def _write_head(args: argparse.Namespace) -> int:
    """Read a head, write it in bf16 in another layout, and read that back."""
    if args.format is None or args.out is None:
        raise ConfigError(_("a head needs both --format and --out"))
    if args.format == PACKED:
        return _pack(args)
    from specviz.heads.small_llama import is_small_llama
    from specviz.models.load import DEFAULT

    folder, spec = Path(args.head), args.model or DEFAULT
    if is_small_llama(folder) != (args.format == WHOLE):
        raise ConfigError(
            _(
                "{head} cannot be written as {format}: heads are written as {formats}, draft "
                "models that share the target's tables as huggingface"
            ).format(head=folder, format=args.format, formats=", ".join(HEADS))
        )
    write = _whole if args.format == WHOLE else _anew
    facts = {"head": args.head, "out": args.out, "dtype": "bfloat16"}
    facts |= write(folder, Path(args.out), args.format, spec)
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        text = _("{head}: read as {read_as}, written as {format} in bfloat16 to {out}")
        sys.stdout.write(text.format(**facts) + "\n")
    return 0


def _pack(args: argparse.Namespace) -> int:
    """Write a copy of a head or draft model with a byte for each weight."""
    from specviz.heads.packing import pack
    from specviz.models.load import load

    out = Path(args.out)
    pack(Path(args.head), out, load(args.model, device="cpu", dtype="bfloat16").target)
    size = sum(file.stat().st_size for file in out.iterdir())
    facts = {"head": args.head, "out": args.out, "format": PACKED, "dtype": "int8", "bytes": size}
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        text = _("{head}: written in int8 to {out}, {megabytes:.2f} MB")
        sys.stdout.write(text.format(head=args.head, out=out, megabytes=size / 1e6) + "\n")
    return 0


def _whole(folder: Path, out: Path, _format: str, spec: str) -> dict[str, str]:
    """Write a draft model with the target's tables and tokenizer."""
    from specviz.heads.small_llama import write_whole
    from specviz.models.checkpoint import Checkpoint
    from specviz.models.load import find, load

    write_whole(folder, out, load(spec, device="cpu", dtype="bfloat16").target, find(spec))
    return {"read_as": "specviz", "format": WHOLE, "sha": Checkpoint(out).sha()}


def _anew(folder: Path, out: Path, format: str, spec: str) -> dict[str, str]:
    """Write a head in another layout; a packed one takes its rows from the target itself."""
    import torch

    from specviz.heads import load as heads
    from specviz.heads.packing import is_packed
    from specviz.models.checkpoint import Checkpoint
    from specviz.models.llama_config import read_llama_config
    from specviz.models.load import find, load

    shape = read_llama_config(Checkpoint(find(spec)).settings(), name=find(spec).name).target
    packed = is_packed(Checkpoint(folder).settings())
    lender = load(spec, device="cpu", dtype="bfloat16").target if packed else shape
    head = heads.load(folder, lender)
    name = layout(format, head)
    read_as = head.layout
    heads.save(_with_tables(head, name, spec).to(torch.bfloat16), out, name)
    written = heads.load(out, shape)
    return {"read_as": read_as, "format": written.layout, "sha": written.sha}


def _with_tables(head: "Head", name: str, spec: str) -> "Head":
    """Give a block head copies of the target's tables where other readers want them."""
    from specviz.heads.dflash import DFlashHead
    from specviz.heads.dflash_tables import own_tables
    from specviz.models.load import load

    if not isinstance(head, DFlashHead):
        return head
    if name != "deepspec" and not (name == "speculators-block" and head.owned.mask):
        return head
    return own_tables(head, load(spec, device="cpu", dtype="bfloat16").target)


def layout(name: str, head: "Head") -> str:
    """Return the layout that `heads.load.save` knows for a name of the command line."""
    from specviz.heads.dflash import DFlashHead
    from specviz.heads.eagle3 import Eagle3Head

    if name == "speculators":
        if isinstance(head, Eagle3Head):
            return "speculators-eagle3"
        return "speculators-block" if isinstance(head, DFlashHead) else "speculators-mtp"
    return {"zlab": "z-lab"}.get(name, name)
