"""Cost of a pass by rows, v(1 + D) = T(1 + D) / T(1): packed rows against repeated keys and values.

`python -m specviz.bench.rows` measures the embedded model; both ways in one process, in turn.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from time import perf_counter

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.bench.spread import Spread
from specviz.config import require
from specviz.events import Draft
from specviz.models.attention import Attention, attend
from specviz.models.llama import LlamaTarget
from specviz.words import _

COUNTS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32)
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RowTime:
    """Seconds of one pass over `rows` rows, both ways, of the repeats."""

    rows: int
    packed: Spread
    repeated: Spread


def repeat_kv(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Attend with keys and values repeated for each query head: what packing saves.

    Shapes as in `attend`; of the packed mask the first head's rows.
    """
    rows, heads, _ = q.shape
    group = heads // k.shape[0]
    keys, values = (t.repeat_interleave(group, dim=0)[None] for t in (k, v))
    out = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None], keys, values, attn_mask=mask[:rows], scale=1.0
    )
    return out[0].transpose(0, 1).reshape(rows, -1)


def measure_rows(
    target: LlamaTarget,
    cached: int,
    counts: Sequence[int],
    repeats: int,
    report: Report = lambda what: None,
) -> tuple[RowTime, ...]:
    """Time `score` after `cached` tokens, every count both ways in each repeat; one warms up.

    The cache is left empty.
    """
    ways: tuple[Attention, ...] = (attend, repeat_kv)
    target.truncate(0)
    target.prefill([1 + i % (target.config.vocab - 1) for i in range(cached)])
    seconds: dict[tuple[int, int], list[float]] = {}
    for repeat in range(-1, repeats):
        report(f"repeat {repeat + 1} of {repeats}")
        for rows in counts:
            draft = Draft.chain([1 + i % 7 for i in range(rows - 1)])
            for way in (0, 1) if repeat % 2 else (1, 0):
                spent = _pass(target, draft, ways[way])
                if repeat >= 0:
                    seconds.setdefault((rows, way), []).append(spent)
    target.truncate(0)
    return tuple(
        RowTime(rows, Spread.of(seconds[rows, 0]), Spread.of(seconds[rows, 1])) for rows in counts
    )


def _pass(target: LlamaTarget, draft: Draft, attention: Attention) -> float:
    target.attention = attention
    try:
        began = perf_counter()
        target.score(1, draft)
        if target.device.type == "cuda":
            torch.cuda.synchronize(target.device)
        return perf_counter() - began
    finally:
        del target.attention  # the class has the usual one


def as_text(times: Sequence[RowTime], cached: int) -> str:
    """Return a table: milliseconds and v of both ways, and how much packing saves."""
    one = times[0]
    lines = [
        f"| rows | packed ms | v | repeated ms | v | repeated / packed | ({cached} cached)",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for t in times:
        packed, repeated = t.packed.median, t.repeated.median
        lines.append(
            f"| {t.rows} | {1000 * packed:.2f} | {packed / one.packed.median:.2f} "
            f"| {1000 * repeated:.2f} | {repeated / one.repeated.median:.2f} "
            f"| {repeated / packed:.2f} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m specviz.bench.rows", description=__doc__)
    parser.add_argument("--model", help="folder, GGUF file or hub id; default: the embedded model")
    parser.add_argument("--cached", type=int, default=1024, metavar="S", help="tokens before")
    parser.add_argument("--repeats", type=int, default=20, metavar="N")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    args = parser.parse_args(argv)
    require(args.repeats >= 1, "repeats", args.repeats, _("1 or more"))
    require(args.cached >= 1, "cached", args.cached, _("1 or more"))
    from specviz.models.device import device_name
    from specviz.models.load import load
    from specviz.train.run import own_target

    target = own_target(load(args.model, device=args.device, dtype=args.dtype))

    def say(what: str) -> None:
        sys.stderr.write(f"\r{what}\033[K")

    times = measure_rows(target, args.cached, COUNTS, args.repeats, say)
    say("")
    if not args.json:
        sys.stdout.write(as_text(times, args.cached) + "\n")
        return 0
    found = {
        "date": datetime.now(UTC).date().isoformat(),
        "device": device_name(target.device),
        "threads": torch.get_num_threads(),
        "model": target.config.name,
        "dtype": str(target.dtype).removeprefix("torch."),
        "cached": args.cached,
        "rows": [asdict(t) for t in times],
    }
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
