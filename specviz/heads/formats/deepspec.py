"""DeepSpec's layout (deepseek-ai/dspark_*_block7): keys at the top, tables in the file."""

from pathlib import Path

from specviz.errors import ConfigError, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash_config import DFlashConfig, View
from specviz.heads.formats.block_settings import (
    TwoPlaces,
    dspark_shape,
    layer_outputs,
    mask_token,
    refuse_variants,
    whole_or_none,
    windows,
    write_dspark,
    write_shape,
)
from specviz.heads.formats.block_tensors import (
    drop_confidence,
    file_tensors,
    head_tensors,
    make_head,
    require_block,
)
from specviz.heads.formats.settings import check_vocab, read_layer
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

_ARCHITECTURE, _GEMMA = "Qwen3DSparkModel", "Gemma4DSparkModel"


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether this is a DSpark head (or one of rank 0) written by DeepSpec."""
    architectures = config.get("architectures")
    return isinstance(architectures, list) and bool({_ARCHITECTURE, _GEMMA} & set(architectures))


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a head whose anchor predicts, with or without a Markov head."""
    config = checkpoint.config
    architectures = config.get("architectures")
    if isinstance(architectures, list) and _GEMMA in architectures:
        raise UnsupportedModel(
            _(
                "architectures names {gemma}, whose layers have four norms and no v_proj; "
                "{architecture} is run here"
            ).format(gemma=_GEMMA, architecture=_ARCHITECTURE)
        )
    keys = TwoPlaces(config)
    refuse_variants(keys)
    check_vocab(config, target)
    tensors, layers = head_tensors(checkpoint), whole(config, "num_hidden_layers")
    shape = DFlashConfig(
        layer=read_layer({"model_type": "qwen3"} | dict(config), frozenset(tensors)),
        layers=layers,
        vocab=target.vocab,
        draft_vocab=target.vocab,
        block=keys.whole("block_size"),
        mask_token=mask_token(keys.get("mask_token_id")),
        taps=taps or layer_outputs(keys.get("target_layer_ids"), target),
        views=whole_or_none(tuple(View(window=size) for size in windows(config, layers))),
        anchor_predicts=True,
        dspark=dspark_shape(keys),
    )
    return make_head(drop_confidence(shape, tensors), tensors, target)


def write(head: Head, folder: Path) -> None:
    """Write DeepSpec's layout.

    Raises:
        ConfigError: the head cannot be said in it, or lacks the tables that it holds.
    """
    head = require_block(head, "DeepSpec")
    c = head.config
    if c.dspark is None:
        raise ConfigError(
            _(
                "DeepSpec files hold heads whose anchor predicts, and this is a DFlash head; write "
                "it in the z-lab or speculators layout"
            )
        )
    if c.draft_vocab != c.vocab or any(view.causal or view.from_anchor for view in c.views):
        raise ConfigError(
            _(
                "DeepSpec files hold the whole vocabulary and blocks whose rows see each other; "
                "write this head in the speculators layout"
            )
        )
    if head.embed_tokens is None or head.lm_head is None:
        raise ConfigError(
            _(
                "DeepSpec files hold the target's embedding and output head; give this head copies "
                "of them first (own_tables)"
            )
        )
    config: dict[str, object] = write_shape(c, _ARCHITECTURE) | {
        "mask_token_id": c.mask_token,
        "target_layer_ids": [tap - 1 for tap in c.taps],
        "tie_word_embeddings": False,
        **write_dspark(c.dspark),
    }
    write_folder(folder, config, file_tensors(head))
