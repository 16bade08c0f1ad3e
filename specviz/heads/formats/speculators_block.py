"""DFlash and DSpark in the speculators layout (RedHatAI/*-speculator.dflash, .dspark)."""

from pathlib import Path

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash_config import DFlashConfig, View
from specviz.heads.formats.block_settings import (
    TwoPlaces,
    dspark_shape,
    hidden_states,
    mask_token,
    refuse_variants,
    whole_or_none,
    windows,
    write_dspark,
    write_windows,
)
from specviz.heads.formats.block_tensors import (
    drop_confidence,
    file_tensors,
    head_tensors,
    make_head,
    require_block,
)
from specviz.heads.formats.settings import (
    check_vocab,
    read_layer,
    speculators_layers,
    speculators_proposal,
    write_layer,
)
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

_IDS = "aux_hidden_state_layer_ids"
_NAMES = {"dflash": "DFlashSpeculator", "dspark": "DSparkSpeculator"}


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether speculators wrote this block head."""
    kind = config.get("speculators_model_type")
    return isinstance(kind, str) and kind.startswith(("dflash", "dspark"))


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a head; flags that are absent have the defaults of speculators' classes."""
    config, kind = checkpoint.config, checkpoint.config.get("speculators_model_type")
    if kind not in _NAMES:
        raise UnsupportedModel(
            _(
                "config.json says speculators_model_type = {kind!r}, a successor of DFlash that is "
                "not run here; dflash and dspark are"
            ).format(kind=kind)
        )
    keys, settings = TwoPlaces(config), speculators_layers(config)
    refuse_variants(keys)
    check_vocab(settings, target)
    tensors, layers = head_tensors(checkpoint), whole(settings, "num_hidden_layers")
    spark = kind == "dspark"
    shape = DFlashConfig(
        layer=read_layer(settings, frozenset(tensors)),
        layers=layers,
        vocab=target.vocab,
        draft_vocab=whole(config, "draft_vocab_size", target.vocab),
        block=whole(config, "block_size", 8),
        mask_token=mask_token(config.get("mask_token_id")),
        taps=taps or hidden_states(config.get(_IDS), _IDS, target),
        views=_views(config, settings, layers),
        anchor_predicts=_anchor_predicts(config, spark=spark),
        dspark=dspark_shape(keys) if spark else None,
    )
    return make_head(drop_confidence(shape, tensors), tensors, target)


def write(head: Head, folder: Path) -> None:
    """Write the layout of speculators, with the tables the head has.

    Engines take a missing embedding or output head from the target. A mask embedding beside the
    target's table is ours alone: `own_tables` makes it a row of a table that all can read.
    """
    head = require_block(head, "speculators")
    c, scheme = head.config, "dflash" if head.config.dspark is None else "dspark"
    layers = write_layer(c.layer) | {
        "num_hidden_layers": c.layers,
        "vocab_size": c.vocab,
        "max_position_embeddings": 32_768,  # what its absence means; vLLM wants it written
        "tie_word_embeddings": False,
        **write_windows(c.views, c.layers),
    }
    config: dict[str, object] = {
        "architectures": [_NAMES[scheme]],
        "speculators_model_type": scheme,
        "transformer_layer_config": layers,
        "draft_vocab_size": c.draft_vocab,
        "block_size": c.block,
        "mask_token_id": c.mask_token,
        _IDS: list(c.taps),
        "sample_from_anchor": c.anchor_predicts,
        "sliding_window_non_causal": not any(view.causal for view in c.views),
        "tie_word_embeddings": False,
    }
    if c.dspark is not None:
        config |= write_dspark(c.dspark)
    if _views(config, layers, c.layers) != c.views:
        raise ConfigError(
            _(
                "speculators files cannot say who sees whom in this head ({views}): windows count "
                "from the anchor there, and only sliding layers are causal"
            ).format(views=c.views)
        )
    write_folder(folder, config | speculators_proposal(scheme, c.most), file_tensors(head))


def _anchor_predicts(config: Settings, *, spark: bool) -> bool:
    """Read `sample_from_anchor`; absent, it is what the class of the scheme says.

    vLLM and llama.cpp take an absent key of a DSpark file as false: write it always.
    """
    value = config.get("sample_from_anchor")
    if value is None:
        return spark
    if not isinstance(value, bool) or (value and not spark):
        raise ModelCorrupt(
            (
                _("config.json says sample_from_anchor = {value!r}; true or false is needed")
                if spark
                else _("config.json says sample_from_anchor = {value!r}; false is needed")
            ).format(value=value)
        )
    return value


def _views(config: Settings, settings: Settings, layers: int) -> tuple[View, ...]:
    """Windows count from the anchor; sliding layers are causal unless the config denies it."""
    causal = config.get("sliding_window_non_causal") is not True
    return whole_or_none(
        tuple(
            View(window=size, from_anchor=True, causal=causal) if size is not None else View()
            for size in windows(settings, layers)
        )
    )
