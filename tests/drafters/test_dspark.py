"""DSpark drafts: the walk, and confidence that cuts without changing the text."""

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.dspark import DSparkDrafter
from specviz.drafters.none import PlainDrafter
from specviz.errors import ConfigError
from specviz.heads.dflash_config import DSparkShape
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_cache import DSparkDecoder
from specviz.heads.dspark_schedule import Confidence, StepTable
from specviz.models.llama import LlamaTarget
from specviz.session import DecodeSession
from tests.heads.block_heads import (
    TEXT,
    block_config,
    context,
    spark_config,
    tiny_dspark,
    tiny_target,
)

OPTIONS = DrafterOptions()
PROMPT = TEXT[:5]
KINDS = {
    "vanilla": DSparkShape(rank=6),
    "gated": DSparkShape(rank=6, kind="gated"),
    "rnn": DSparkShape(rank=6, kind="rnn"),
    "rank 0": DSparkShape(rank=0, confidence=False),
}


def run(target: LlamaTarget, drafter: DSparkDrafter, **params: float) -> DecodeSession:
    config, asked = SessionConfig(draft_length=4), SamplingParams(max_tokens=40, **params)
    return DecodeSession(target, drafter, PROMPT, asked, config)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_output_is_that_of_plain_decoding(family: str, kind: str) -> None:
    target = tiny_target(family)
    session = run(target, DSparkDrafter(tiny_dspark(spark_config(KINDS[kind])), target, OPTIONS))
    list(session)
    plain = DecodeSession(target, PlainDrafter(), PROMPT, session.params, session.config)
    list(plain)
    assert session.output == plain.output


@pytest.mark.parametrize("anchor_predicts", [True, False])
def test_each_slot_is_told_the_token_before_it(anchor_predicts: bool) -> None:
    target = tiny_target()
    config = block_config(anchor_predicts=anchor_predicts, dspark=DSparkShape(rank=6))
    head = tiny_dspark(config)
    proposal = DSparkDrafter(head, target, OPTIONS).propose(context(target), config.most)
    decoder, features = DSparkDecoder(head, target), context(target).features
    assert features is not None
    decoder.read(features)
    hidden = decoder.block(TEXT[-1], config.block)
    walk = decoder.walk(hidden if anchor_predicts else hidden[1:])
    expected: list[int] = []
    for _ in range(config.most):
        expected.append(int(walk.look(expected[-1] if expected else TEXT[-1]).logits.argmax()))
    assert list(proposal.draft.tokens) == expected
    assert len(expected) == (5 if anchor_predicts else 4)


def test_the_markov_head_changes_what_is_drafted() -> None:
    target, head = tiny_target(), tiny_dspark()
    with_it = DSparkDrafter(head, target, OPTIONS).propose(context(target), 5).draft
    assert head.markov_head is not None
    with torch.no_grad():
        head.markov_head.markov_w2.weight *= 30
    assert DSparkDrafter(head, target, OPTIONS).propose(context(target), 5).draft != with_it


def test_sampled_slots_keep_their_q() -> None:
    target, params = tiny_target(), SamplingParams(temperature=1.0, seed=3)
    proposal = DSparkDrafter(tiny_dspark(), target, OPTIONS).propose(
        context(target, params=params), 5
    )
    assert proposal.probs is not None
    torch.testing.assert_close(proposal.probs.sum(-1), torch.ones(5))
    for token, score, q in zip(
        proposal.draft.tokens, proposal.evidence.scores, proposal.probs, strict=True
    ):
        assert score == pytest.approx(float(q[token]))


def sure(head: DSparkHead, logit: float) -> DSparkHead:
    """A head with the same confidence everywhere."""
    assert head.confidence_head is not None
    with torch.no_grad():
        head.confidence_head.proj.weight.zero_()
        head.confidence_head.proj.bias.fill_(logit)
    return head


@pytest.mark.parametrize(
    ("rule", "length"),
    [
        (Confidence(), 5),
        (Confidence(threshold=0.7), 5),  # sigmoid(1) is 0.73
        (Confidence(threshold=0.74), 0),
        (Confidence(threshold=0.74, temperatures=(0.5, 0.5)), 2),
        (Confidence(speed=StepTable((1, 4), (10.0, 0.1))), 2),
        (Confidence(speed=StepTable((1, 2), (10.0, 1.0))), 0),
    ],
)
def test_confidence_decides_how_much_is_drafted(rule: Confidence, length: int) -> None:
    target = tiny_target()
    drafter = DSparkDrafter(sure(tiny_dspark(), 1.0), target, OPTIONS, confidence=rule)
    proposal = drafter.propose(context(target), 5)
    assert len(proposal.draft) == length
    assert ("confidence 0." in proposal.evidence.message) is (length < 5)


def test_a11_a_scheduler_that_declines_leaves_plain_decoding() -> None:
    target, rule = tiny_target(), Confidence(threshold=0.99)
    drafter = DSparkDrafter(sure(tiny_dspark(), 0.0), target, OPTIONS, confidence=rule)
    session = run(target, drafter)
    list(session)
    assert {r.acceptance_length for r in session.rounds} == {1}
    assert {r.last_kind for r in session.rounds} == {"plain"}


def test_cutting_without_a_confidence_head_is_refused() -> None:
    head = tiny_dspark(spark_config(DSparkShape(rank=6, confidence=False)))
    with pytest.raises(ConfigError, match="no confidence head"):
        DSparkDrafter(head, tiny_target(), OPTIONS, confidence=Confidence(threshold=0.5))


def test_more_than_the_block_holds_is_not_drafted_and_said() -> None:
    target = tiny_target()
    proposal = DSparkDrafter(tiny_dspark(), target, OPTIONS).propose(context(target), 9)
    assert len(proposal.draft) == 5
    assert "at most 5 tokens per block; 9 were asked for" in proposal.evidence.message


def test_drafts_depend_on_the_context_alone() -> None:
    target, head = tiny_target(), tiny_dspark()
    used = DSparkDrafter(head, target, OPTIONS)
    for text in (TEXT, TEXT[:7], (*TEXT[:7], 1, 1), TEXT[:2], TEXT):
        fresh = DSparkDrafter(head, target, OPTIONS).propose(context(target, text), 5)
        assert used.propose(context(target, text), 5).draft == fresh.draft
