"""Models read from the real values of their config.json."""

import json

import pytest

from specviz.cost.model_card import built_in, facts, from_text, names, notes
from specviz.cost.tiles import free_length
from specviz.errors import ConfigError

# name, billions of parameters as its makers say, G, D*, full / window / recurrent layers
REAL = [
    ("Llama-3.1-8B", 8.03, 4, 31, (32, 0, 0)),
    ("Llama-3.1-70B", 70.6, 8, 15, (80, 0, 0)),
    ("Llama-3.1-405B", 405, 16, 7, (126, 0, 0)),
    ("Qwen3-8B", 8.2, 4, 31, (36, 0, 0)),
    ("Qwen3-32B", 32.8, 8, 15, (64, 0, 0)),
    ("Qwen3-30B-A3B", 30.5, 8, 15, (48, 0, 0)),
    ("Qwen3-235B-A22B", 235, 16, 7, (94, 0, 0)),
    ("Qwen3.5-27B", 27, 6, 20, (16, 0, 48)),
    ("gpt-oss-120b", 117, 8, 15, (18, 18, 0)),
    ("DeepSeek-V3", 671, 128, 0, (61, 0, 0)),
    ("Kimi-K2", 1026, 64, 1, (61, 0, 0)),
    ("Mixtral-8x7B", 46.7, 4, 31, (32, 0, 0)),
    ("Gemma-3-27B", 27, 2, 63, (10, 52, 0)),
    ("Gemma-3-4B", 3.9, 2, 63, (5, 29, 0)),
    ("Mistral-7B-v0.1", 7.24, 4, 31, (0, 32, 0)),
    ("Mistral-7B-v0.3", 7.25, 4, 31, (32, 0, 0)),
    ("Nemotron-3-Nano-30B-A3B", 31.6, 16, 7, (6, 0, 23)),
    ("Nemotron-3-Super-120B-A12B", 120.6, 16, 7, (8, 0, 40)),
    ("Nemotron-3-Ultra-550B-A55B", 550, 32, 3, (12, 0, 48)),
    ("SmolLM2-135M", 0.1345, 3, 41, (30, 0, 0)),
]


@pytest.mark.parametrize(("name", "billions", "group", "free", "layers"), REAL)
def test_real_configs_give_the_published_sizes_and_groups(name, billions, group, free, layers):
    shape = built_in(name)
    assert shape.params / 1e9 == pytest.approx(billions, rel=0.02)
    assert shape.group_size() == group
    assert free_length(group) == free
    spans = {part.span: part.count for part in shape.attention}
    assert (spans.get("full", 0), spans.get("window", 0), shape.recurrent_layers) == layers
    assert shape.active_params <= shape.params
    assert facts(shape)


@pytest.mark.parametrize(
    ("name", "active"),
    [
        *(("DeepSeek-V3", 37), ("gpt-oss-120b", 5.1), ("Kimi-K2", 32)),
        *(("Qwen3-235B-A22B", 22), ("Nemotron-3-Ultra-550B-A55B", 55)),
    ],
)
def test_a_token_uses_the_parameters_the_name_says(name, active):
    assert built_in(name).active_params / 1e9 == pytest.approx(active, rel=0.03)


def test_every_built_in_model_has_a_card():
    for name in names():
        assert len(facts(built_in(name))) >= 6
    with pytest.raises(ConfigError, match="'nobody'; there are Llama"):
        built_in("nobody")


def test_hub_ids_of_built_in_models_are_known():
    for name in ("Qwen/Qwen3-8B", "meta-llama/Meta-Llama-3.1-8B-Instruct"):
        assert built_in(name).group_size() == 4


def test_llama_8b_caches_128_kib_per_token():
    assert built_in("llama-3.1-8b").kv_bytes_per_token(2) == 131072


def test_windows_cap_the_cache_of_their_layers():
    shape = built_in("gpt-oss-120b")
    assert shape.kv_bytes_per_token(2, 128) == shape.kv_bytes_per_token(2)
    assert shape.kv_bytes_per_token(2, 128_000) == pytest.approx(
        shape.kv_bytes_per_token(2) / 2, rel=0.01
    )


