"""Decoding with random targets of real shapes: what a pass costs by rows, KV heads and drafter.

Weights are random, which costs what trained ones cost; only acceptance means nothing.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from time import monotonic

import torch
from torch import Tensor

from specviz.bench.gpu_time import timed
from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.base import Drafter
from specviz.drafters.none import PlainDrafter
from specviz.events import Draft
from specviz.heads.base import Head
from specviz.models.llama import LlamaTarget
from specviz.models.llama_config import LlamaConfig, read_llama_config
from specviz.session import DecodeSession
from specviz.train.eagle3 import Eagle3Shape, default_taps, make_eagle3
from specviz.train.fresh_block import BlockShape, make_block_head
from specviz.train.mtp import make_mtp
from specviz.train.tables import LlamaDonor, Tables

ROUNDS, WARM = 10, 4  # of a drafter; in the first ones kernels are compiled and graphs captured


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One shape of target, its timed twins, and what is measured."""

    name: str
    hidden: int
    layers: int
    heads: int
    intermediate: int
    vocab: int
    kv_heads: tuple[int, ...]  # the twins; drafters are timed on the first
    head_dim: int = 128
    context: int = 4096
    rows: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32)
    draft_vocab: int = 32_000
    seconds: float = 50.0

    def config(self, kv_heads: int) -> LlamaConfig:
        """Return the config of the twin with so many KV heads."""
        settings: dict[str, object] = {
            "model_type": "llama",
            "vocab_size": self.vocab,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.context + 1024,
        }
        return read_llama_config(settings, name=f"{self.name}, {kv_heads} KV heads")


SIZES = (
    Size(
        name="8B shape",
        hidden=4096,
        layers=32,
        heads=32,
        intermediate=14336,
        vocab=128_256,
        kv_heads=(8, 32, 2),
    ),
    Size(
        name="1B shape",
        hidden=2048,
        layers=16,
        heads=32,
        head_dim=64,
        intermediate=8192,
        vocab=128_256,
        kv_heads=(8, 2),
        seconds=25.0,
    ),
)
TINY = (
    Size(
        name="tiny shape",
        hidden=32,
        layers=2,
        heads=4,
        head_dim=8,
        intermediate=64,
        vocab=96,
        kv_heads=(2, 1),
        context=40,
        rows=(1, 2, 4),
        draft_vocab=48,
        seconds=30.0,
    ),
)


