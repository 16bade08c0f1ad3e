"""MTP in the speculators layout (FastMTP): one module, recycled for a few depths in training."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from specviz.errors import ConfigError, ModelCorrupt
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.dflash_vocab import kept_mask, offsets
from specviz.heads.formats.mtp_tensors import make_mtp, require_mtp
from specviz.heads.formats.settings import speculators_layers, speculators_proposal, write_layer
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

PREFIX = "mtp_layers.0."
OWN = ("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether this is an MTP module written by speculators."""
    return config.get("speculators_model_type") == "mtp"


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a module; the depth it was trained for is what it proposes by itself."""
    config = checkpoint.config
    count = whole(config, "num_nextn_predict_layers", 1)
    if count != 1:
        raise ModelCorrupt(
            _(
                "config.json says num_nextn_predict_layers = {count}; speculators has one module"
            ).format(count=count)
        )
    if taps not in (None, (target.layers,)):
        raise ConfigError(
            _("layer ids are {taps}; an MTP module reads the last hidden state, {layers}").format(
                taps=taps, layers=target.layers
            )
        )
    tensors: dict[str, Tensor] = {}
    for name in checkpoint.names:
        own = name.removeprefix(PREFIX)
        inner = own != name and not own.startswith(OWN)
        tensors[f"layers.0.{own}" if inner else own] = checkpoint.get(name)
    settings = dict(speculators_layers(config))
    if "draft_vocab_size" in config:
        settings["draft_vocab_size"] = config["draft_vocab_size"]
    return make_mtp(settings, tensors, target, _trained(config))


def write(head: Head, folder: Path) -> None:
    """Write the layout of speculators.

    Raises:
        ConfigError: the module is of a family whose config this layout takes from the target.
    """
    head = require_mtp(head)
    c = head.config
    if (
        c.experts
        or c.hidden_first
        or c.layer.gated
        or c.layer.rotary not in (None, c.layer.head_dim)
    ):
        raise ConfigError(
            _(
                "only MTP modules with a plain Llama or Qwen3 layer are written; this one was read "
                "from the layout {layout!r} and stays in its target's checkpoint"
            ).format(layout=head.layout)
        )
    layers = write_layer(c.layer) | {
        "num_hidden_layers": c.layers,
        "vocab_size": c.vocab,
        "max_position_embeddings": c.context,
        "tie_word_embeddings": False,
    }
    config: dict[str, object] = {
        "architectures": ["MTPDraftModel"],
        "speculators_model_type": "mtp",
        "transformer_layer_config": layers,
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": False,
    }
    tensors: dict[str, Tensor] = {}
    if head.draft_ids is not None:
        config["draft_vocab_size"] = len(head.draft_ids)
        tensors |= {"d2t": offsets(head.draft_ids), "t2d": kept_mask(head.draft_ids, c.vocab)}
    for name, tensor in head.state_dict().items():
        tables = name.startswith(("embed_tokens", "lm_head"))
        tensors[name if tables else PREFIX + name.removeprefix("layers.0.")] = tensor
    write_folder(folder, config | speculators_proposal("mtp", c.trained), tensors)


def _trained(config: Settings) -> int:
    """Read `speculative_tokens` of the default proposal, 1 where there is none."""
    outer = config.get("speculators_config")
    methods = outer.get("proposal_methods") if isinstance(outer, Mapping) else None
    first = methods[0] if isinstance(methods, list) and methods else {}
    return whole(first if isinstance(first, Mapping) else {}, "speculative_tokens", 1)
