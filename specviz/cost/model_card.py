"""What a model's shape means for speculative decoding, in sentences; and the built-in models."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from specviz.cost.hardware import How
from specviz.cost.model_config import read_shape
from specviz.cost.model_shape import ModelShape
from specviz.cost.settings import parse
from specviz.cost.tiles import TILE, free_length
from specviz.errors import ConfigError
from specviz.words import _, ngettext

_FILE = Path(__file__).parent / "models.json"
BILLION = 1e9


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the card: a quantity, its value, and how it is known."""

    name: str
    value: str
    how: How


@cache
def _configs() -> Mapping[str, Mapping[str, object]]:
    known: Mapping[str, Mapping[str, object]] = json.loads(_FILE.read_text("utf-8"))
    return known


def names() -> tuple[str, ...]:
    """Return the names of the built-in models: values of their published config.json."""
    return tuple(_configs())


def built_in(name: str) -> ModelShape:
    """Return the shape of a built-in model.

    Raises:
        ConfigError: there is none of that name; the message lists them.
    """
    # "meta-llama/Meta-Llama-3.1-8B-Instruct" has the shape of "Llama-3.1-8B"
    short = name.lower().rsplit("/", 1)[-1].removeprefix("meta-").removesuffix("-instruct")
    key = next((known for known in _configs() if known.lower() == short), None)
    if key is None:
        text = _("no built-in model is called {name!r}; there are {names}. Or give a config.json.")
        raise ConfigError(text.format(name=name[:80], names=", ".join(_configs())))
    return read_shape(_configs()[key], key)


def from_text(text: str, name: str = "") -> ModelShape:
    """Read a pasted config.json.

    Raises:
        ConfigError: it is no JSON object, or a count is missing or impossible.
    """
    return read_shape(parse(text), name)


def facts(shape: ModelShape, tp: int = 1) -> tuple[Fact, ...]:
    """Return the numbers of the card; all follow from the config by counting."""
    group = shape.group_size(tp)
    lines = [
        (_("Parameters"), _billions(shape.params)),
        (_("Parameters one token uses"), _billions(shape.active_params)),
        (_("Layers"), _layers(shape)),
        (_("G, query heads per KV head"), str(group)),
        (
            _("D* = floor({tile}/G) - 1").format(tile=TILE),
            str(free_length(group)),
        ),
        (
            _("KV cache per token, 2-byte elements"),
            _("{n} kB").format(n=f"{shape.kv_bytes_per_token(2) / 1e3:.1f}"),
        ),
    ]
    if shape.experts:
        text = _("{k} of {n} per token, in {layers} layers")
        e = shape.experts
        lines.append((_("Experts"), text.format(k=e.per_token, n=e.count, layers=e.layers)))
    return tuple(Fact(name, value, "published") for name, value in lines)


def _billions(params: int) -> str:
    if params < BILLION:
        return _("{n} million").format(n=f"{params / 1e6:.0f}")
    return _("{n} billion").format(n=f"{params / BILLION:.1f}")


def _layers(shape: ModelShape) -> str:
    parts = []
    for part in shape.attention:
        name = {"full": _("full attention"), "window": _("sliding window")}[part.span]
        parts.append(f"{part.count} {_('MLA') if part.kind == 'mla' else name}")
    if shape.recurrent_layers:
        parts.append(_("{n} recurrent").format(n=shape.recurrent_layers))
    return _("{n}: {parts}").format(n=shape.layers, parts=", ".join(parts))


def notes(shape: ModelShape, tp: int = 1) -> tuple[str, ...]:
    """Say what is special about the model and what that changes for drafts."""
    return (*_attention_notes(shape, tp), *_layer_notes(shape), *_draft_notes(shape))


def _attention_notes(shape: ModelShape, tp: int) -> Iterator[str]:
    main = shape.main
    if main is None:
        return
    group = shape.group_size(tp)
    if main.kind == "mla":
        yield _(
            "MLA: all heads share one latent, so G is the number of heads on a GPU: {heads} in "
            "all, {g} with tensor parallelism {tp}. With attention data parallelism it stays "
            "{heads}, and the row tile is full or nearly so before anything is drafted."
        ).format(heads=main.heads, g=group, tp=tp)
    elif tp > main.kv_heads:
        yield _(
            "Tensor parallelism {tp} exceeds the {kv} KV heads: they are copied, and G per GPU "
            "falls from {whole} to {g}."
        ).format(tp=tp, kv=main.kv_heads, whole=main.group_size, g=group)
    if TILE % group and group < TILE:
        yield _(
            "G = {g} does not divide {tile}: D* leaves {rows} rows of the tile idle, and whole "
            "multiples of {tile} need 1 + D to be a multiple of {q}."
        ).format(
            g=group,
            tile=TILE,
            rows=TILE - group * (free_length(group) + 1),
            q=_tokens_for_whole_tiles(group),
        )
    if main.kind == "gqa" and main.head_dim >= 256:
        yield _(
            "Head size {d}: several kernels have a path of their own here that packs rows "
            "differently, so the tile rule is a guess; measure."
        ).format(d=main.head_dim)


def _tokens_for_whole_tiles(group: int) -> int:
    return next(q for q in range(1, TILE + 1) if group * q % TILE == 0)


def _layer_notes(shape: ModelShape) -> Iterator[str]:
    full = sum(part.count for part in shape.attention if part.span == "full")
    windows = [part for part in shape.attention if part.span == "window"]
    if shape.recurrent_layers:
        yield _(
            "Hybrid: only {full} of {all} layers see the whole context. The {n} recurrent layers "
            "pay for every drafted token with a state of their own, whatever the tile says."
        ).format(full=full, all=shape.layers, n=shape.recurrent_layers)
    for part in windows:
        if part.window:
            yield ngettext(
                "Sliding window: {n} layer sees only the last {w} tokens, so attention weighs "
                "less and the tile rule with it.",
                "Sliding window: {n} layers see only the last {w} tokens, so attention weighs "
                "less and the tile rule with it.",
                part.count,
            ).format(n=part.count, w=part.window)
        if shape.main is not part and shape.main and part.group_size != shape.main.group_size:
            text = _("The sliding-window layers have G = {g}; the card is about the others.")
            yield text.format(g=part.group_size)
    if shape.sparse:
        yield _(
            "Sparse attention: each row picks its own cached tokens, so rows of a draft share "
            "less of the KV stream and packing them pays less than the tile rule says."
        )


def _draft_notes(shape: ModelShape) -> Iterator[str]:
    e = shape.experts
    if e:
        yield _(
            "Mixture of experts: {k} of {n} per token. At batch 1, 8 rows load about {active} "
            "experts of each layer instead of {k}, so a draft is not free there; at large batches "
            "all of them are loaded anyway."
        ).format(k=e.per_token, n=e.count, active=f"{e.active(8):.0f}")
    if shape.own_draft_layers:
        yield ngettext(
            "The checkpoint brings {n} MTP layer of its own: a drafter without another download.",
            "The checkpoint brings {n} MTP layers of its own: a drafter without another download.",
            shape.own_draft_layers,
        ).format(n=shape.own_draft_layers)
