"""MTP modules: training pass, drafting and transformers' own modules agree."""

from dataclasses import replace

import pytest
import torch

from specviz.heads.experts import ExpertsShape
from specviz.heads.mtp import MtpHead
from specviz.heads.runner import Runner
from tests.heads.random_heads import SHAPE, VOCAB, features_of, mtp_head, random_text, target_for

ROUTED = ExpertsShape(count=4, top_k=2, intermediate=12, shared=20, shared_gate=True)
GROUPED = replace(
    ROUTED, shared_gate=False, sigmoid=True, groups=2, top_groups=1, scale=2.5, normalised=True
)
VARIANTS: dict[str, dict[str, object]] = {
    "plain": {},
    "qwen3": {"layer": replace(SHAPE, qk_norm=True, head_dim=12)},
    "qwen3_5": {"layer": replace(SHAPE, qk_norm=True, head_dim=12, rotary=4, gated=True)},
    "mimo": {
        "layer": replace(SHAPE, qkv_bias=True),
        "hidden_first": True,
        "blank_first": True,
    },
    "qwen3_next": {"experts": ROUTED},
    "glm": {"experts": GROUPED, "layer": replace(SHAPE, rotary=4)},
    "own_tables": {"own_embedding": True, "own_head": True},
}
STEPS = 3


def unrolled(head: MtpHead, tokens: tuple[int, ...]) -> list[torch.Tensor]:
    target = target_for(head)
    features, table = features_of(target, (*tokens, 0))[None], target.embed(range(VOCAB))
    outs = list(head(features, torch.tensor([tokens]), table, STEPS))
    lm_head = target.head if head.lm_head is None else head.lm_head
    return [lm_head(out[0]) for out in outs]


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
@torch.no_grad()
def test_drafting_says_what_the_training_pass_says(changes: dict[str, object]) -> None:
    head, tokens = mtp_head(**changes), random_text(12)
    expected, target = unrolled(head, tokens), target_for(head)
    runner = Runner(head, target)
    for row in (0, 5, 8):
        known = tokens[: row + 2]
        reading = runner.catch_up(known, features_of(target, known), shared=len(runner.text))
        for step in range(STEPS):
            assert torch.allclose(reading.logits[-1], expected[step][row], atol=1e-4), (row, step)
            token = tokens[row + 2 + step] if row + 2 + step < len(tokens) else 0
            reading = runner.step(reading.hidden[-1:], (token,), step + 1)
        runner.drop_drafted()


@torch.no_grad()
def test_the_first_embedding_is_blank_where_the_family_blanks_it() -> None:
    tokens, other = random_text(6), (*random_text(6)[:1], 9, *random_text(6)[2:])
    assert tokens[1] != 9
    for blank in (False, True):
        head = mtp_head(blank_first=blank)
        target = target_for(head)
        features = features_of(target, (*tokens, 0))[None]
        table = target.embed(range(VOCAB))
        one, two = (next(head(features, torch.tensor([t]), table)) for t in (tokens, other))
        assert torch.equal(one[0, 0], two[0, 0]) is blank


def test_gradients_reach_every_parameter_of_a_mixture_of_experts() -> None:
    head, tokens = mtp_head(experts=replace(ROUTED, top_k=4)), random_text(10)
    target = target_for(head)
    features = features_of(target, (*tokens, 0))[None].clone()
    table = target.embed(range(VOCAB)).clone()
    outs = head(features, torch.tensor([tokens]), table, STEPS)
    sum((out * torch.arange(32)).square().mean() for out in outs).backward()
    for name, weight in head.named_parameters():
        assert weight.grad is not None, name
        assert float(weight.grad.abs().max()) > 0, name


def test_a_module_reads_the_final_hidden_state() -> None:
    assert mtp_head().taps == (4,)
    target = target_for(mtp_head())
    target.prefill((1, 2, 3))
    assert target.features is not None
    normed = target.weights.norm.weight
    assert torch.allclose(
        (target.features[:, 0] / normed).square().mean(-1), torch.ones(3), atol=1e-3
    )
