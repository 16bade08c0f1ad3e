"""config.json of the Llama family, read into what our own decoder needs."""

from collections.abc import Mapping
from dataclasses import dataclass

from specviz.errors import ModelCorrupt, UnsupportedModel
from specviz.models.refusals import MOST_LAYERS
from specviz.models.rope import Rope
from specviz.models.target import TargetConfig
from specviz.words import _

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
# what a config.json leaves out where it is the default of its class in transformers
_QWEN = {"num_key_value_heads": 32, "max_position_embeddings": 32_768, "sliding_window": 4096}
_DEFAULTS: dict[str, dict[str, object]] = {
    "llama": {},
    "mistral": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    },
    "qwen2": {**_QWEN},
    "qwen3": {"head_dim": 128, **_QWEN},
}

Settings = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig:
    """Everything the decoder needs beside the tensors."""

    target: TargetConfig
    intermediate: int
    eps: float
    rope: Rope
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    tied: bool = False  # the output head is the embedding table
    windows: tuple[int | None, ...]  # per layer: how many positions back it sees, None for all

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor a checkpoint must have."""
        c = self.target
        width, q, kv = c.hidden, c.heads * c.head_dim, c.kv_heads * c.head_dim
        linears = {
            "self_attn.q_proj": (q, width, self.qkv_bias),
            "self_attn.k_proj": (kv, width, self.qkv_bias),
            "self_attn.v_proj": (kv, width, self.qkv_bias),
            "self_attn.o_proj": (width, q, self.o_bias),
            "mlp.gate_proj": (self.intermediate, width, self.mlp_bias),
            "mlp.up_proj": (self.intermediate, width, self.mlp_bias),
            "mlp.down_proj": (width, self.intermediate, self.mlp_bias),
        }
        norms = {"input_layernorm": width, "post_attention_layernorm": width}
        if self.qk_norm:
            norms |= {"self_attn.q_norm": c.head_dim, "self_attn.k_norm": c.head_dim}
        shapes: dict[str, tuple[int, ...]] = {
            "model.embed_tokens.weight": (c.vocab, width),
            "model.norm.weight": (width,),
        }
        if not self.tied:
            shapes["lm_head.weight"] = (c.vocab, width)
        for layer in range(c.layers):
            at = f"model.layers.{layer}."
            for name, (rows, columns, bias) in linears.items():
                shapes[f"{at}{name}.weight"] = (rows, columns)
                if bias:
                    shapes[f"{at}{name}.bias"] = (rows,)
            for name, size in norms.items():
                shapes[f"{at}{name}.weight"] = (size,)
        return shapes


def is_native(settings: Settings) -> bool:
    """Whether this config.json is one our own decoder runs."""
    try:
        return settings.get("model_type") in FAMILIES and bool(read_llama_config(settings))
    except UnsupportedModel:
        return False


def read_llama_config(settings: Settings, name: str = "", sha: str = "") -> LlamaConfig:
    """Read a parsed config.json; raise UnsupportedModel for what this decoder cannot run."""
    family = settings.get("model_type")
    if family not in FAMILIES:
        raise UnsupportedModel(
            _("model_type is {family!r}; our own decoder runs {families}").format(
                family=family, families=", ".join(FAMILIES)
            )
        )
    settings = _DEFAULTS[str(family)] | dict(settings)
    activation = settings.get("hidden_act", "silu")
    if activation != "silu":
        raise UnsupportedModel(
            _("hidden_act is {activation!r}; our own decoder runs 'silu'").format(
                activation=activation
            )
        )
    heads = whole(settings, "num_attention_heads")
    hidden = whole(settings, "hidden_size")
    layers = whole(settings, "num_hidden_layers")
    kv_heads = whole(settings, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise ModelCorrupt(
            _("{heads} query heads do not divide among {kv_heads} KV heads").format(
                heads=heads, kv_heads=kv_heads
            )
        )
    bias = settings.get("attention_bias") is True
    return LlamaConfig(
        target=TargetConfig(
            name=name,
            layers=layers,
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=whole(settings, "head_dim", hidden // heads),
            vocab=whole(settings, "vocab_size"),
            context=whole(settings, "max_position_embeddings", 2048),
            eos=_token_ids(settings.get("eos_token_id")),
            sha=sha,
        ),
        intermediate=whole(settings, "intermediate_size"),
        eps=number(settings, "rms_norm_eps", 1e-6),
        rope=read_rope(settings),
        qkv_bias=bias or family == "qwen2",
        o_bias=bias and family != "qwen2",
        mlp_bias=settings.get("mlp_bias") is True,
        qk_norm=family == "qwen3",
        tied=settings.get("tie_word_embeddings") is True,
        windows=_windows(settings, layers),
    )


def read_rope(settings: Settings) -> Rope:
    """Read both spellings: `rope_theta` + `rope_scaling`, and `rope_parameters`."""
    scaling: dict[str, object] = {}
    for key in ("rope_scaling", "rope_parameters"):
        value = settings.get(key)
        if isinstance(value, Mapping):
            scaling.update(value)
    theta = number(scaling, "rope_theta", number(settings, "rope_theta", 10_000.0))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    context = whole(settings, "max_position_embeddings", 2048)
    if number(scaling, "partial_rotary_factor", 1.0) != 1.0:
        raise UnsupportedModel(
            _("partial_rotary_factor is not 1: our own decoder turns whole heads")
        )
    if kind == "default":
        return Rope(theta=theta)
    if kind == "linear":
        return Rope(kind="linear", theta=theta, factor=number(scaling, "factor"))
    if kind == "llama3":
        return Rope(
            kind="llama3",
            theta=theta,
            factor=number(scaling, "factor"),
            low_freq_factor=number(scaling, "low_freq_factor"),
            high_freq_factor=number(scaling, "high_freq_factor"),
            original_context=whole(scaling, "original_max_position_embeddings", context),
        )
    raise UnsupportedModel(
        _("rope scaling is {kind!r}; our own decoder runs 'default', 'linear' and 'llama3'").format(
            kind=kind
        )
    )


def _windows(settings: Settings, layers: int) -> tuple[int | None, ...]:
    if settings.get("sliding_window") is None:
        return (None,) * layers
    window = whole(settings, "sliding_window")
    if settings["model_type"] == "mistral":
        return (window,) * layers
    if settings["model_type"] == "llama" or settings.get("use_sliding_window") is not True:
        return (None,) * layers
    kinds = settings.get("layer_types")
    if isinstance(kinds, list) and len(kinds) == layers:
        return tuple(window if kind == "sliding_attention" else None for kind in kinds)
    first = whole(settings, "max_window_layers", 28)  # the layers before see everything
    return tuple(window if layer >= first else None for layer in range(layers))


def _token_ids(value: object) -> tuple[int, ...]:
    ids = value if isinstance(value, list) else [value]
    return tuple(i for i in ids if isinstance(i, int))


def whole(settings: Settings, key: str, default: int | None = None) -> int:
    """Return a whole number of a config, or `default` where it is absent or null."""
    value = settings.get(key)
    if value is None:
        value = default
    most = MOST_LAYERS if key == "num_hidden_layers" else 2**31 - 1
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ModelCorrupt(
            _("config.json says {key} = {value!r}; allowed: whole, 1 to {most}").format(
                key=key, value=value, most=most
            )
        )
    return value


def number(settings: Settings, key: str, default: float | None = None) -> float:
    """Return a positive number of a config, or `default` where it is absent or null."""
    value = settings.get(key)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e300:
        raise ModelCorrupt(
            _("config.json says {key} = {value!r}; a number above 0 is needed").format(
                key=key, value=value
            )
        )
    return float(value)
