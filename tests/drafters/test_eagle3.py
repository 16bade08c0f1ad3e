"""The EAGLE-3 drafter in a session: lossless, a function of its context, honest about q."""

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters.base import Context
from specviz.drafters.eagle3 import Eagle3Drafter
from specviz.drafters.none import PlainDrafter
from specviz.heads.eagle3 import Eagle3Head
from specviz.heads.tree import TreeShape
from specviz.models.llama import LlamaTarget
from specviz.models.tiny import Family
from specviz.session import DecodeSession
from specviz.verify.draws import Draws
from tests.heads.random_heads import IDS, VOCAB, eagle3_head, features_of, random_text, target_for

PROMPT = random_text(9, seed=2)
TREE = TreeShape(top_k=4, depth=3)
SAMPLED = SamplingParams(temperature=1.0, max_tokens=40)


def drafter(
    head: Eagle3Head,
    target: LlamaTarget,
    tree: TreeShape | None = None,
    ends: frozenset[int] = frozenset(),
    **options: object,
) -> Eagle3Drafter:
    return Eagle3Drafter(head, target, DrafterOptions(**options), ends, tree)  # type: ignore[arg-type]


def session(
    target: LlamaTarget,
    head: Eagle3Head,
    params: SamplingParams,
    tree: TreeShape | None = None,
    budget: int = 4,
) -> DecodeSession:
    config = SessionConfig(scheme="eagle3", draft_length=budget)
    return DecodeSession(target, drafter(head, target, tree), PROMPT, params, config)


def context(
    target: LlamaTarget,
    tokens: tuple[int, ...],
    params: SamplingParams | None = None,
    seed: int = 0,
) -> Context:
    features = features_of(target, tokens)
    return Context(tokens, 3, params or SamplingParams(), Draws(seed), features)


def copying_head(target: LlamaTarget) -> Eagle3Head:
    """A head that agrees with the target now and then, so rounds accept more than nothing."""
    head = eagle3_head(draft_ids=None, taps=(4,), own_head=False)
    with torch.no_grad():
        head.fc.weight.copy_(torch.eye(32))
    return head


@pytest.mark.parametrize("family", ["llama", "qwen3"])
@pytest.mark.parametrize("tree", [None, TREE], ids=["chain", "tree"])
@pytest.mark.parametrize("make", [lambda t: eagle3_head(), copying_head], ids=["d2t", "whole"])
def test_greedy_output_is_that_of_plain_decoding(family: Family, tree, make) -> None:
    head = make(None)
    target = target_for(head, family)
    run = session(target, head, SamplingParams(max_tokens=40), tree, budget=9)
    rounds = list(run)
    plain = DecodeSession(target.with_taps(()), PlainDrafter(), PROMPT, run.params)
    assert [r.committed for r in plain]
    assert run.output == plain.output
    assert all(1 <= len(r.draft) <= 9 for r in rounds[:-2])
    assert all(len(r.evidence.scores) == len(r.draft) for r in rounds)


@pytest.mark.parametrize("tree", [None, TREE], ids=["chain", "tree"])
@pytest.mark.parametrize("params", [SamplingParams(max_tokens=40), SAMPLED], ids=["greedy", "t1"])
def test_g1_the_draft_is_a_function_of_the_context(tree, params: SamplingParams) -> None:
    head = copying_head(target_for(eagle3_head()))
    target = target_for(head)
    run = session(target, head, params, tree, budget=6)
    for round_ in run:
        tokens = run.tokens[: round_.start]
        fresh = drafter(head, target_for(head), tree)
        asked = context(target_for(head), tokens, params, params.seed)
        asked = Context(tokens, len(PROMPT), params, asked.draws, asked.features)
        if len(round_.draft):
            found = fresh.propose(asked, len(round_.draft))
            assert found.draft == round_.draft
            assert found.evidence.scores == pytest.approx(round_.evidence.scores, abs=1e-5)


