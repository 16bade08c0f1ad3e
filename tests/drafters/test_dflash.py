"""DFlash drafts: the target's text, whatever the head says, and honest evidence."""

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.base import Context
from specviz.drafters.dflash import DFlashDrafter
from specviz.drafters.none import PlainDrafter
from specviz.errors import DraftError, NumericsError
from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_cache import BlockDecoder
from specviz.metrics import alarms, summarise
from specviz.models.llama import LlamaTarget
from specviz.session import DecodeSession
from specviz.verify.draws import Draws
from tests.drafters.block_text import SMALL, TARGET, fits
from tests.heads.block_heads import TEXT, block_config, context, randomise, tiny_dflash, tiny_target

OPTIONS = DrafterOptions()
PROMPT = TEXT[:5]


def drafter(target: LlamaTarget, **options: object) -> DFlashDrafter:
    return DFlashDrafter(tiny_dflash(), target, DrafterOptions(**options))


def run(target: LlamaTarget, tokens: int = 40, length: int = 4, **params: float) -> DecodeSession:
    config = SessionConfig(draft_length=length)
    asked = SamplingParams(max_tokens=tokens, **params)
    return DecodeSession(target, drafter(target), PROMPT, asked, config)


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_output_is_that_of_plain_decoding(family: str, penalty: float) -> None:
    target = tiny_target(family)
    session = run(target, repetition_penalty=penalty)
    list(session)
    plain = DecodeSession(target, PlainDrafter(), PROMPT, session.params, session.config)
    list(plain)
    assert session.output == plain.output
    assert all(r.draft.is_chain and r.evidence.passes == 1 for r in session.rounds if r.draft)


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("rule", ["sampled", "block"])
def test_sampled_text_follows_the_target(rule: str, sampled: bool) -> None:
    head = tiny_dflash(block_config(**SMALL))
    options = DrafterOptions(draft_sampled=sampled)
    assert fits(lambda: DFlashDrafter(head, TARGET, options), rule) > 1e-3


def test_slots_are_drawn_from_the_q_that_is_kept() -> None:
    target = tiny_target()
    params = SamplingParams(temperature=0.7, top_k=5)
    proposal = drafter(target).propose(context(target, params=params), 4)
    decoder = BlockDecoder(tiny_dflash(), target)
    features = context(target).features
    assert features is not None
    decoder.read(features)
    logits = decoder.logits(decoder.block(TEXT[-1], 5)[1:])
    assert proposal.probs is not None
    assert ((proposal.probs > 0).sum(-1) == 5).all()
    for slot, q in enumerate(proposal.probs):
        kept = q > 0
        expected = (logits[slot][kept] / 0.7).softmax(-1)
        torch.testing.assert_close(q[kept], expected, rtol=1e-4, atol=1e-5)
        assert proposal.evidence.scores[slot] == pytest.approx(
            float(q[proposal.draft.tokens[slot]])
        )


def test_drafts_depend_on_the_context_alone() -> None:
    target, used = tiny_target(), drafter(tiny_target())
    for text in (TEXT, TEXT[:7], (*TEXT[:7], 1, 1), TEXT[:2], TEXT):
        fresh = drafter(target).propose(context(target, text), 4)
        again = used.propose(context(target, text), 4)
        assert again.draft == fresh.draft
        assert again.evidence.scores == fresh.evidence.scores


def test_only_new_tokens_are_read() -> None:
    target, used = tiny_target(), drafter(tiny_target())
    assert used.propose(context(target, TEXT[:8]), 4).evidence.caught_up == 7
    assert used.propose(context(target, TEXT[:11]), 4).evidence.caught_up == 3
    assert used.propose(context(target, TEXT[:11]), 4).evidence.caught_up == 0


def test_rewinding_repeats_the_same_rounds() -> None:
    session = run(tiny_target(), temperature=1.0)
    for _ in range(6):
        session.step()
    before = [(r.draft, r.path, r.last_token) for r in session.rounds]
    session.rewind(2)
    while len(session.rounds) < 6:
        session.step()
    assert [(r.draft, r.path, r.last_token) for r in session.rounds] == before


