"""The decoder layer heads share: its trained and its fast form are one function."""

from dataclasses import replace

import pytest
import torch

from specviz.cache.kv import CacheShape, KVCache
from specviz.heads.formats.settings import read_head_rope
from specviz.heads.layers import DecoderLayer, LatentShape, LayerShape, Turns
from specviz.heads.packed import PackedLayer, Pass, Rotation, make_mask
from specviz.heads.yarn import Yarn
from specviz.models.rope import Rope

PLAIN = LayerShape(
    hidden=24, heads=4, kv_heads=2, head_dim=8, intermediate=40, eps=1e-5, rope=Rope()
)
SHAPES = {
    "plain": PLAIN,
    "qwen2": replace(PLAIN, qkv_bias=True),
    "qwen3": replace(PLAIN, qk_norm=True, head_dim=12),
    "biased": replace(PLAIN, qkv_bias=True, o_bias=True, mlp_bias=True),
    "partial": replace(PLAIN, rotary=4, qk_norm=True),
    "yarn": replace(PLAIN, rotary=4, rope=Yarn(factor=4.0, original_context=64, amplitude=1.3)),
    "latent": replace(
        PLAIN,
        kv_heads=4,
        head_dim=10,
        rotary=4,
        qkv_bias=True,
        latent=LatentShape(kv_rank=12, turning=4, still=6, value=8, q_rank=14, sharpness=1.4),
    ),
    "gated": replace(PLAIN, rotary=2, gated=True, qk_norm=True),
}


def random_layer(shape: LayerShape, seed: int = 0) -> DecoderLayer:
    torch.manual_seed(seed)
    layer = DecoderLayer(shape)
    for name, weight in layer.named_parameters():
        if "norm" in name:
            weight.data += 0.2 * torch.randn_like(weight)
    return layer


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@torch.no_grad()
def test_the_fast_form_with_a_cache_equals_the_trained_form(shape: LayerShape) -> None:
    layer, rows = random_layer(shape), 9
    hidden = torch.randn(rows, shape.hidden)
    whole = layer(hidden, Turns.at(shape, torch.arange(rows)))
    packed = PackedLayer(layer, torch.device("cpu"), torch.float32)
    cache = KVCache(
        CacheShape(layers=1, kv_heads=shape.kv_heads, head_dim=shape.head_dim, context=64),
        torch.device("cpu"),
        torch.float32,
    )
    rotation, parts = Rotation(shape, torch.device("cpu"), torch.float32), []
    for start, end in ((0, 5), (5, 6), (6, 9)):
        cache.reserve(end - start)
        seen = torch.ones(end - start, end, dtype=torch.bool).tril(start)
        step = Pass(*rotation.at(range(start, end)), make_mask(seen, shape, torch.float32))
        new = hidden[start:end]
        parts.append(packed.run(packed.input_norm(new), new, step, (cache, 0)))
        cache.append(end - start)
    assert torch.allclose(torch.cat(parts), whole, atol=1e-5)


def test_turning_depends_on_the_distance_alone() -> None:
    shape = SHAPES["partial"]
    x, y = torch.randn(1, 1, shape.head_dim), torch.randn(1, 1, shape.head_dim)

    def product(i: int, j: int) -> torch.Tensor:
        one, other = (Turns.at(shape, torch.tensor([at])) for at in (i, j))
        return (one(x) * other(y)).sum()

    assert torch.allclose(product(7, 3), product(104, 100), atol=1e-4)
    assert not torch.allclose(product(7, 3), product(7, 4), atol=1e-4)
    assert torch.equal(Turns.at(shape, torch.tensor([9]))(x)[..., 4:], x[..., 4:])


@pytest.mark.parametrize(
    "scaling",
    [
        {"factor": 32.0, "original_max_position_embeddings": 2048},
        {
            "factor": 4.0,
            "original_max_position_embeddings": 512,
            "beta_fast": 16.0,
            "truncate": False,
        },
        {
            "factor": 40.0,
            "original_max_position_embeddings": 4096,
            "mscale": 1.0,
            "mscale_all_dim": 0.7,
        },
        {"factor": 40.0, "original_max_position_embeddings": 4096, "attention_factor": 1.5},
    ],
)
def test_yarn_turns_as_in_transformers(scaling: dict[str, object]) -> None:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    parameters = {"rope_type": "yarn", "rope_theta": 20_000.0} | scaling
    context = int(scaling["factor"] * scaling["original_max_position_embeddings"])
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=context,
        rope_parameters=parameters,
    )
    expected, amplitude = ROPE_INIT_FUNCTIONS["yarn"](config, torch.device("cpu"))
    rope = read_head_rope({"rope_parameters": parameters, "max_position_embeddings": context})
    assert isinstance(rope, Yarn)
    assert torch.allclose(rope.frequencies(64), expected, rtol=1e-5)
    assert rope.amplitude == pytest.approx(amplitude)