def test_a_rewound_run_repeats_itself_to_the_bit() -> None:
    head = copying_head(target_for(eagle3_head()))
    run = session(target_for(head), head, SAMPLED)
    first = list(run)
    for to in (3, 1):
        run.rewind(to)
        again = [*first[:to], *run]
        assert [r.committed for r in again] == [r.committed for r in first]
        assert [r.evidence.scores for r in again] == [r.evidence.scores for r in first]


def test_sampled_drafts_follow_q_over_the_whole_vocabulary() -> None:
    head = eagle3_head()
    target = target_for(head)
    found = drafter(head, target).propose(context(target, PROMPT, SAMPLED), 4)
    assert found.probs is not None
    assert found.probs.shape == (4, VOCAB)
    assert torch.allclose(found.probs.sum(-1), torch.ones(4))
    lacking = [i for i in range(VOCAB) if i not in IDS.tolist()]
    assert not found.probs[:, lacking].any()
    for row, token, score in zip(
        found.probs, found.draft.tokens, found.evidence.scores, strict=True
    ):
        assert float(row[token]) == pytest.approx(score)
    hot = SamplingParams(temperature=5.0)
    one = drafter(head, target)
    drawn = {one.propose(context(target, PROMPT, hot, seed), 1).draft.tokens for seed in range(12)}
    assert len(drawn) > 3


def test_points_at_any_temperature_when_asked_for() -> None:
    head = eagle3_head()
    target = target_for(head)
    sampled = context(target, PROMPT, SAMPLED)
    found = drafter(head, target, draft_sampled=False).propose(sampled, 4)
    assert found.probs is None
    assert found.draft == drafter(head, target).propose(context(target, PROMPT), 4).draft
    tree = drafter(head, target, TREE).propose(sampled, 8)
    assert tree.probs is None


def test_e5_penalties_and_bias_are_mirrored() -> None:
    head = eagle3_head()
    target = target_for(head)
    plain = drafter(head, target).propose(context(target, PROMPT), 4).draft.tokens
    forbidden = SamplingParams(logit_bias=((plain[0], float("-inf")), (63, -1.0)))
    found = drafter(head, target).propose(context(target, PROMPT, forbidden), 4)
    assert found.draft.tokens[0] != plain[0]
    unmirrored = drafter(head, target, mirror_processors=False)
    assert unmirrored.propose(context(target, PROMPT, forbidden), 4).draft.tokens == plain


def test_b2_a_timid_draft_stops_where_it_is_unsure_and_says_so() -> None:
    head = eagle3_head()
    target = target_for(head)
    found = drafter(head, target, draft_min_p=0.999).propose(context(target, PROMPT), 4)
    assert not len(found.draft)
    assert found.evidence.message.startswith("Stopped: the best next token has probability 0.")


def test_drafting_ends_with_an_end_token_unless_it_is_ignored() -> None:
    head = eagle3_head()
    target = target_for(head)
    asked = context(target, PROMPT)
    tokens = drafter(head, target).propose(asked, 4).draft.tokens
    ended = drafter(head, target, ends=frozenset({tokens[1]}))
    cut = 1 + min(tokens.index(tokens[1]), 1)
    assert ended.propose(asked, 4).draft.tokens == tokens[:cut]
    ignoring = context(target, PROMPT, SamplingParams(ignore_eos=True))
    assert ended.propose(ignoring, 4).draft.tokens == tokens


def test_evidence_counts_passes_and_rows_read() -> None:
    head = eagle3_head()
    target = target_for(head)
    one = drafter(head, target)
    first = one.propose(context(target, PROMPT), 3)
    assert (first.evidence.caught_up, first.evidence.passes) == (8, 3)
    second = one.propose(context(target, (*PROMPT, 5, 6)), 3)
    assert (second.evidence.caught_up, second.evidence.passes) == (2, 3)


def test_a_text_of_one_token_has_no_features_and_no_draft() -> None:
    head = eagle3_head()
    target = target_for(head)
    found = drafter(head, target).propose(context(target, (3,)), 4)
    assert not len(found.draft)
    assert found.evidence.message