def test_a_smaller_budget_runs_a_shorter_block() -> None:
    target = tiny_target()
    decoder = BlockDecoder(tiny_dflash(), target)
    features = context(target).features
    assert features is not None
    decoder.read(features)
    short = decoder.logits(decoder.block(TEXT[-1], 3)[1:]).argmax(-1)
    proposal = drafter(target).propose(context(target), 2)
    assert proposal.draft.tokens == tuple(short.tolist())


def test_more_than_the_block_holds_is_not_drafted_and_said() -> None:
    target = tiny_target()
    proposal = drafter(target).propose(context(target), 9)
    assert len(proposal.draft) == 4
    assert "at most 4 tokens per block; 9 were asked for" in proposal.evidence.message


def test_a_timid_draft_stops_before_the_unsure_slot() -> None:
    target = tiny_target()
    bold = drafter(target).propose(context(target), 4)
    least = bold.evidence.scores[0] + 1e-3
    timid = drafter(target, draft_min_p=min(1.0, least)).propose(context(target), 4)
    assert len(timid.draft) == 0
    assert "Stopped" in timid.evidence.message


def test_nothing_is_drafted_after_an_end_token() -> None:
    target = tiny_target()
    first = drafter(target).propose(context(target), 4).draft.tokens[0]
    ends = DFlashDrafter(tiny_dflash(), target, OPTIONS, frozenset({first}))
    assert ends.propose(context(target), 4).draft.tokens == (first,)


def test_a_part_of_the_vocabulary_is_all_that_is_drafted() -> None:
    target, ids = tiny_target(), torch.tensor([2, 30, 41])
    head = DFlashHead(block_config(draft_vocab=3), draft_ids=ids)
    randomise(head)
    params = SamplingParams(temperature=1.0)
    proposal = DFlashDrafter(head, target, OPTIONS).propose(context(target, params=params), 4)
    assert proposal.probs is not None
    assert proposal.probs.shape == (4, 64)
    assert set(proposal.probs.sum(0).nonzero().flatten().tolist()) == set(ids.tolist())
    assert set(proposal.draft.tokens) <= set(ids.tolist())


def test_b6_missing_features_are_an_error_and_no_bad_draft() -> None:
    target, text = tiny_target(), TEXT
    whole = context(target)
    assert whole.features is not None

    def fed(features: torch.Tensor | None) -> Context:
        return Context(text, 1, SamplingParams(), Draws(0), features)

    silent = whole.features.clone()
    silent[3, 1] = 0
    for features, message in (
        (None, "keeps no hidden states"),
        (whole.features[:, :1], r"shape \[12, 1, 32\] and this head reads \[12, 2, 32\]"),
        (whole.features[:-1], r"shape \[11, 2, 32\]"),
        (silent, "hidden state 1 of text position 3 is all zeros"),
    ):
        with pytest.raises(DraftError, match=message):
            drafter(target).propose(fed(features), 4)


def test_weights_that_are_not_finite_stop_the_run_by_name() -> None:
    target, head = tiny_target(), tiny_dflash()
    with torch.no_grad():
        head.norm.weight[0] = torch.nan
    with pytest.raises(NumericsError, match="NaN"):
        DFlashDrafter(head, target, OPTIONS).propose(context(target), 4)


def test_metrics_add_up() -> None:
    session = run(tiny_target(), temperature=1.0, length=3)
    list(session)
    found = summarise(session.rounds)
    assert found.output_tokens == len(session.output)
    drafted = [r for r in session.rounds if len(r.draft) == 3]
    accepted = [sum(len(r.path) > i for r in drafted) / len(drafted) for i in range(3)]
    length = sum(len(r.path) + 1 for r in drafted) / len(drafted)
    assert length == pytest.approx(1 + sum(accepted))


def test_an_untrained_head_raises_the_dead_drafter_alarm() -> None:
    target = tiny_target(vocab=512, context=512)
    head = tiny_dflash(block_config(vocab=512, draft_vocab=512))
    drafted = DFlashDrafter(head, target, DrafterOptions(draft_sampled=False))
    params = SamplingParams(temperature=2.0, max_tokens=80)
    session = DecodeSession(target, drafted, PROMPT, params, SessionConfig(draft_length=4))
    list(session)
    assert "dead" in {alarm.kind for alarm in alarms(session.rounds)}
