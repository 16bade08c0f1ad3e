"""The MTP drafter in a session: lossless, prefilled, and honest about depths it reuses."""

from dataclasses import replace

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.base import Context
from specviz.drafters.mtp import MtpDrafter
from specviz.drafters.none import PlainDrafter
from specviz.heads.mtp import MtpHead
from specviz.heads.runner import Runner
from specviz.models.llama import LlamaTarget
from specviz.models.tiny import Family
from specviz.session import DecodeSession
from specviz.verify.draws import Draws
from tests.heads.random_heads import (
    IDS,
    VOCAB,
    features_of,
    mtp_head,
    random_text,
    randomise,
    target_for,
)

PROMPT = random_text(9, seed=2)
SAMPLED = SamplingParams(temperature=1.0, max_tokens=40)


def drafter(head: MtpHead, target: LlamaTarget) -> MtpDrafter:
    return MtpDrafter(head, target, DrafterOptions())


def context(target: LlamaTarget, tokens: tuple[int, ...], params: SamplingParams) -> Context:
    return Context(tokens, 3, params, Draws(0), features_of(target, tokens))


@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_greedy_output_is_that_of_plain_decoding(family: Family) -> None:
    head = mtp_head()
    target = target_for(head, family)
    params = SamplingParams(max_tokens=40)
    config = SessionConfig(scheme="mtp", draft_length=3)
    run = DecodeSession(target, drafter(head, target), PROMPT, params, config)
    assert all(r.scheme == "mtp" for r in run)
    plain = DecodeSession(target.with_taps(()), PlainDrafter(), PROMPT, params)
    assert [r.committed for r in plain]
    assert run.output == plain.output


@pytest.mark.parametrize("params", [SamplingParams(max_tokens=40), SAMPLED], ids=["greedy", "t1"])
def test_g1_the_draft_is_a_function_of_the_context(params: SamplingParams) -> None:
    head = mtp_head()
    target = target_for(head)
    config = SessionConfig(scheme="mtp", draft_length=3)
    run = DecodeSession(target, drafter(head, target), PROMPT, params, config)
    for round_ in run:
        if len(round_.draft):
            other = target_for(head)
            tokens = run.tokens[: round_.start]
            asked = Context(tokens, len(PROMPT), params, Draws(0), features_of(other, tokens))
            found = drafter(head, other).propose(asked, len(round_.draft))
            assert found.draft == round_.draft
            assert found.evidence.scores == pytest.approx(round_.evidence.scores, abs=1e-5)


def test_the_whole_prompt_is_read_before_the_first_draft() -> None:
    head = mtp_head()
    target = target_for(head)
    one = drafter(head, target)
    found = one.propose(context(target, PROMPT, SamplingParams()), 1)
    assert (found.evidence.caught_up, found.evidence.passes) == (8, 1)
    other = (*random_text(7, seed=9), *PROMPT[-2:])  # only the tail is the same
    again = drafter(head, target).propose(context(target, other, SamplingParams()), 1)
    assert again.evidence.scores != found.evidence.scores


def test_depths_beyond_the_trained_one_are_said_to_be_reused() -> None:
    head = mtp_head()
    target = target_for(head)
    asked = context(target, PROMPT, SamplingParams())
    assert drafter(head, target).propose(asked, 1).evidence.note == ""
    assert drafter(head, target).propose(asked, 3).evidence.note == (
        "From depth 2 on the module is reused: it was trained for depth 1."
    )
    deep = mtp_head(trained=3)
    assert drafter(deep, target).propose(asked, 3).evidence.message == ""


def test_sampled_drafts_come_with_q_over_the_vocabulary() -> None:
    head = mtp_head()
    target = target_for(head)
    found = drafter(head, target).propose(context(target, PROMPT, SAMPLED), 3)
    assert found.probs is not None
    assert found.probs.shape == (3, VOCAB)
    assert torch.allclose(found.probs.sum(-1), torch.ones(3))


@pytest.mark.parametrize("params", [SamplingParams(max_tokens=40), SAMPLED], ids=["greedy", "t1"])
def test_rows_of_a_draft_vocabulary_are_drafted_as_the_targets_ids(params: SamplingParams) -> None:
    head = MtpHead(replace(mtp_head().config, own_head=True, draft_vocab=len(IDS)), IDS)
    randomise(head, seed=3)
    target = target_for(head)
    found = drafter(head, target).propose(context(target, PROMPT, params), 3)
    assert len(found.draft) == 3
    assert set(found.draft.tokens) <= set(IDS.tolist())
    reading = Runner(head, target).catch_up(PROMPT, features_of(target, PROMPT), 0)
    p = reading.logits[-1].softmax(-1)
    if params.greedy:
        assert found.draft.tokens[0] == int(IDS[int(p.argmax())])
    else:
        assert found.probs is not None
        expected = torch.zeros(VOCAB).index_put((IDS,), p)
        torch.testing.assert_close(found.probs[0], expected, rtol=1e-4, atol=1e-5)
