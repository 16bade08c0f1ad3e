"""Why a model is not run: seen in its config.json, before any weight is read."""

from collections.abc import Iterator, Mapping

from specviz.errors import ModelCorrupt
from specviz.words import _

Settings = Mapping[str, object]

ATTENTION = {"full_attention", "sliding_attention", "chunked_attention", "attention"}
RECURRENT_TYPES = {
    "bamba",
    "falcon_h1",
    "falcon_mamba",
    "granitemoehybrid",
    "jamba",
    "kimi_linear",
    "lfm2",
    "lfm2_moe",
    "mamba",
    "mamba2",
    "minimax",
    "nemotron_h",
    "olmo_hybrid",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_next",
    "recurrent_gemma",
    "rwkv",
    "xlstm",
    "zamba",
    "zamba2",
}
# the size of a state, a convolution or a linear attention: no plain attention model has these
RECURRENT_KEYS = (
    "conv_L_cache",
    "hybrid_override_pattern",
    "linear_conv_kernel_dim",
    "linear_num_key_heads",
    "lru_width",
    "mamba_d_state",
    "mamba_expand",
    "ssm_cfg",
    "ssm_state_size",
    "state_size",
)
MOST_LAYERS = 10_000
LAYER_KEYS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")
LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope", "su")


def check_sense(settings: Settings) -> None:
    """Raise ModelCorrupt for a config.json that would confuse or stall whoever builds the model."""
    for part in _parts(settings):
        kind = part.get("model_type")
        if not isinstance(kind, str | None):
            raise ModelCorrupt(
                _(
                    "config.json says model_type = {kind!r}; a name is needed: fetch the model "
                    "again"
                ).format(kind=kind)
            )
        for key in LAYER_KEYS:
            layers = part.get(key)
            if isinstance(layers, int | float) and not layers <= MOST_LAYERS:
                raise ModelCorrupt(
                    _(
                        "config.json says {key} = {layers!r}; at most {most_layers} layers are "
                        "run: fetch the model again"
                    ).format(key=key, layers=layers, most_layers=MOST_LAYERS)
                )


def refusal(settings: Settings) -> str | None:
    """Say why a model with this config.json cannot be run; None if nothing speaks against it."""
    if settings.get("is_encoder_decoder") is True:
        return _(
            "it is an encoder-decoder model, and only decoder-only language models are run; "
            "choose one of those"
        )
    for part in _parts(settings):
        if sign := _recurrence(part):
            return recurrent(sign)
        if kind := _changing_rope(part):
            return _(
                "its rope scaling {kind!r} changes with the length of the text, so a dropped "
                "draft would leave a trace in the cache; choose a model with another rope scaling"
            ).format(kind=kind)
    return None


def recurrent(sign: str) -> str:
    """Return the reason why a model with recurrent state is refused."""
    return _(
        "it has recurrent state ({sign}): unlike a KV cache that cannot be rolled back to the "
        "last accepted token, and drafting would change its output silently; choose a model with "
        "attention layers only"
    ).format(sign=sign)


def _parts(settings: Settings) -> Iterator[Settings]:
    yield settings
    for key in ("text_config", "llm_config", "language_config"):
        if isinstance(part := settings.get(key), Mapping):
            yield part


def _recurrence(settings: Settings) -> str | None:
    kind = settings.get("model_type")
    if isinstance(kind, str) and kind in RECURRENT_TYPES:
        return f"model_type {kind}"
    for key in ("layer_types", "layers_block_type", "block_types"):
        kinds = settings.get(key)
        for kind in kinds if isinstance(kinds, list) else ():
            if not isinstance(kind, str) or kind not in ATTENTION:
                return _("{key} names {kind}").format(key=key, kind=kind)
    return next((key for key in RECURRENT_KEYS if settings.get(key) is not None), None)


def _changing_rope(settings: Settings) -> str | None:
    for key in ("rope_scaling", "rope_parameters"):
        value = settings.get(key)
        if not isinstance(value, Mapping):
            continue
        for rope in (value, *(part for part in value.values() if isinstance(part, Mapping))):
            kind = rope.get("rope_type", rope.get("type"))
            if isinstance(kind, str) and kind in LENGTH_DEPENDENT_ROPE:
                return kind
    return None
