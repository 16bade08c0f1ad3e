"""EAGLE-3 in the speculators layout (RedHatAI/*-speculator.eagle3)."""

from pathlib import Path

from specviz.errors import ConfigError
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.formats.eagle import IDS, default_taps
from specviz.heads.formats.eagle_tensors import Flags, head_tensors, make_head, require_eagle3
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


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether this is an EAGLE-3 head written by speculators."""
    return config.get("speculators_model_type") == "eagle3"


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a head; flags that are absent have the defaults of speculators' class."""
    config, tensors = checkpoint.config, head_tensors(checkpoint)
    layers = speculators_layers(config)
    check_vocab(layers, target)
    flags = Flags(
        norm_before_residual=config.get("norm_before_residual") is True,
        norm_before_fc=config.get("norm_before_fc") is True,
        fc_norm=config.get("fc_norm") is True,
        recycle_normed=config.get("norm_output") is True,
    )
    settings = dict(layers) | {
        "draft_vocab_size": whole(config, "draft_vocab_size", 32_000),
        "target_hidden_size": whole(config, "target_hidden_size", target.hidden),
    }
    shape = read_layer(layers, frozenset(tensors))
    return make_head(settings, shape, flags, tensors, taps or default_taps(config, target))


def write(head: Head, folder: Path) -> None:
    """Write the layout of speculators.

    Raises:
        ConfigError: the head leaves the last norm out, which the layout cannot say.
    """
    head = require_eagle3(head)
    c = head.config
    if not c.final_norm:
        raise ConfigError(_("the speculators layout has no key for a head without its last norm"))
    layers = write_layer(c.layer) | {
        "num_hidden_layers": c.layers,
        "vocab_size": c.vocab,
        "max_position_embeddings": c.context,
        "tie_word_embeddings": False,
    }
    config: dict[str, object] = {
        "architectures": ["Eagle3Speculator"],
        "speculators_model_type": "eagle3",
        "transformer_layer_config": layers,
        "draft_vocab_size": c.draft_vocab,
        "target_hidden_size": c.target_hidden,
        "norm_before_residual": c.norm_before_residual,
        "norm_before_fc": c.norm_before_fc,
        "fc_norm": c.fc_norm,
        "norm_output": c.recycle_normed,
        "embed_requires_grad": False,
        IDS: list(c.taps),
        "tie_word_embeddings": False,
    }
    write_folder(folder, config | speculators_proposal("eagle3", 4), head.tensors())
