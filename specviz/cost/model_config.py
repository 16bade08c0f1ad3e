"""A config.json read into the counts of the cost model."""

from collections.abc import Mapping
from dataclasses import dataclass

from specviz.cost.model_shape import AttentionLayers, Experts, ModelShape
from specviz.cost.settings import Settings
from specviz.errors import ConfigError
from specviz.words import _

FULL = frozenset(("full_attention", "attention", "*", "global"))
WINDOW = frozenset(("sliding_attention", "local", "sliding_window"))
RECURRENT = frozenset(("linear_attention", "mamba", "M", "recurrent", "kda"))
EXPERT = frozenset(("moe", "E"))

_BYTES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0}
_FOUR_BIT = 4.25 / 8  # with the scales of every block of 32


@dataclass(frozen=True, slots=True)
class _Kinds:
    """How many layers do what. In Nemotron-H each layer does one thing only."""

    full: int
    window: int
    recurrent: int
    ffn: int  # layers with a feed-forward part
    expert: int


def read_shape(config: Mapping[str, object], name: str = "") -> ModelShape:
    """Read a parsed config.json.

    Raises:
        ConfigError: a count is missing or impossible, named with its key.
    """
    s = Settings.of(config)
    if s.has("block_configs"):
        text = _(
            "this model gives every layer a shape of its own (block_configs), which the cost model "
            "does not read; paste the config.json of a model whose layers are alike"
        )
        raise ConfigError(text)
    kinds = _kinds(s)
    hidden, vocab = s.positive("hidden_size", "n_embd"), s.positive("vocab_size")
    attention = _attention(s, kinds)
    experts = _experts(s, kinds, hidden)
    tied = s.flag("tie_word_embeddings")
    dense = sum(part.count * _attention_params(s, part, hidden) for part in attention)
    dense += kinds.recurrent * _recurrent_params(s, hidden)
    dense += _ffn_params(s, kinds, hidden) + hidden * vocab
    weight, expert = _weight_bytes(s)
    return ModelShape(
        name=name or s.family or _("unnamed model"),
        family=s.family,
        layers=_layers(s),
        hidden=hidden,
        vocab=vocab,
        attention=attention,
        recurrent_layers=kinds.recurrent,
        state=_state(s) if kinds.recurrent else 0,
        dense=dense,
        embedding=0 if tied else hidden * vocab,
        experts=experts,
        own_draft_layers=s.whole(
            "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", default=0
        ),
        weight_bytes=weight,
        expert_bytes=expert,
        tied=tied,
        sparse=s.has("index_topk", "compress_ratios"),
        context=s.whole("max_position_embeddings", default=0) or None,
    )


def _layers(s: Settings) -> int:
    named = s.names("layers_block_type") or tuple(s.text("hybrid_override_pattern"))
    return s.positive("num_hidden_layers", "n_layer", default=len(named) or None)


def _kinds(s: Settings) -> _Kinds:
    """Count layers by what they do, from whichever way the file says it."""
    total = _layers(s)
    single = s.names("layers_block_type") or tuple(s.text("hybrid_override_pattern"))
    if single:
        count = {kind: sum(n in kind for n in single) for kind in (FULL, RECURRENT, EXPERT)}
        dense = len(single) - sum(count.values())
        return _Kinds(count[FULL], 0, count[RECURRENT], dense + count[EXPERT], count[EXPERT])
    moe = _expert_layers(s, total)
    named = s.names("layer_types")
    if named:
        window, recurrent = (sum(n in kind for n in named) for kind in (WINDOW, RECURRENT))
        return _Kinds(len(named) - window - recurrent, window, recurrent, total, moe)
    linear = s.values.get("linear_attn_config")
    if isinstance(linear, Mapping) and isinstance(linear.get("full_attn_layers"), list):
        full = len(linear["full_attn_layers"])
        return _Kinds(full, 0, total - full, total, moe)
    interval = s.whole("full_attention_interval", "sliding_window_pattern", default=0)
    if interval:
        full, rest = total // interval, total - total // interval
        hybrid = s.has("linear_num_value_heads", "mamba_num_heads")
        return _Kinds(full, 0 if hybrid else rest, rest if hybrid else 0, total, moe)
    if s.has("sliding_window") and s.values.get("use_sliding_window") is not False:
        return _Kinds(0, total, 0, total, moe)
    return _Kinds(total, 0, 0, total, moe)


def _expert_layers(s: Settings, total: int) -> int:
    if not s.has("num_experts", "num_local_experts", "n_routed_experts"):
        return 0
    dense = s.whole("first_k_dense_replace", default=0) + len(s.names("mlp_only_layers"))
    every = s.whole("decoder_sparse_step", "interleave_moe_layer_step", default=1) or 1
    return max(0, total - dense) // every


