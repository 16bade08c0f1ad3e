"""MTP modules inside a target's own checkpoint: DeepSeek and GLM, Qwen3-Next and 3.5, MiMo."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from specviz.errors import ConfigError
from specviz.heads.base import Head
from specviz.heads.checkpoint import Checkpoint
from specviz.heads.formats.mtp_tensors import make_mtp, text_settings
from specviz.models.llama_config import Settings, whole
from specviz.models.target import TargetConfig
from specviz.words import _

COUNTS = (
    "num_nextn_predict_layers",
    "mtp_num_hidden_layers",
    "num_mtp_modules",
    "num_mtp_layers",  # as transformers writes it
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Naming:
    """How a family calls what `MtpHead` has; other names are the layer's own."""

    prefix: str
    renamed: Mapping[str, str]
    shared: tuple[str, ...] = ()  # copies of the target's own tables: not read again
    layer: str = ""  # where the decoder layer stands below the prefix


_DEEPSEEK = {
    "enorm.weight": "token_layernorm.weight",
    "hnorm.weight": "hidden_layernorm.weight",
    "eh_proj.weight": "input_proj.weight",
    "shared_head.norm.weight": "final_layernorm.weight",
}
_QWEN = {
    "pre_fc_norm_embedding.weight": "token_layernorm.weight",
    "pre_fc_norm_hidden.weight": "hidden_layernorm.weight",
    "fc.weight": "input_proj.weight",
    "norm.weight": "final_layernorm.weight",
}
_OWN = ("token_layernorm", "hidden_layernorm", "input_proj", "final_layernorm")
_MIMO = {f"{name}.weight": f"{name}.weight" for name in _OWN}


def matches(config: Settings, names: frozenset[str]) -> bool:
    """Whether a target's checkpoint has an MTP module."""
    settings = text_settings(config)
    return any(settings.get(key) for key in COUNTS) and _naming(settings, names) is not None


def read(checkpoint: Checkpoint, target: TargetConfig, taps: tuple[int, ...] | None) -> Head:
    """Read the first module; with several, it is reused for the depths of the others."""
    settings = text_settings(checkpoint.config)
    naming = _naming(settings, checkpoint.names)
    assert naming is not None  # it matched
    if taps not in (None, (target.layers,)):
        raise ConfigError(
            _("layer ids are {taps}; an MTP module reads the last hidden state, {layers}").format(
                taps=taps, layers=target.layers
            )
        )
    tensors: dict[str, Tensor] = {}
    for name in checkpoint.names:
        own = name.removeprefix(naming.prefix)
        if own == name or own in naming.shared:
            continue
        if own in naming.renamed:
            ours = naming.renamed[own]
        elif naming.layer:
            ours = own
        else:
            ours = f"layers.0.{own}"
        tensors[ours] = checkpoint.get(name)
    return make_mtp(settings, tensors, target)


def _naming(settings: Settings, names: frozenset[str]) -> _Naming | None:
    number = settings.get("num_hidden_layers")
    after = f"model.layers.{whole(settings, 'num_hidden_layers')}." if number else ""
    tables = ("embed_tokens.weight", "shared_head.head.weight")
    known = (
        _Naming(prefix="mtp.", renamed=_QWEN, layer="layers.0."),
        _Naming(prefix="model.mtp_layers.0.", renamed=_MIMO),
        _Naming(prefix=after, renamed=_DEEPSEEK, shared=tables),
    )
    for naming in known:
        if naming.prefix and all(naming.prefix + name in names for name in naming.renamed):
            return naming
    return None
