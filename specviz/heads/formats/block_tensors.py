"""Tensors of block heads (DFlash, DSpark), whichever layout they come from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, build
from specviz.heads.dflash import DFlashHead, Owned
from specviz.heads.dflash_config import DFlashConfig
from specviz.heads.dflash_vocab import kept_mask, offsets, read_draft_ids
from specviz.heads.dspark import DSparkHead
from specviz.heads.layers import LayerShape
from specviz.models.target import TargetConfig

MASK = "mask_embedding"
# What training code leaves in a file and drafting does not read.
_SPARE = re.compile(r"rotary_emb\.inv_freq$|^verifier_(norm|lm_head)\.weight$")
# Flat names (ModelOpt) and older ones, by DeepSpec's.
_RENAMED = (
    (re.compile(r"^(model|logit_head)\."), ""),
    (re.compile(r"^(markov_w1|markov_w2|gate_proj|joint_proj)\."), r"markov_head.\1."),
    (re.compile(r"^confidence_proj\."), "confidence_head.proj."),
)


@dataclass(frozen=True, slots=True)
class Slots:
    """What a config says of the block, before the tensors have been looked at."""

    block: int
    mask_token: int
    taps: tuple[int, ...]


def head_tensors(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read all tensors under DeepSpec's names."""
    if (checkpoint.folder / f"{MASK}.pt").exists() and MASK not in checkpoint.names:
        raise UnsupportedModel(
            f"{checkpoint.folder} has a pickled {MASK}.pt, which can run code when it is read; "
            f"store its embedding as tensor {MASK} [hidden] in {MASK}.safetensors instead"
        )
    tensors = {}
    for name in sorted(checkpoint.names):
        if _SPARE.search(name):
            continue
        ours = name
        for pattern, by in _RENAMED:
            ours = pattern.sub(by, ours)
        tensors[ours] = checkpoint.get(name)
    return tensors


def make_head(
    config: DFlashConfig, tensors: Mapping[str, Tensor], target: TargetConfig
) -> DFlashHead:
    """Check `tensors` against the config and put them into a head; their own tables come along."""
    _check_widths(config.layer, config, tensors, target)
    ids = read_draft_ids(tensors, config.vocab, config.draft_vocab)
    embed, head = tensors.get("embed_tokens.weight"), "lm_head.weight" in tensors
    rows = target.vocab if embed is None else len(embed)
    if not 0 <= config.mask_token < rows:
        raise ModelCorrupt(
            f"config.json says mask_token_id = {config.mask_token}; the embedding table has rows 0 "
            f"to {rows - 1}. The mask must be a row that exists."
        )
    if config.draft_vocab != config.vocab and not head:
        raise ModelCorrupt(
            f"the weights have no tensor lm_head.weight [{config.draft_vocab}, "
            f"{config.layer.hidden}], which draft_vocab_size asks for; only a head with the whole "
            "vocabulary can use the target's"
        )
    owned = Owned(0 if embed is None else rows, head, MASK in tensors)
    weights = {name: t for name, t in tensors.items() if name not in ("d2t", "t2d")}
    kind = DFlashHead if config.dspark is None else DSparkHead
    return build(lambda: kind(config, owned, ids), weights, f"{kind.scheme} head")


def file_tensors(head: DFlashHead) -> dict[str, Tensor]:
    """Return what a checkpoint holds, under DeepSpec's names, d2t and t2d included."""
    tensors = dict(head.state_dict())
    if head.draft_ids is not None:
        tensors["d2t"] = offsets(head.draft_ids)
        tensors["t2d"] = kept_mask(head.draft_ids, head.config.vocab)
    return tensors


def require_block(head: Head, layout: str) -> DFlashHead:
    """Return `head` if it is one that block layouts hold."""
    if not isinstance(head, DFlashHead):
        raise ConfigError(f"this is a {head.scheme} head; {layout} files hold dflash and dspark")
    return head


def drop_confidence(config: DFlashConfig, tensors: Mapping[str, Tensor]) -> DFlashConfig:
    """Go without a confidence head that a config promises and no tensor holds, as engines do."""
    if config.dspark is None or "confidence_head.proj.weight" in tensors:
        return config
    return replace(config, dspark=replace(config.dspark, confidence=False))


def _check_widths(
    layer: LayerShape, config: DFlashConfig, tensors: Mapping[str, Tensor], target: TargetConfig
) -> None:
    if layer.hidden != target.hidden:
        raise ModelCorrupt(
            f"config.json says hidden_size = {layer.hidden}; {target.name} has {target.hidden}. A "
            "block head reads the target's embeddings, so both must agree."
        )
    if "fc.weight" not in tensors:
        raise ModelCorrupt("the weights have no tensor fc.weight; is this a DFlash or DSpark head?")
    columns, taps = tensors["fc.weight"].shape[-1], config.taps
    if columns != len(taps) * target.hidden:
        raise ModelCorrupt(
            f"tensor fc.weight has {columns} columns; {len(taps)} hidden states {taps} of width "
            f"{target.hidden} make {len(taps) * target.hidden}. Give the layer ids it was trained "
            "on."
        )