def _attention(s: Settings, kinds: _Kinds) -> tuple[AttentionLayers, ...]:
    heads = s.positive("num_attention_heads", "n_head")
    if s.has("kv_lora_rank"):
        latent, rope = s.positive("kv_lora_rank"), s.whole("qk_rope_head_dim", default=0)
        count = kinds.full + kinds.window
        mla = AttentionLayers(
            kind="mla",
            span="full",
            count=count,
            heads=heads,
            kv_heads=1,
            head_dim=latent + rope,
            value_dim=latent,
            kv_width=latent + rope,
        )
        return (mla,) if count else ()
    kv = s.positive("num_key_value_heads", default=heads)
    head = s.positive("head_dim", default=s.positive("hidden_size", "n_embd") // heads)
    wide_kv = s.positive("num_global_key_value_heads", default=kv)
    wide_head = s.positive("global_head_dim", default=head)
    window = s.whole("sliding_window", default=0) or None
    parts = (
        _gqa("full", kinds.full, (heads, wide_kv, wide_head), None),
        _gqa("window", kinds.window, (heads, kv, head), window),
    )
    return tuple(part for part in parts if part.count)


def _gqa(span: str, count: int, shape: tuple[int, int, int], window: int | None) -> AttentionLayers:
    heads, kv, head = shape
    if heads % kv:
        text = _("{heads} query heads do not divide among {kv} KV heads; check the two numbers")
        raise ConfigError(text.format(heads=heads, kv=kv))
    return AttentionLayers(
        kind="gqa",
        span="window" if span == "window" else "full",
        count=count,
        heads=heads,
        kv_heads=kv,
        head_dim=head,
        value_dim=head,
        kv_width=2 * kv * head,
        window=window,
    )


def _attention_params(s: Settings, part: AttentionLayers, hidden: int) -> int:
    if part.kind == "gqa":
        gate = 2 if s.flag("attn_output_gate") else 1
        return hidden * part.head_dim * (part.heads * (1 + gate) + 2 * part.kv_heads)
    nope, rope = s.whole("qk_nope_head_dim", default=0), s.whole("qk_rope_head_dim", default=0)
    latent, value = s.positive("kv_lora_rank"), s.positive("v_head_dim")
    rank, query = s.whole("q_lora_rank", default=0), part.heads * (nope + rope)
    down = rank * (hidden + query) if rank else hidden * query
    up = hidden * (latent + rope) + latent * part.heads * (nope + value)
    return down + up + part.heads * value * hidden


def _recurrent_params(s: Settings, hidden: int) -> int:
    if s.has("mamba_num_heads"):
        heads = s.positive("mamba_num_heads")
        inner = heads * s.positive("mamba_head_dim")
        groups = 2 * s.positive("n_groups", default=1) * s.positive("ssm_state_size", default=128)
        return hidden * (3 * inner + groups + heads)
    key = s.whole("linear_num_key_heads", default=0) * s.whole("linear_key_head_dim", default=0)
    value = s.whole("linear_num_value_heads", default=0) * s.whole(
        "linear_value_head_dim", default=0
    )
    if not key * value:  # a kind whose sizes this does not know: as wide as attention would be
        return 4 * hidden * hidden
    return hidden * (2 * key + 3 * value)


def _state(s: Settings) -> int:
    if s.has("mamba_num_heads"):
        inner = s.positive("mamba_num_heads") * s.positive("mamba_head_dim")
        return inner * s.positive("ssm_state_size", default=128)
    heads = s.whole("linear_num_value_heads", default=s.whole("num_attention_heads", default=1))
    key, value = (s.whole(f"linear_{side}_head_dim", default=128) for side in ("key", "value"))
    return heads * key * value


def _matrices(s: Settings) -> int:
    """Matrices of a feed-forward part: three with a gate, two without (squared ReLU)."""
    return 2 if s.text("mlp_hidden_act") == "relu2" else 3


def _experts(s: Settings, kinds: _Kinds, hidden: int) -> Experts | None:
    if not kinds.expert:
        return None
    count = s.positive("num_experts", "num_local_experts", "n_routed_experts")
    per_token = s.positive("num_experts_per_tok", "experts_per_token", "num_experts_per_token",
                           "top_k_experts")  # fmt: skip
    if per_token > count:
        text = _("each token uses {k} of {n} experts; check the two numbers")
        raise ConfigError(text.format(k=per_token, n=count))
    width = s.positive("moe_intermediate_size", "expert_intermediate_size", "intermediate_size")
    entry = s.positive("moe_latent_size", "routed_expert_hidden_size", default=hidden)
    return Experts(
        count=count,
        per_token=per_token,
        layers=kinds.expert,
        params=_matrices(s) * entry * width,
    )


def _ffn_params(s: Settings, kinds: _Kinds, hidden: int) -> int:
    """Feed-forward parameters that every token uses: dense layers and shared experts."""
    plain = kinds.ffn - kinds.expert
    total = 0
    if plain:
        total += plain * _matrices(s) * hidden * s.positive("intermediate_size", "n_inner",
                                                            default=4 * hidden)  # fmt: skip
    if kinds.expert:
        shared = s.whole("n_shared_experts", "num_shared_experts", default=0)
        width = s.whole("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size",
                        default=shared * s.whole("moe_intermediate_size", default=0))  # fmt: skip
        router = hidden * s.positive("num_experts", "num_local_experts", "n_routed_experts")
        latent = 2 * hidden * s.whole("moe_latent_size", default=0)
        total += kinds.expert * (_matrices(s) * hidden * width + router + latent)
    return total


def _weight_bytes(s: Settings) -> tuple[float, float]:
    """Bytes per dense and per expert parameter, as the published checkpoint stores them."""
    base = _BYTES.get(s.text("torch_dtype", "dtype"), 2.0)
    quant = s.values.get("quantization_config") or s.outer.get("quantization_config")
    method = ""
    if isinstance(quant, Mapping):
        method = f"{quant.get('quant_method', '')} {quant.get('quant_algo', '')}".lower()
    if "fp4" in method:
        return (base, _FOUR_BIT) if "mxfp4" in method else (_FOUR_BIT, _FOUR_BIT)
    if "fp8" in method:
        return 1.0, 1.0
    if any(kind in method for kind in ("awq", "gptq")):
        return _FOUR_BIT, _FOUR_BIT
    return base, base
