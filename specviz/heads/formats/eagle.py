"""Flat EAGLE-3 layouts: original EAGLE, SpecForge, ModelOpt, AngelSlim and DeepSpec.

They share the tensors and differ in where layer ids and flags stand and in what those mean.
"""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint, write_folder
from specviz.heads.formats.eagle_tensors import Flags, head_tensors, make_head, require_eagle3
from specviz.heads.formats.settings import check_vocab, read_layer, write_layer
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

IDS = "eagle_aux_hidden_state_layer_ids"
SPECFORGE, DEEPSPEC = "LlamaForCausalLMEagle3", "Qwen3Eagle3Model"
ORIGINAL = "Eagle3LlamaForCausalLM"  # flags of files that say so mean what vLLM means


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether this is a flat EAGLE-3 checkpoint."""
    if "speculators_model_type" in config:
        return False
    if "eagle3" in " ".join(_architectures(config)).lower():
        return True
    if any("midlayer." in name for name in names):
        return True
    single = config.get("num_hidden_layers") == 1 and "draft_vocab_size" in config
    return "fc.weight" in names and single and "hidden_norm.weight" not in names


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read a head; the layer ids are resolved by `default_taps`."""
    config = checkpoint.config
    _refuse_variants(config)
    check_vocab(config, target)
    tensors = head_tensors(checkpoint)
    flags = Flags(
        norm_before_residual=_flag(config, "norm_before_residual"),
        norm_before_fc=_flag(config, "norm_before_fc"),
        fc_norm=_flag(config, "fc_norm") or _flag(config, "use_aux_norm"),
    )
    # one key, two meanings: with SpecForge it is whether the output head reads the normed hidden
    # state, elsewhere whether the next step does
    if SPECFORGE in _architectures(config):
        flags.final_norm = _flag(config, "norm_output", default=True)
    else:
        flags.recycle_normed = _flag(config, "norm_output")
    names = frozenset(tensors)
    return make_head(
        config,
        read_layer(config, names, latent=True),
        flags,
        tensors,
        taps or default_taps(config, target),
    )


def default_taps(config: Settings, target: TargetConfig) -> tuple[int, ...]:
    """Return the hidden states a head reads, as indices of transformers' `hidden_states`.

    A list at the top level counts entries of layers, which is that index; lists of SpecForge,
    ModelOpt and DeepSpec count outputs of layers, one less. Without any list it is EAGLE's own
    choice.
    """
    nested = config.get("eagle_config")
    if IDS in config and config[IDS] is not None:
        return _ids(config, IDS, shift=0)
    if isinstance(nested, Mapping) and nested.get(IDS) is not None:
        return _ids(nested, IDS, shift=1)
    if DEEPSPEC in _architectures(config):
        return _ids(config, "target_layer_ids", shift=1)
    if target.layers < 6:
        raise ModelCorrupt(
            _(
                "config.json has no {ids} and {name} has {layers} layers, too few for EAGLE's "
                "default (2, half, 3 before the end); give layer ids"
            ).format(ids=IDS, name=target.name, layers=target.layers)
        )
    return (2, target.layers // 2, target.layers - 3)


def write(head: Head, folder: Path) -> None:
    """Write the original layout (`midlayer.*`), readable by EAGLE, vLLM and SGLang alike."""
    head = require_eagle3(head)
    c = head.config
    config: dict[str, object] = write_layer(c.layer) | {
        "architectures": [ORIGINAL if c.recycle_normed else SPECFORGE],
        "num_hidden_layers": c.layers,
        "vocab_size": c.vocab,
        "draft_vocab_size": c.draft_vocab,
        "max_position_embeddings": c.context,
        "target_hidden_size": c.target_hidden,
        "tie_word_embeddings": False,
        IDS: list(c.taps),
    }
    config |= {
        name: True
        for name in ("norm_before_residual", "norm_before_fc", "fc_norm")
        if getattr(c, name)
    }
    if c.recycle_normed or not c.final_norm:
        config["norm_output"] = c.recycle_normed
    tensors: dict[str, Tensor] = {
        name.replace("layers.0.", "midlayer."): tensor for name, tensor in head.tensors().items()
    }
    write_folder(folder, config, tensors)


def _flag(config: Settings, name: str, default: bool = False) -> bool:
    nested = config.get("eagle_config")
    for settings in (config, nested):
        if isinstance(settings, Mapping) and settings.get(name) is not None:
            return settings[name] is True
    return default


def _ids(settings: Settings, key: str, shift: int) -> tuple[int, ...]:
    ids = settings.get(key)
    if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
        raise ModelCorrupt(
            _("config.json says {key} = {ids!r}; a list of layer numbers is needed").format(
                key=key, ids=ids
            )
        )
    return tuple(sorted(i + shift for i in ids))  # fc was trained on ascending layers


def _architectures(config: Settings) -> list[str]:
    names = config.get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []


def _refuse_variants(config: Settings) -> None:
    nested = config.get("eagle_config")
    nested = nested if isinstance(nested, Mapping) else {}
    steps = nested.get("parallel_draft_step", 1)
    if steps not in (None, 1) or any(a.startswith("PEagle") for a in _architectures(config)):
        raise UnsupportedModel(
            _("this is a P-EAGLE head (parallel drafting), which is not run here")
        )
    for key in ("use_input_layernorm_in_first_layer", "use_last_layernorm"):
        if nested.get(key) is False:
            raise UnsupportedModel(
                _("eagle_config says {key} = false; heads with that norm are run").format(key=key)
            )
    whole(config, "num_hidden_layers", 1)
