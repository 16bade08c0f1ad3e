"""The time model: published ridges and shares, and laws no model may break."""

from itertools import pairwise

import pytest

from specviz.cost.hardware import GPUS
from specviz.cost.kernels import KERNELS
from specviz.cost.model_card import built_in, names
from specviz.cost.roofline import MOST_ROWS, PARTS, Deployment
from specviz.errors import ConfigError


def deploy(model="Llama-3.1-8B", gpu="h200", **more):
    return Deployment(shape=built_in(model), gpu=GPUS[gpu], **more)


@pytest.mark.parametrize(
    ("gpu", "rows"), [("a100", 153), ("h100", 295), ("h200", 206), ("b200", 292), ("gb200", 312)]
)
def test_the_matmul_edge_of_bf16_attention_is_the_published_ridge(gpu, rows):
    assert deploy(gpu=gpu).edges().matmul == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize(("gpu", "rows"), [("h100", 295), ("h200", 206), ("b200", 292)])
def test_fp8_cache_with_fp8_math_keeps_the_ridge(gpu, rows):
    assert deploy(gpu=gpu, kv_bytes=1.0).edges().matmul == pytest.approx(rows, rel=0.01)


@pytest.mark.parametrize(
    ("gpu", "kv", "rows"),
    [("b200", 1.0, 141), ("b200", 2.0, 281), ("h100", 1.0, 283), ("b300", 1.0, 281)],
)
def test_the_exp_edge_is_where_softmax_overtakes_the_stream(gpu, kv, rows):
    assert deploy(gpu=gpu, kv_bytes=kv).edges().exp == pytest.approx(rows, rel=0.05)


def test_half_the_head_size_halves_the_exp_edge():
    assert deploy("gpt-oss-120b", "b200", kv_bytes=1.0).edges().exp == pytest.approx(70, rel=0.06)


def test_absorbed_mla_turns_compute_bound_near_128_rows_on_a_throttled_h100():
    edge = deploy("DeepSeek-V3", "h100").edges().matmul
    assert edge * 865 / 989 == pytest.approx(136, rel=0.02)


@pytest.mark.parametrize(
    ("context", "batch", "share"), [(8192, 1, 0.06), (8192, 16, 0.52), (131072, 1, 0.52)]
)
def test_the_attention_share_of_llama_8b_follows_from_bytes(context, batch, share):
    found = deploy(batch=batch, context=context).forward(1).share("attention")
    assert found == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("model", names())
def test_no_part_ever_gets_cheaper_with_more_rows(model):
    place = deploy(model, "b200", batch=4, context=20_000, tp=8)
    passes = [place.forward(q) for q in range(1, 70)]
    for name in PARTS:
        seconds = [one.part(name).seconds for one in passes]
        # a kernel may change to a wider tile, never to less work
        assert all(b >= a * (1 - 1e-9) for a, b in pairwise(seconds)), name
    one = passes[0]
    assert one.seconds == pytest.approx(one.launch + sum(one.part(n).seconds for n in PARTS))
    shares = sum(one.share(name) for name in PARTS)
    assert shares + one.launch / one.seconds == pytest.approx(1)


def test_attention_steps_where_the_second_tile_begins():
    place = deploy("Llama-3.1-70B", batch=64, context=32_768)
    at = [place.forward(q).attention.seconds for q in (1, 16, 17)]
    assert at[1] == at[0]
    assert at[2] > 1.2 * at[1]


def test_free_tokens_of_dense_weights_are_ridge_over_batch():
    place = deploy(gpu="h100", batch=32)
    assert place.free_rows("weights") == int(1.02 * 295.2 / 32)
    assert deploy(gpu="h100", batch=1).free_rows("weights") == int(1.02 * 295.2)


def test_free_rows_of_attention_end_at_the_tile_where_the_ridge_lies_beyond():
    assert deploy("Llama-3.1-70B", batch=64, context=32_768).free_rows("attention") == 16


def test_experts_are_not_free_at_batch_1_and_free_once_all_are_loaded():
    assert deploy("Qwen3-235B-A22B", tp=8).free_rows("experts") == 1
    assert deploy("Qwen3-235B-A22B", "b200", tp=8, batch=128).free_rows("experts") > 2
    assert deploy().free_rows("experts") is None


def test_recurrent_layers_pay_for_every_draft():
    place = deploy("Qwen3.5-27B", batch=64)
    one, four = (place.forward(q).recurrent.seconds for q in (1, 4))
    assert four == pytest.approx(2.5 * one)
    assert place.free_rows("recurrent") == 1


def test_nothing_ends_where_rows_cost_nothing():
    assert deploy(gpu="xeon6980p", batch=1, context=1).free_rows("weights") < MOST_ROWS
    assert deploy("gpt-oss-120b", context=1).free_rows("attention") >= 1


def test_tensor_parallelism_shares_weights_and_cache():
    one, eight = deploy("Llama-3.1-70B"), deploy("Llama-3.1-70B", tp=8)
    assert eight.forward(1).weights.seconds == pytest.approx(one.forward(1).weights.seconds / 8)
    assert eight.cache_per_sequence == pytest.approx(one.cache_per_sequence / 8)
    assert deploy("Llama-3.1-70B", tp=16).cache_per_sequence == eight.cache_per_sequence
    assert one.memory == pytest.approx(141e9 + 4096 * 327_680, rel=0.01)


def test_a_kernel_without_an_edge_says_so():
    assert KERNELS["sdpa"].edge() is None
    assert KERNELS["flex-decoding"].edge() == 16
    assert KERNELS["fa3"].edge(64) == 192
    assert KERNELS["trtllm-gen"].edge() == KERNELS["fa4"].edge() == 128
    assert KERNELS["flashmla"].edge() == 64


@pytest.mark.parametrize("bad", [{"batch": 0}, {"context": 0}, {"tp": -1}, {"batch": 10**9}])
def test_impossible_loads_are_refused(bad):
    with pytest.raises(ConfigError, match="1 or more"):
        deploy(**bad)
