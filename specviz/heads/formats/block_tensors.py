"""Tensors of block heads (DFlash, DSpark), whichever layout they come from."""

import re
from collections.abc import Mapping
from dataclasses import replace

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
from specviz.words import _

MASK = "mask_embedding"
# What training code leaves in a file and drafting does not read.
_SPARE = re.compile(r"rotary_emb\.inv_freq$|^verifier_(norm|lm_head)\.weight$")
# Flat names (ModelOpt) and older ones, by DeepSpec's.
_RENAMED = (
    (re.compile(r"^(model|logit_head)\."), ""),
    (re.compile(r"^(markov_w1|markov_w2|gate_proj|joint_proj)\."), r"markov_head.\1."),
    (re.compile(r"^confidence_proj\."), "confidence_head.proj."),
)


def head_tensors(checkpoint: Checkpoint) -> dict[str, Tensor]:
    """Read all tensors under DeepSpec's names."""
    if (checkpoint.folder / f"{MASK}.pt").exists() and MASK not in checkpoint.names:
        raise UnsupportedModel(
            _(
                "{folder} has a pickled {mask}.pt, which can run code when it is read; store its "
                "embedding as tensor {mask} [hidden] in {mask}.safetensors instead"
            ).format(folder=checkpoint.folder, mask=MASK)
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
            _(
                "config.json says mask_token_id = {mask_token}; the embedding table has rows 0 to "
                "{rows}. The mask must be a row that exists."
            ).format(mask_token=config.mask_token, rows=rows - 1)
        )
    if config.draft_vocab != config.vocab and not head:
        raise ModelCorrupt(
            _(
                "the weights have no tensor lm_head.weight [{draft_vocab}, {hidden}], which "
                "draft_vocab_size asks for; only a head with the whole vocabulary can use the "
                "target's"
            ).format(draft_vocab=config.draft_vocab, hidden=config.layer.hidden)
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
        raise ConfigError(
            _("this is a {scheme} head; {layout} files hold dflash and dspark").format(
                scheme=head.scheme, layout=layout
            )
        )
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
            _(
                "config.json says hidden_size = {hidden}; {name} has {width}. A block head "
                "reads the target's embeddings, so both must agree."
            ).format(hidden=layer.hidden, name=target.name, width=target.hidden)
        )
    if "fc.weight" not in tensors:
        raise ModelCorrupt(
            _("the weights have no tensor fc.weight; is this a DFlash or DSpark head?")
        )
    columns, taps = tensors["fc.weight"].shape[-1], config.taps
    if columns != len(taps) * target.hidden:
        raise ModelCorrupt(
            _(
                "tensor fc.weight has {columns} columns; {count} hidden states {taps} of width "
                "{hidden} make {needed}. Give the layer ids it was trained on."
            ).format(
                columns=columns,
                count=len(taps),
                taps=taps,
                hidden=target.hidden,
                needed=len(taps) * target.hidden,
            )
        )
