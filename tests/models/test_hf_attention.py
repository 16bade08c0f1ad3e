"""A model of transformers under our packed attention: the logits it has under its own."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from specviz.events import Draft
from specviz.models.hf import HFTarget
from specviz.models.hf_attention import NAME, adopt, register
from specviz.models.hf_load import pack_attention
from specviz.models.target import TargetConfig


def target(implementation: str) -> HFTarget:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )
    model = LlamaForCausalLM(config).eval()
    model.set_attn_implementation(implementation)
    shape = TargetConfig(
        name="tiny",
        layers=2,
        hidden=48,
        heads=6,
        kv_heads=2,
        head_dim=8,
        vocab=64,
        context=256,
    )
    return HFTarget(model, shape, supports_trees=True)


def test_a_model_takes_our_attention_only_where_it_says_the_same() -> None:
    one = target("eager")
    model = one._model
    assert pack_attention(one, model)
    assert model.config._attn_implementation == NAME
    model.set_attn_implementation("eager")
    wrong = iter((torch.zeros(2), torch.ones(2)))  # logits before and after
    assert not adopt(model, lambda: next(wrong), torch.equal)
    assert model.config._attn_implementation == "eager"


@pytest.mark.parametrize("prompt", [3, 100], ids=["short", "longer than a tile"])
def test_chains_and_trees_score_alike(prompt: int) -> None:
    register()
    register()
    usual, ours = target("eager"), target(NAME)
    for one in (usual, ours):
        one.prefill([1 + i % 60 for i in range(prompt)])
    for draft in (Draft.chain([]), Draft.chain([5, 6, 7]), Draft((5, 6, 7, 8), (-1, -1, 0, 1))):
        torch.testing.assert_close(ours.score(9, draft), usual.score(9, draft))
        for one in (usual, ours):
            one.commit(())