def test_mla_counts_one_latent_whatever_the_heads():
    assert built_in("DeepSeek-V3").kv_bytes_per_token(2) == 61 * 576 * 2


@pytest.mark.parametrize(
    ("name", "tp", "group"),
    [
        ("DeepSeek-V3", 8, 16),
        ("DeepSeek-V3", 1, 128),
        ("Kimi-K2", 8, 8),
        ("Llama-3.1-70B", 8, 8),
        ("Llama-3.1-70B", 16, 4),
        ("Qwen3-235B-A22B", 8, 8),
        ("Nemotron-3-Nano-30B-A3B", 8, 4),
    ],
)
def test_tensor_parallelism_keeps_g_up_to_the_kv_heads_and_divides_mla(name, tp, group):
    assert built_in(name).group_size(tp) == group


def test_replicated_kv_heads_keep_their_width():
    part = built_in("Nemotron-3-Nano-30B-A3B").main
    assert part.split(2).kv_width == part.split(8).kv_width == part.kv_width // 2


def test_gpt_oss_stores_only_its_experts_in_four_bits():
    shape = built_in("gpt-oss-120b")
    assert (shape.weight_bytes, shape.expert_bytes) == (2.0, 4.25 / 8)
    assert built_in("DeepSeek-V3").weight_bytes == 1.0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("DeepSeek-V3", ["MLA", "Mixture of experts", "1 MTP layer"]),
        ("Qwen3.5-27B", ["Hybrid: only 16 of 64", "does not divide 128", "Head size 256"]),
        ("gpt-oss-120b", ["Sliding window: 18 layers see only the last 128"]),
        ("Gemma-4-31B", ["sliding-window layers have G = 2"]),
        ("Nemotron-3-Ultra-550B-A55B", ["Hybrid: only 12 of 108"]),
    ],
)
def test_the_card_says_what_is_special(name, words):
    said = " ".join(notes(built_in(name)))
    for word in words:
        assert word in said


def test_a_plain_model_has_nothing_special():
    assert notes(built_in("Llama-3.1-8B")) == ()
    assert "G per GPU falls from 8 to 4" in notes(built_in("Llama-3.1-70B"), 16)[0]


def test_experts_loaded_follow_the_published_evaluation():
    experts = built_in("DeepSeek-V3").experts
    loaded = [experts.active(t) for t in (1, 8, 16, 32, 64, 128)]
    assert loaded == pytest.approx([8, 57, 102, 163, 222, 252], abs=0.7)


BASE = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("hello", "not JSON"),
        ("[1]", "is a list"),
        ("[" * 100_000, "not JSON"),
        ("{}", "no num_hidden_layers or n_layer"),
        (json.dumps(BASE | {"vocab_size": None}), "no vocab_size"),
        (json.dumps(BASE | {"hidden_size": "wide"}), "hidden_size is 'wide'"),
        (json.dumps(BASE | {"num_attention_heads": 0}), "num_attention_heads is 0"),
        (json.dumps(BASE | {"num_hidden_layers": -3}), "num_hidden_layers is -3"),
        (json.dumps(BASE | {"num_hidden_layers": 10**12}), "num_hidden_layers is 10000"),
        (json.dumps(BASE | {"num_key_value_heads": 3}), "do not divide among 3"),
        (json.dumps(BASE | {"num_experts": 4, "num_experts_per_tok": 9,
                            "moe_intermediate_size": 8}), "9 of 4 experts"),
        (json.dumps(BASE | {"block_configs": [1]}), "shape of its own"),
        ('{"hidden_size": Infinity}', "no num_hidden_layers"),
        (" " * 1_000_001, "at most 1000000"),
    ],
    ids=range(15),
)  # fmt: skip
def test_what_cannot_be_read_is_named(text, message):
    with pytest.raises(ConfigError, match=message):
        from_text(text)


def test_a_model_without_attention_has_no_group():
    shape = from_text(json.dumps(BASE | {"layer_types": ["mamba", "mamba"]}), "pure")
    with pytest.raises(ConfigError, match="pure has no attention layer"):
        shape.group_size()
    with pytest.raises(ConfigError, match="tensor parallelism is 0"):
        built_in("Qwen3-8B").group_size(0)
