"""Keys that head configs share: the shape of the layers, read and written."""

from collections.abc import Mapping

from specviz.errors import ConfigError, ModelCorrupt, UnsupportedModel, VocabMismatch
from specviz.heads.layers import LatentShape, LayerShape
from specviz.heads.yarn import Yarn, yarn_amplitude
from specviz.models.llama_config import Settings, number, read_rope, whole
from specviz.models.rope import Rope
from specviz.models.target import TargetConfig
from specviz.words import _

LATENT = "self_attn.kv_a_proj_with_mqa.weight"

# What an absent key means in `transformer_layer_config`: speculators writes the difference to the
# class of its model_type.
_CLASS_DEFAULTS: dict[str, dict[str, object]] = {
    "llama": {
        "vocab_size": 32_000,
        "hidden_size": 4096,
        "intermediate_size": 11_008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 2048,
    },
    "qwen3": {
        "vocab_size": 151_936,
        "hidden_size": 4096,
        "intermediate_size": 22_016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "rms_norm_eps": 1e-6,
        "max_position_embeddings": 32_768,
    },
    # MTP modules of these: nothing is filled in, what is absent is named
    "qwen3_next": {},
    "qwen3_5": {},
    "qwen3_5_text": {},
    "qwen3_5_moe": {},
    "qwen3_5_moe_text": {},
}


def speculators_layers(config: Settings) -> Settings:
    """Return `transformer_layer_config` with the class defaults filled in."""
    given = config.get("transformer_layer_config")
    if not isinstance(given, Mapping):
        raise ModelCorrupt(
            _(
                "config.json says transformer_layer_config = {given!r}; an object with the shape "
                "of the layers is needed"
            ).format(given=given)
        )
    family = given.get("model_type", "llama")
    if family not in _CLASS_DEFAULTS:
        raise UnsupportedModel(
            _(
                "transformer_layer_config has model_type {family!r}; layers of {class_defaults} "
                "are run here"
            ).format(family=family, class_defaults=", ".join(_CLASS_DEFAULTS))
        )
    return {"model_type": family} | _CLASS_DEFAULTS[str(family)] | dict(given)