def random_target(config: LlamaConfig, device: torch.device) -> LlamaTarget:
    """Make a target with random weights, on the device from the start."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    generator = torch.Generator(device).manual_seed(0)

    def make(name: str, shape: tuple[int, ...]) -> Tensor:
        noise = torch.empty(shape, device=device, dtype=dtype).normal_(generator=generator)
        return noise.mul_(0.1).add_(1) if "norm" in name else noise.mul_(shape[-1] ** -0.5)

    tensors = {name: make(name, shape) for name, shape in config.shapes().items()}
    return LlamaTarget.from_tensors(config, tensors, device=device, dtype=dtype)


def bytes_read(target: LlamaTarget, cached: int) -> int:
    """Bytes that a pass over one row must read: weights but the embeddings, keys and values."""
    c, tied = target.config, target.llama.tied
    shapes = target.llama.shapes()
    read = sum(
        torch.Size(shape).numel()
        for name, shape in shapes.items()
        if tied or "embed_tokens" not in name
    )
    kept = 2 * c.layers * c.kv_heads * c.head_dim * cached
    return int((read + kept) * target.weights.embed.element_size())


def measure_size(device: torch.device, size: Size, bandwidth: float) -> dict[str, object]:
    """Measure the twins by rows, then the drafters; `bandwidth` is what a copy reached."""
    until, twins = monotonic() + size.seconds, list[dict[str, object]]()
    drafters: list[dict[str, object]] = []
    tracing: dict[str, object] = {}
    for kv_heads in size.kv_heads:
        if twins and monotonic() > until:
            break
        target = random_target(size.config(kv_heads), device)
        twins.append(measure_rows(target, size, bandwidth))
        if not drafters:
            drafters = list(measure_drafters(target, size, until))
            tracing = measure_tracing(target, size)
        del target
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return {
        "size": asdict(replace(size)),
        "twins": twins,
        "twins_left_out": len(size.kv_heads) - len(twins),
        "drafters": drafters,
        "tracing": tracing,
    }


def measure_rows(target: LlamaTarget, size: Size, bandwidth: float) -> dict[str, object]:
    """T_target and T_verify after `context` tokens, and the share of the bandwidth floor."""
    target.truncate(0)
    target.prefill([i % size.vocab for i in range(size.context)])
    times = list[dict[str, object]]()
    for rows in size.rows:
        draft = Draft.chain(range(1, rows))
        found = timed(target.device, partial(target.score, 0, draft), capture=False)
        times.append({"rows": rows, "seconds": found.seconds, "how": found.how})
    floor = bytes_read(target, size.context) / bandwidth
    plain = float(str(times[0]["seconds"]))
    on_device = target.on_device
    return {
        "target": target.config.name,
        "group": target.config.group_size,
        "rows": times,
        "floor_seconds": floor,
        "share_of_bandwidth": floor / plain,
        "graphs": on_device.graphs.captured if on_device else 0,
        "eager_because": sorted(set(on_device.graphs.reasons.values()))
        if on_device
        else ["no GPU"],
        "attention": {
            key: choice.backend
            for key, choice in (on_device.choices.made if on_device else {}).items()
        },
    }


def measure_drafters(target: LlamaTarget, size: Size, until: float) -> Iterator[dict[str, object]]:
    """Yield the draft cost of each type of head at this size, random weights, a chain of 4."""
    for scheme in ("eagle3", "mtp", "dflash", "dspark"):
        if monotonic() > until:
            yield {"scheme": scheme, "error": "no time was left"}
            continue
        try:
            yield measure_drafter(scheme, target, size)
        except Exception as error:  # of any library or device: the other heads go on
            yield {"scheme": scheme, "error": f"{type(error).__name__}: {error}"[:500]}


def measure_drafter(scheme: str, target: LlamaTarget, size: Size) -> dict[str, object]:
    """Decode some rounds with a random head; medians of the time split, in seconds."""
    head = random_head(scheme, target, size)
    config = SessionConfig(scheme=scheme, draft_length=4, detail="off")
    drafter = make_drafter(config, target, draft=head)
    session = DecodeSession(
        target.with_taps(head.taps), drafter, _prompt(size), _sampling(), config
    )
    rounds = [session.step() for _ in range(ROUNDS) if session.finish is None][WARM:]
    return {
        "scheme": scheme,
        "draft_length": 4,
        "draft_seconds": median(r.timing.draft for r in rounds),
        "score_seconds": median(r.timing.score for r in rounds),
        "verify_seconds": median(r.timing.verify for r in rounds),
        "round_seconds": median(r.timing.total for r in rounds),
        "eager_because": _eager_because(drafter),
    }


def _eager_because(drafter: Drafter) -> list[str]:
    """Why a drafter ran op by op where it did; its parts are its own affair, so they are asked."""
    holder = getattr(drafter, "_runner", None) or getattr(drafter, "_decoder", None)
    on_device = getattr(holder, "on_device", None)
    return ["no GPU"] if on_device is None else sorted(set(on_device.graphs.reasons.values()))


def measure_tracing(target: LlamaTarget, size: Size) -> dict[str, object]:
    """What recording every detail of a round adds to it: plain decoding, the worst case."""
    config = SessionConfig(scheme="none", draft_length=0, detail="full")
    session = DecodeSession(
        target.with_taps(()), PlainDrafter(), _prompt(size), _sampling(), config
    )
    rounds = [session.step() for _ in range(ROUNDS) if session.finish is None][WARM:]
    record = median(r.timing.record for r in rounds)
    total = median(r.timing.total for r in rounds)
    return {"detail": "full", "record_seconds": record, "share": record / (total - record)}


def _prompt(size: Size) -> list[int]:
    return [1 + i % (size.vocab - 1) for i in range(min(64, size.context // 2))]


def _sampling() -> SamplingParams:
    return SamplingParams(max_tokens=5 * ROUNDS, ignore_eos=True)


def random_head(scheme: str, target: LlamaTarget, size: Size) -> Head:
    """Make a head of `scheme` as training would begin it."""
    donor, tables = LlamaDonor(target), Tables.of(target)
    taps = default_taps(size.layers)
    with target.device:  # a billion random numbers are made in no time there
        ids = torch.arange(min(size.draft_vocab, size.vocab))
        if scheme == "eagle3":
            return make_eagle3(donor, tables, ids, taps, Eagle3Shape())
        if scheme == "mtp":
            return make_mtp(donor, tables, ids, size.layers, trained=4)
        rank = min(64, size.hidden) if scheme == "dspark" else None
        return make_block_head(donor, tables, ids, taps, BlockShape(rank=rank))
