"""Our decoder says what transformers says, whatever the shape of the pass."""

from functools import lru_cache
from typing import TYPE_CHECKING

import pytest
import torch
from torch import Tensor

from specviz.errors import DraftError, ModelCorrupt, PromptError, UnsupportedModel
from specviz.events import EMPTY, ROOT, Draft
from specviz.models import llama
from specviz.models.llama_config import read_llama_config
from specviz.models.rope import Rope
from specviz.models.tiny import FAMILIES, Family, TinyShape, perturb, tiny_llama, tiny_tensors

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TEXT = [int(x) for x in torch.randint(0, 64, (40,), generator=torch.Generator().manual_seed(5))]
TREE = Draft((1, 2, 3, 4, 5, 6), (ROOT, ROOT, 0, 1, 1, 3))
CLOSE = {"rtol": 0, "atol": 1e-4}


def reference(settings: dict[str, object], tensors: dict[str, Tensor]) -> "PreTrainedModel":
    """The same weights, run by transformers."""
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(**settings, pad_token_id=None)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    if settings["tie_word_embeddings"]:
        tensors = tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"]}
    model.load_state_dict(tensors)
    return model


@lru_cache
def transformers_logits(family: Family, tokens: tuple[int, ...]) -> tuple[Tensor, list[Tensor]]:
    """Logits [len, vocab] and hidden states of the same weights, by transformers."""
    settings = TinyShape().settings(family)
    model = reference(settings, tiny_tensors(read_llama_config(settings)))
    with torch.no_grad():
        out = model(torch.tensor([tokens]), output_hidden_states=True)
    return out.logits[0], [hidden[0] for hidden in out.hidden_states]


def score_last(target: llama.LlamaTarget, tokens: list[int]) -> Tensor:
    """The row after `tokens`, by a fresh prefill."""
    fresh = target.with_taps(target.taps)
    fresh.prefill(tokens[:-1])
    return fresh.score(tokens[-1], EMPTY)[0]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return request.param


def test_logits_equal_those_of_transformers(family):
    target = tiny_llama(family=family)
    logits = target.score(TEXT[0], Draft.chain(TEXT[1:]))
    expected, _ = transformers_logits(family, tuple(TEXT))
    torch.testing.assert_close(logits, expected, **CLOSE)
    assert logits.dtype == torch.float32


@pytest.mark.parametrize("scale", [1, 3])
def test_large_weights_are_as_exact_as_in_transformers(family, scale):
    """Logits that spread by 12 differ by more than 1e-4: both round, neither more than the other.

    The judge is the same model in float64.
    """
    settings = TinyShape(hidden=64, layers=4).settings(family)
    config = read_llama_config(settings)
    tensors = {
        name: value if "norm" in name or "embed" in name else value * scale
        for name, value in tiny_tensors(config).items()
    }
    text = torch.randint(0, 64, (400,), generator=torch.Generator().manual_seed(1))
    ours = llama.LlamaTarget.from_tensors(config, tensors)
    rows = ours.score(int(text[0]), Draft.chain(text[1:].tolist()))
    model = reference(settings, tensors)
    with torch.no_grad():
        theirs = model(text[None]).logits[0]
        exact = model.double()(text[None]).logits[0]
    ours_off, theirs_off = ((x - exact).square().mean().sqrt() for x in (rows, theirs))
    assert ours_off < 1.5 * theirs_off
    if scale == 1:
        torch.testing.assert_close(rows, theirs, **CLOSE)


