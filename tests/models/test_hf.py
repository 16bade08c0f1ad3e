"""Models of transformers behind our protocol: right whatever was drafted, dropped or forked."""

import json
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specviz.errors import DraftError, ModelCorrupt, PromptError, UnsupportedModel
from specviz.events import EMPTY, ROOT, Draft
from specviz.models.checkpoint import Checkpoint
from specviz.models.hf import HFTarget
from specviz.models.hf_load import load_hf
from specviz.models.refusals import refusal

TEXT = [int(x) for x in torch.randint(0, 64, (30,), generator=torch.Generator().manual_seed(5))]
TREE = Draft((1, 2, 3, 4, 5), (ROOT, ROOT, 0, 1, 1))
CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # sums of other orders; logits here reach 10
SIZE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": 3,
}
WINDOWS = {"sliding_window": 6, "head_dim": 8}
MODELS: dict[str, dict[str, object]] = {
    "gemma": {"head_dim": 8},
    "gemma2": WINDOWS | {"query_pre_attn_scalar": 8},
    "gemma3_text": WINDOWS | {"layer_types": ["sliding_attention", "full_attention"]},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "qwen3_moe": {
        "head_dim": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
    },
    "phi": {},
    "bloom": {"n_layer": 2, "n_head": 4},
}


@lru_cache
def saved(kind: str, root: Path) -> Path:
    """A random model in a folder."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **(SIZE | MODELS[kind]))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(8)  # initial weights are so small that all logits look alike
    model.save_pretrained(root / kind)
    return root / kind


def load(folder: Path) -> HFTarget:
    checkpoint = Checkpoint(folder)
    device, dtype = torch.device("cpu"), torch.float32
    return load_hf(checkpoint, checkpoint.settings(), name="tiny", device=device, dtype=dtype)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(params=MODELS)
def target(request: pytest.FixtureRequest, root: Path) -> HFTarget:
    return load(saved(request.param, root))


def full_pass(target: HFTarget, tokens: list[int]) -> Tensor:
    """Logits [len, vocab] of one pass of the model itself, without any cache."""
    with torch.no_grad():
        return target._model(torch.tensor([tokens]), use_cache=False).logits[0]


def test_a_chain_scores_like_a_full_pass(target):
    target.prefill(TEXT[:20])
    rows = target.score(TEXT[20], Draft.chain(TEXT[21:]))
    torch.testing.assert_close(rows, full_pass(target, TEXT)[20:], **CLOSE)
    assert rows.std() > 0.1


def test_a_tree_scores_like_each_of_its_paths_alone(target):
    target.prefill(TEXT[:20])
    rows = target.score(TEXT[20], TREE)
    for node in range(ROOT, len(TREE)):
        path = [TREE.tokens[i] for i in TREE.path_to(node)]
        expected = full_pass(target, [*TEXT[:21], *path])[-1]
        torch.testing.assert_close(rows[node + 1], expected, **CLOSE)


@pytest.mark.parametrize("path", [(), (0, 2), (1,), (1, 4)])
def test_after_a_commit_the_cache_is_that_of_the_kept_tokens(target, path):
    target.prefill(TEXT[:20])
    target.score(TEXT[20], TREE)
    target.commit(path)
    kept = [*TEXT[:21], *(TREE.tokens[i] for i in path)]
    assert target.length == len(kept)
    rows = target.score(9, Draft.chain([8, 7]))
    torch.testing.assert_close(rows, full_pass(target, [*kept, 9, 8, 7])[-3:], **CLOSE)


def test_rejected_rows_leave_no_trace_beyond_a_window(target):
    target.prefill(TEXT[:12])
    for token in TEXT[12:20]:  # every round drafts six tokens that are all refused
        target.score(token, Draft.chain([5] * 6))
        target.commit(())
    rows = target.score(TEXT[20], EMPTY)
    torch.testing.assert_close(rows, full_pass(target, TEXT[:21])[-1:], **CLOSE)


def test_truncating_and_forking_forget_what_came_later(target):
    target.prefill(TEXT)
    fork = target.fork(12)
    target.truncate(9)
    target.prefill([7, 7])
    expected = full_pass(target, TEXT[:13])[-1:]
    torch.testing.assert_close(fork.score(TEXT[12], EMPTY), expected, **CLOSE)
    rows = target.score(3, EMPTY)
    torch.testing.assert_close(rows, full_pass(target, [*TEXT[:9], 7, 7, 3])[-1:], **CLOSE)
    assert (fork.length, target.length, target.fork(0).length) == (12, 11, 0)


def test_scoring_again_overwrites_the_last_draft(target):
    target.prefill(TEXT[:10])
    once = target.score(3, Draft.chain([4, 5]))
    target.score(9, TREE)
    torch.testing.assert_close(target.score(3, Draft.chain([4, 5])), once, **CLOSE)


def test_one_pass_for_a_tree_only_where_masks_are_followed(root):
    alone = {kind: load(saved(kind, root)).supports_trees for kind in MODELS}
    assert {kind for kind, one_pass in alone.items() if one_pass} == {
        "gemma",
        "gpt2",
        "qwen3_moe",
        "phi",
    }


def test_config_and_ends_follow_the_model(root):
    target = load(saved("gemma2", root))
    c = target.config
    assert (c.layers, c.hidden, c.heads, c.kv_heads, c.head_dim) == (2, 32, 4, 2, 8)
    assert (c.vocab, c.context, c.eos, c.group_size) == (64, 64, (3,), 2)
    assert len(c.sha) == 16
    assert target.embed([1, 2]).shape == (2, 32)
    assert target.head(torch.randn(3, 32)).abs().max() <= 30  # capped as Gemma 2 does


def test_c17_bad_ids_and_too_many_tokens_are_refused(root):
    target = load(saved("phi", root))
    with pytest.raises(PromptError, match="token 64"):
        target.prefill([64])
    with pytest.raises(DraftError, match="token -2"):
        target.score(1, Draft.chain([-2]))
    with pytest.raises(PromptError, match="context of 64"):
        target.prefill([1] * 65)


@pytest.mark.parametrize(
    ("kind", "sign"),
    [
        ("mamba", "mamba"),
        ("mamba2", "mamba2"),
        ("jamba", "jamba"),
        ("falcon_h1", "falcon_h1"),
        ("qwen3_next", "qwen3_next"),
        ("recurrent_gemma", "recurrent_gemma"),
        ("rwkv", "rwkv"),
        ("lfm2", "lfm2"),
        ("zamba2", "zamba2"),
        ("granitemoehybrid", "granitemoehybrid"),
        ("bamba", "bamba"),
        ("nemotron_h", "nemotron_h"),
    ],
)
def test_c9_recurrent_state_is_refused_before_weights_are_read(kind, sign, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    with pytest.raises(UnsupportedModel, match=rf"recurrent state \(.*{sign}") as refused:
        load(tmp_path)  # there are no weights at all in this folder
    assert "rolled back" in str(refused.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"layer_types": ["full_attention", "linear_attention"]},
        {"text_config": {"layer_types": ["conv"]}},
        {"mamba_d_state": 16},
        {"ssm_cfg": {"layer": "Mamba1"}},
        {"is_encoder_decoder": True},
        {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
        {"rope_parameters": {"full_attention": {"rope_type": "longrope"}}},
    ],
)
def test_signs_of_a_state_refuse_types_nobody_has_heard_of(settings):
    assert refusal({"model_type": "newest"} | settings) is not None
    assert refusal({"model_type": "newest", "layer_types": ["full_attention"]}) is None


def test_encoder_decoder_models_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "t5", "is_encoder_decoder": true}')
    with pytest.raises(UnsupportedModel, match="encoder-decoder"):
        load(tmp_path)


def test_types_unknown_to_transformers_are_refused_by_name(root, tmp_path):
    for kind in ("nobody_knows_this", "vit"):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        weights = saved("phi", root) / "model.safetensors"
        (tmp_path / "model.safetensors").write_bytes(weights.read_bytes())
        with pytest.raises(UnsupportedModel, match=kind):
            load(tmp_path)


def test_a_recurrent_cache_is_noticed_after_loading_too(root):
    from transformers.cache_utils import DynamicCache, LinearAttentionLayer

    target = load(saved("phi", root))
    target._cache = DynamicCache()
    target._cache.layers.append(LinearAttentionLayer())
    with pytest.raises(UnsupportedModel, match=r"recurrent state \(LinearAttentionLayer\)"):
        target.truncate(0)


def test_missing_and_misshaped_weights_are_named(root, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = saved("phi", root)
    tensors = load_file(folder / "model.safetensors")
    name = "model.layers.1.mlp.fc1.weight"
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    for broken in (
        {key: value for key, value in tensors.items() if key != name},
        tensors | {name: torch.zeros(3, 3)},
    ):
        save_file(broken, tmp_path / "model.safetensors", metadata={"format": "pt"})
        with pytest.raises(ModelCorrupt, match=r"layers\.1\.mlp\.fc1|size mismatch|mismatch"):
            load(tmp_path)


def test_b3_nan_weights_are_refused(root, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = saved("phi", root)
    tensors = load_file(folder / "model.safetensors")
    tensors["model.layers.0.mlp.fc1.weight"].fill_(torch.nan)
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelCorrupt, match="NaN"):
        load(tmp_path)
