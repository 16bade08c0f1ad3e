"""`calibrate`: make the confidence of a DSpark head come true on held-out texts."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from specviz.cli import terminal
from specviz.config import MAX_TOKENS, DrafterOptions, SessionConfig, require
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.confidence import Calibration
    from specviz.cli import Commands


def add_command(commands: "Commands") -> None:
    """Register the command and its flags."""
    parser = commands.add_parser("calibrate", help="fit the confidence of a DSpark head")
    parser.add_argument("--head", required=True, metavar="DIR", help="calibration.json goes there")
    parser.add_argument("--data", nargs="+", required=True, metavar="F", help=".parquet, .jsonl")
    parser.add_argument("--rows", type=int, metavar="N", help="of each file at most")
    parser.add_argument("--texts", type=int, default=48, metavar="N", help="held-out prompts")
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N", help="of an answer")
    parser.add_argument("--target", metavar="M", help="folder, GGUF file or hub id")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, ...")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.set_defaults(command=command)


def command(args: argparse.Namespace) -> int:
    """Decode held-out prompts, fit, write the temperatures beside the head and print them."""
    require(args.texts >= 1, "texts", args.texts, _("1 or more"))
    most = MAX_TOKENS
    fits = 1 <= args.max_tokens <= most
    require(fits, "max_tokens", args.max_tokens, _("1 to {most}").format(most=most))
    from specviz.bench.confidence import check_confident, fit, observe
    from specviz.bench.drafts import load_head
    from specviz.models.load import load
    from specviz.train.corpus import read_corpora
    from specviz.train.evaluate import held_out

    examples = read_corpora([Path(name) for name in args.data], args.rows)
    chosen = [examples[i] for i in held_out(examples, args.texts)]
    progress = terminal.Progress()
    loaded = load(args.target, device=args.device, dtype=args.dtype, progress=progress)
    wanted = SessionConfig(scheme="dspark", options=DrafterOptions(head=args.head))
    head = check_confident(load_head(loaded, wanted))
    prompts = [example.tokens[: example.prompt_length] for example in chosen]
    found = fit(*observe(loaded, head, prompts, args.max_tokens, progress))
    file = found.write(Path(args.head).expanduser())
    progress.clear()
    known = json.dumps(asdict(found) | {"file": str(file)})
    sys.stdout.write((known if args.json else _as_text(found, file)) + "\n")
    return 0


def _as_text(found: "Calibration", file: Path) -> str:
    lines = [_("{file}: fitted on {n} blocks").format(file=file, n=found.blocks)]
    columns = (found.temperatures, found.survived, found.error_before, found.error_after)
    for slot, (warmth, kept, before, after) in enumerate(zip(*columns, strict=True), 1):
        text = _(
            "slot {slot}: temperature {t:.2f}, {kept:.0%} survive, "
            "error {before:.3f} -> {after:.3f}"
        )
        lines.append(text.format(slot=slot, t=warmth, kept=kept, before=before, after=after))
    return "\n".join(lines)