@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize("windows", [{}, {"sliding_window": None}, {"sliding_window": 9}])
def test_what_a_config_leaves_out_is_the_default_of_transformers(name, windows):
    from transformers import AutoConfig

    given = {"hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 30}
    if name.startswith("qwen"):
        given |= {"use_sliding_window": True, "max_window_layers": 28}
    ours = read_llama_config(
        given | windows | {"model_type": name, "vocab_size": 9, "intermediate_size": 9}
    )
    theirs = AutoConfig.for_model(name, **given, **windows)
    shape = ours.target
    assert shape.kv_heads == theirs.num_key_value_heads
    assert shape.head_dim == getattr(theirs, "head_dim", 128)
    assert shape.context == theirs.max_position_embeddings
    assert ours.eps == theirs.rms_norm_eps
    window = theirs.sliding_window if name != "llama" else None
    first = 28 if name.startswith("qwen") else 0
    assert ours.windows == (None,) * first + (window,) * (30 - first)


@pytest.mark.parametrize("head_dim", [8, 64, 96, 128])
@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_llama3_frequencies_are_those_of_transformers_bit_by_bit(head_dim, factor):
    from transformers import AutoConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    scaling = {"factor": factor, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    scaling |= {"rope_type": "llama3", "original_max_position_embeddings": 8192}
    config = AutoConfig.for_model(
        "llama", head_dim=head_dim, rope_parameters=scaling | {"rope_theta": 500_000.0}
    )
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    rope = Rope(kind="llama3", theta=500_000.0, factor=factor)
    assert torch.equal(rope.frequencies(head_dim), expected)


def test_prefill_in_pieces_equals_one_piece(family, monkeypatch):
    whole = score_last(tiny_llama(family=family), TEXT)
    monkeypatch.setattr(llama, "PIECE", 7)
    torch.testing.assert_close(score_last(tiny_llama(family=family), TEXT), whole, **CLOSE)


def test_a_chain_scores_like_a_full_pass(family):
    target = tiny_llama(family=family)
    target.prefill(TEXT[:25])
    rows = target.score(TEXT[25], Draft.chain(TEXT[26:34]))
    expected, _ = transformers_logits(family, tuple(TEXT[:34]))
    torch.testing.assert_close(rows, expected[25:], **CLOSE)


def test_a_tree_scores_like_each_of_its_paths_alone(family):
    target = tiny_llama(family=family)
    target.prefill(TEXT[:20])
    rows = target.score(TEXT[20], TREE)
    for node in range(ROOT, len(TREE)):
        path = [TREE.tokens[i] for i in TREE.path_to(node)]
        expected = score_last(target, [*TEXT[:21], *path])
        torch.testing.assert_close(rows[node + 1], expected, **CLOSE)


@pytest.mark.parametrize("path", [(), (0,), (0, 2), (1,), (1, 3), (1, 3, 5), (1, 4)])
def test_after_a_commit_the_cache_is_that_of_a_fresh_prefill(family, path):
    target = tiny_llama(family=family).with_taps((0, 1, 2))
    target.prefill(TEXT[:20])
    target.score(TEXT[20], TREE)
    target.commit(path)
    kept = [*TEXT[:21], *(TREE.tokens[i] for i in path)]
    assert target.length == len(kept)
    fresh = target.with_taps(target.taps)
    fresh.prefill(kept)
    torch.testing.assert_close(target.features, fresh.features, **CLOSE)
    expected = fresh.score(9, TREE)
    torch.testing.assert_close(target.score(9, TREE), expected, **CLOSE)


def test_truncating_and_forking_forget_what_came_later(family):
    target = tiny_llama(family=family)
    target.prefill(TEXT)
    fork = target.fork(12)
    target.truncate(12)
    target.prefill([7, 7, 7])
    expected = score_last(target, TEXT[:13])
    torch.testing.assert_close(fork.score(TEXT[12], EMPTY)[0], expected, **CLOSE)
    assert (fork.length, target.length) == (12, 15)


def test_scoring_again_overwrites_the_last_draft():
    target = tiny_llama()
    target.prefill(TEXT[:10])
    once = target.score(3, Draft.chain([4, 5]))
    target.score(9, TREE)
    assert torch.equal(target.score(3, Draft.chain([4, 5])), once)
    assert target.length == 10


def test_features_are_the_hidden_states_of_transformers(family):
    target = tiny_llama(family=family).with_taps((2, 0, 1))
    target.prefill(TEXT)
    _, states = transformers_logits(family, tuple(TEXT))
    expected = torch.stack([states[2], states[0], states[1]], dim=1)
    torch.testing.assert_close(target.features, expected, **CLOSE)


def test_without_taps_there_are_no_features():
    assert tiny_llama().features is None


def test_embed_and_head_are_the_ends_of_the_model():
    target = tiny_llama().with_taps((0, 2))
    logits = target.score(TEXT[0], Draft.chain(TEXT[1:]))
    target.commit(tuple(range(len(TEXT) - 1)))
    assert torch.equal(target.embed(TEXT), target.features[:, 0])
    torch.testing.assert_close(target.head(target.features[:, 1]), logits, **CLOSE)


def test_perturbing_changes_a_copy_and_not_the_target():
    target = tiny_llama()
    before = score_last(target, TEXT)
    noisy = perturb(target, 0.05)
    assert (score_last(noisy, TEXT) - before).abs().max() > 1e-3
    assert torch.equal(score_last(target, TEXT), before)
    assert torch.equal(score_last(perturb(target, 0.0), TEXT), before)


def test_c17_tokens_outside_the_vocabulary_are_refused():
    target = tiny_llama()
    with pytest.raises(PromptError, match=r"token 64 .* 0 to 63"):
        target.prefill([1, 64])
    with pytest.raises(DraftError, match="token -1"):
        target.score(1, Draft.chain([-1]))
    assert target.length == 0


def test_more_tokens_than_the_context_are_refused():
    target = tiny_llama(context=16)
    with pytest.raises(PromptError, match="context of 16"):
        target.prefill([1] * 17)
    target.prefill([1] * 12)
    with pytest.raises(DraftError, match="5 tokens after 12"):
        target.score(1, Draft.chain([1] * 4))
    assert target.score(1, Draft.chain([1] * 3)).shape == (4, 64)


def test_only_a_path_of_the_last_draft_can_be_committed():
    target = tiny_llama()
    target.score(1, TREE)
    for path in [(2,), (0, 1), (6,), (-1,)]:
        with pytest.raises(DraftError, match="not a path"):
            target.commit(path)
    target.commit((0,))
    with pytest.raises(DraftError, match="not a path"):
        target.commit(())


def test_damaged_weights_are_named():
    config = read_llama_config(TinyShape().settings("qwen2"))
    good = tiny_tensors(config)
    name = "model.layers.1.self_attn.k_proj.bias"
    with pytest.raises(ModelCorrupt, match=rf"no tensor {name} \[16\]"):
        llama.LlamaTarget.from_tensors(config, {k: v for k, v in good.items() if k != name})
    with pytest.raises(ModelCorrupt, match=rf"{name} has shape \[3\] .* \[16\]"):
        llama.LlamaTarget.from_tensors(config, good | {name: torch.zeros(3)})
    with pytest.raises(ModelCorrupt, match="extra"):
        llama.LlamaTarget.from_tensors(config, good | {"extra": torch.zeros(3)})
    with pytest.raises(ModelCorrupt, match=r"int8"):
        llama.LlamaTarget.from_tensors(config, good | {name: torch.zeros(16, dtype=torch.int8)})


@pytest.mark.parametrize("kind", ["yarn", "dynamic", "longrope"])
def test_unknown_rope_scaling_is_refused_by_name(kind):
    settings = TinyShape().settings("llama") | {"rope_scaling": {"rope_type": kind, "factor": 2.0}}
    with pytest.raises(UnsupportedModel, match=kind):
        read_llama_config(settings)


@pytest.mark.skipif(
    not torch.cpu._is_avx512_bf16_supported(), reason="this CPU does not multiply in bf16"
)
def test_c15_in_bf16_a_chain_has_the_same_bits_alone_and_together():
    """Transformers differs by up to one logit here; then near ties flip when D changes."""
    shape = {"hidden": 192, "intermediate": 512, "heads": 6, "context": 1024, "vocab": 512}
    target = tiny_llama(dtype=torch.bfloat16, **shape)
    text = torch.randint(0, 512, (90,), generator=torch.Generator().manual_seed(3)).tolist()
    target.prefill(text[:20])
    alone = []
    for token in text[20:]:
        alone.append(target.score(token, EMPTY))
        target.commit(())
    for rows in (2, 5, 8, 17, 32):
        target.truncate(20)
        together = []
        while target.length < len(text):
            root, *draft = text[target.length : target.length + rows]
            together.append(target.score(root, Draft.chain(draft)))
            target.commit(tuple(range(len(draft))))
        assert torch.equal(torch.cat(together), torch.cat(alone)), f"{rows} rows differ"