def read_layer(settings: Settings, names: frozenset[str], *, latent: bool = False) -> LayerShape:
    """Read the shape of a head's layers; biases and q/k norms are told by the tensor `names`.

    `latent` says whether the head at hand can have latent attention.
    """
    activation = settings.get("hidden_act", "silu")
    if activation != "silu":
        raise UnsupportedModel(
            _("hidden_act is {activation!r}; heads are run with 'silu'").format(
                activation=activation
            )
        )
    heads, hidden = whole(settings, "num_attention_heads"), whole(settings, "hidden_size")
    kv_heads = whole(settings, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise ModelCorrupt(
            _(
                "config.json says num_attention_heads = {heads}, which num_key_value_heads = "
                "{kv_heads} does not divide"
            ).format(heads=heads, kv_heads=kv_heads)
        )
    qwen3 = settings.get("model_type") == "qwen3"

    def has(ending: str) -> bool:
        return any(name.endswith(ending) for name in names)

    if has(LATENT):
        if not latent:
            raise UnsupportedModel(
                _(
                    "a tensor {latent} is of latent attention (DeepSeek, Kimi), which is not run "
                    "in heads of this scheme"
                ).format(latent=LATENT)
            )
        return _read_latent(settings, has("self_attn.kv_a_proj_with_mqa.bias"))
    return LayerShape(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=whole(settings, "head_dim", 128 if qwen3 else hidden // heads),
        intermediate=whole(settings, "intermediate_size"),
        eps=number(settings, "rms_norm_eps", 1e-6),
        rope=read_head_rope(settings),
        qkv_bias=has("self_attn.q_proj.bias"),
        o_bias=has("self_attn.o_proj.bias"),
        mlp_bias=has("mlp.gate_proj.bias"),
        qk_norm=has("self_attn.q_norm.weight"),
    )


def read_head_rope(settings: Settings) -> Rope:
    """Read how heads turn: what targets have, and YaRN, which ModelOpt adds when it exports."""
    scaling: dict[str, object] = {}
    for key in ("rope_scaling", "rope_parameters"):
        value = settings.get(key)
        if isinstance(value, Mapping):
            scaling |= value
    if scaling.get("rope_type", scaling.get("type")) != "yarn":
        return read_rope(settings)
    factor = number(scaling, "factor")
    return Yarn(
        theta=number(scaling, "rope_theta", number(settings, "rope_theta", 10_000.0)),
        factor=factor,
        original_context=whole(
            scaling,
            "original_max_position_embeddings",
            whole(settings, "max_position_embeddings", 2048),
        ),
        beta_fast=number(scaling, "beta_fast", 32.0),
        beta_slow=number(scaling, "beta_slow", 1.0),
        truncate=scaling.get("truncate", True) is True,
        amplitude=number(scaling, "attention_factor", _amplitude(scaling, factor)),
    )


def _amplitude(scaling: Settings, factor: float) -> float:
    """Two strengths, as DeepSeek writes them, divide each other."""
    if scaling.get("mscale") and scaling.get("mscale_all_dim"):
        strength, everywhere = number(scaling, "mscale"), number(scaling, "mscale_all_dim")
        return yarn_amplitude(factor, strength) / yarn_amplitude(factor, everywhere)
    return yarn_amplitude(factor)


def _read_latent(settings: Settings, bias: bool) -> LayerShape:
    heads, rope = whole(settings, "num_attention_heads"), read_head_rope(settings)
    interleaved = settings.get("rope_interleave", True) is True
    shape = LatentShape(
        kv_rank=whole(settings, "kv_lora_rank"),
        turning=whole(settings, "qk_rope_head_dim"),
        still=whole(settings, "qk_nope_head_dim"),
        value=whole(settings, "v_head_dim"),
        q_rank=None if settings.get("q_lora_rank") is None else whole(settings, "q_lora_rank"),
        interleaved=interleaved,
        sharpness=_sharpness(settings, rope),
    )
    return LayerShape(
        hidden=whole(settings, "hidden_size"),
        heads=heads,
        kv_heads=heads,
        head_dim=shape.turning + shape.still,
        rotary=shape.turning,
        intermediate=whole(settings, "intermediate_size"),
        eps=number(settings, "rms_norm_eps", 1e-6),
        rope=rope,
        qkv_bias=bias,
        o_bias=bias,
        latent=shape,
    )


def _sharpness(settings: Settings, rope: Rope) -> float:
    """DeepSeek multiplies scores by the square of YaRN's factor where `mscale_all_dim` says so."""
    for key in ("rope_scaling", "rope_parameters"):
        scaling = settings.get(key)
        if isinstance(scaling, Mapping) and scaling.get("mscale_all_dim"):
            return yarn_amplitude(rope.factor, number(scaling, "mscale_all_dim")) ** 2
    return 1.0


def write_layer(shape: LayerShape) -> dict[str, object]:
    """Return the keys of config.json that `read_layer` reads, by their usual names.

    Raises:
        ConfigError: the layer has latent attention, which is read and not written.
    """
    if shape.latent is not None:
        raise ConfigError(_("heads with latent attention (DeepSeek, Kimi) are read, not written"))
    scaling = _rope_scaling(shape.rope)
    return {
        "model_type": "qwen3" if shape.qk_norm else "llama",
        "hidden_size": shape.hidden,
        "intermediate_size": shape.intermediate,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": shape.eps,
        "rope_theta": shape.rope.theta,
        "rope_scaling": scaling,
        "rope_parameters": {"rope_type": "default"}
        | (scaling or {})
        | {"rope_theta": shape.rope.theta},
        "attention_bias": shape.qkv_bias,
        "mlp_bias": shape.mlp_bias,
    }


def check_vocab(settings: Settings, target: TargetConfig) -> None:
    """Raise VocabMismatch unless the head was made for as many tokens as the target has."""
    vocab = whole(settings, "vocab_size", target.vocab)
    if vocab != target.vocab:
        raise VocabMismatch(
            _(
                "the head's config.json says vocab_size = {vocab}; {name} has {tokens}. A head "
                "drafts only for the model it was trained on."
            ).format(vocab=vocab, name=target.name, tokens=target.vocab)
        )


def _rope_scaling(rope: Rope) -> dict[str, object] | None:
    if isinstance(rope, Yarn):
        return {
            "rope_type": "yarn",
            "factor": rope.factor,
            "original_max_position_embeddings": rope.original_context,
            "beta_fast": rope.beta_fast,
            "beta_slow": rope.beta_slow,
            "truncate": rope.truncate,
            "attention_factor": rope.amplitude,
        }
    if rope.kind == "default":
        return None
    scaling: dict[str, object] = {"rope_type": rope.kind, "factor": rope.factor}
    if rope.kind == "llama3":
        scaling |= {
            "low_freq_factor": rope.low_freq_factor,
            "high_freq_factor": rope.high_freq_factor,
            "original_max_position_embeddings": rope.original_context,
        }
    return scaling


def speculators_proposal(algorithm: str, tokens: int) -> dict[str, object]:
    """Return the keys that say how a head is to be used; the verifier is whom it is served with."""
    proposal = {
        "proposal_type": "greedy",
        "speculative_tokens": tokens,
        "verifier_accept_k": 1,
        "accept_tolerance": 0.0,
    }
    return {
        "speculators_config": {
            "algorithm": algorithm,
            "proposal_methods": [proposal],
            "default_proposal_method": "greedy",
            "verifier": {"name_or_path": None, "architectures": []},
        },
        "speculators_version": "0.5.0",
    }
