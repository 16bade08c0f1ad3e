"""The draft model drafter: its memo, its distribution, its limits."""

from collections import Counter

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams
from specviz.drafters.base import Context, Proposal
from specviz.drafters.draft_model import SHORT, DraftModelDrafter
from specviz.errors import NumericsError
from specviz.events import EMPTY
from specviz.models.tiny import tiny_llama
from specviz.verify.draws import Draws
from tests.stubs import TableTarget, copier, fixed, random_table

PROMPT = (1, 2, 3, 4)
SAMPLED = SamplingParams(temperature=1.0)


def context(tokens, params: SamplingParams | None = None, seed: int = 0, prompt: int = 2):
    return Context(tuple(tokens), prompt, params or SamplingParams(), Draws(seed))


def drafter(model, vocab: int | None = None, ends=(), **options) -> DraftModelDrafter:
    return DraftModelDrafter(
        model, vocab or model.config.vocab, DrafterOptions(**options), frozenset(ends)
    )


def greedy(model, tokens, steps: int) -> tuple[int, ...]:
    for _ in range(steps):
        tokens = (*tokens, int(model.logits(tokens).argmax()))
    return tokens[-steps:]


def q_row(model, tokens, temperature: float = 1.0):
    return (model.logits(tokens) / temperature).softmax(-1)


def test_b1_greedy_drafts_are_the_models_own_continuation():
    model = random_table()
    found = drafter(model).propose(context(PROMPT), 5)
    assert found.draft.tokens == greedy(model, PROMPT, 5)
    assert found.draft.is_chain
    assert found.probs is None
    row = q_row(model, PROMPT)
    assert found.evidence.scores[0] == pytest.approx(float(row.max()))
    assert found.evidence.passes == 6  # the prompt but its last token, then one per draft


def test_b1_a_real_model_continues_as_it_does_alone():
    model = tiny_llama(seed=4)
    found = drafter(model.fork(0)).propose(context(PROMPT), 6)
    alone, tokens = model.fork(0), list(PROMPT)
    alone.prefill(tokens[:-1])
    for _ in range(6):
        tokens.append(int(alone.score(tokens[-1], EMPTY)[0].argmax()))
        alone.commit(())
    assert found.draft.tokens == tuple(tokens[-6:])


def test_h10_after_an_accepted_round_the_catch_up_reads_one_token_more():
    model = random_table()
    model_drafter = drafter(model)
    first = model_drafter.propose(context(PROMPT), 3)
    assert first.evidence.caught_up == 3
    all_accepted = (*PROMPT, *first.draft.tokens, 0)
    rows = []
    score = model.score
    model.score = lambda root, draft: rows.append(1 + len(draft)) or score(root, draft)
    second = model_drafter.propose(context(all_accepted), 3)
    assert second.evidence.caught_up == 1
    assert rows == [2, 1, 1]
    one_accepted = (*all_accepted, second.draft.tokens[0], (second.draft.tokens[1] + 1) % 7)
    third = model_drafter.propose(context(one_accepted), 3)
    assert third.evidence.caught_up == 0
    assert rows[3:] == [1, 1, 1]


@pytest.mark.parametrize("params", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
def test_a_memo_drafts_like_a_fresh_model_whatever_text_came_before(params):
    kept = drafter(random_table(scale=2.0))
    rng = torch.Generator().manual_seed(1)
    text = PROMPT
    for step in range(60):
        cut = int(torch.randint(2, len(text) + 1, (), generator=rng))
        text = text[:cut] if step % 4 == 0 else text
        found = kept.propose(context(text, params), 4)
        fresh = drafter(random_table(scale=2.0)).propose(context(text, params), 4)
        assert found.draft == fresh.draft
        assert (found.probs is None) == (fresh.probs is None)
        if found.probs is not None:
            assert torch.equal(found.probs, fresh.probs)
        take = int(torch.randint(0, 5, (), generator=rng))
        extra = int(torch.randint(0, 7, (), generator=rng))
        text = (*text, *found.draft.tokens[:take], extra)


def test_a_rewound_run_repeats_the_passes_shape_by_shape():
    """Rows of other counts round differently, so not even the shape of a pass may change."""
    model = tiny_llama(seed=4, dtype=torch.bfloat16)
    kept, texts, seen = drafter(model), [PROMPT], []
    for i in range(8):
        found = kept.propose(context(texts[-1], SAMPLED, prompt=4), 3)
        seen.append(found)
        texts.append((*texts[-1], *found.draft.tokens[: i % 4], i))
    for i in (4, 5, 2, 3, 4, 5, 6, 7):
        again = kept.propose(context(texts[i], SAMPLED, prompt=4), 3)
        assert again.draft == seen[i].draft
        assert torch.equal(again.probs, seen[i].probs)
        assert again.evidence == seen[i].evidence


@pytest.mark.parametrize("gap", [1, SHORT, SHORT + 1, 100])
def test_catching_up_gives_the_same_drafts_however_long_it_is(gap):
    model = tiny_llama(seed=4)
    kept = drafter(model)
    text = tuple(i * 7 % 64 for i in range(10 + gap))
    kept.propose(context(text[:10]), 1)
    found = kept.propose(context(text), 3)
    assert found.evidence.caught_up == gap - 1
    assert found.draft == drafter(tiny_llama(seed=4)).propose(context(text), 3).draft


def test_sampled_drafts_follow_q_and_say_what_q_was():
    probs = (0.5, 0.3, 0.15, 0.05)
    counts: Counter[int] = Counter()
    model_drafter = drafter(fixed(probs))
    for seed in range(2000):
        found = model_drafter.propose(context((0, 1), SAMPLED, seed), 1)
        counts.update(found.draft.tokens)
        assert found.evidence.scores == (pytest.approx(probs[found.draft.tokens[0]]),)
    assert found.probs.shape == (1, 4)
    assert torch.allclose(found.probs[0], torch.tensor(probs))
    chi2 = sum((counts[i] - 2000 * p) ** 2 / (2000 * p) for i, p in enumerate(probs))
    assert chi2 < 16.3  # 3 degrees of freedom, p = 0.001


def test_drafts_are_drawn_at_the_temperature_of_the_request():
    model = random_table()
    found = drafter(model).propose(context(PROMPT, SamplingParams(temperature=0.5)), 2)
    assert torch.allclose(found.probs[0], q_row(model, PROMPT, 0.5))
    assert torch.allclose(found.probs[1], q_row(model, (*PROMPT, found.draft.tokens[0]), 0.5))


def test_draws_depend_on_the_position_not_on_the_draft_length():
    model_drafter = drafter(random_table())
    long = model_drafter.propose(context(PROMPT, SAMPLED), 5)
    short = model_drafter.propose(context(PROMPT, SAMPLED), 2)
    assert long.draft.tokens[:2] == short.draft.tokens


def test_drafts_can_be_points_at_any_temperature():
    model = random_table()
    found = drafter(model, draft_sampled=False).propose(context(PROMPT, SAMPLED), 3)
    assert found.draft.tokens == greedy(model, PROMPT, 3)
    assert found.probs is None


def test_e5_mirrored_penalties_break_the_loop_the_draft_would_repeat():
    params = SamplingParams(frequency_penalty=20.0)
    text = (5, 1, 2, 1, 2)
    plain = drafter(copier(6, 2), mirror_processors=False).propose(
        context(text, params, prompt=1), 4
    )
    assert plain.draft.tokens == (1, 2, 1, 2)
    mirrored = drafter(copier(6, 2)).propose(context(text, params, prompt=1), 4)
    assert not {1, 2} & set(mirrored.draft.tokens)
    assert len(set(mirrored.draft.tokens[:3])) == 3  # drafted tokens count, too


def test_top_k_is_mirrored_only_where_asked_for():
    params = SamplingParams(temperature=1.0, top_k=2)
    mirrored = drafter(random_table()).propose(context(PROMPT, params), 1)
    assert int((mirrored.probs > 0).sum()) == 2
    plain = drafter(random_table(), mirror_processors=False).propose(context(PROMPT, params), 1)
    assert int((plain.probs > 0).sum()) == 7


def test_b2_a_timid_draft_stops_where_it_is_unsure_and_says_so():
    sure, unsure = torch.tensor([0.0, 9.0, 0.0]), torch.tensor([0.0, 0.4, 0.0])
    model = TableTarget(3, lambda tokens: sure if len(tokens) < 6 else unsure)
    for params in (SamplingParams(), SAMPLED):
        found = drafter(model, draft_min_p=0.95).propose(context(PROMPT, params), 5)
        assert found.draft.tokens == (1, 1)
        assert found.evidence.message == (
            "Stopped: the best next token has probability 0.43, below 0.95."
        )
    nothing = drafter(model, draft_min_p=0.95).propose(context((1,) * 6, SAMPLED), 5)
    assert not len(nothing.draft)
    assert nothing.probs is None


def test_b2_whether_a_token_is_drafted_never_depends_on_its_own_draw():
    model_drafter = drafter(fixed((0.6, 0.3, 0.1)), draft_min_p=0.5)
    drawn = {
        model_drafter.propose(context((0, 1), SAMPLED, seed), 1).draft.tokens for seed in range(60)
    }
    assert drawn == {(0,), (1,), (2,)}  # the improbable ones are drafted all the same


def test_drafting_ends_with_an_end_token_unless_it_is_ignored():
    model = copier(5, 2)
    text = (3, 4)
    assert drafter(model, ends=(4,)).propose(context(text), 6).draft.tokens == (3, 4)
    ignoring = context(text, SamplingParams(ignore_eos=True))
    assert drafter(model, ends=(4,)).propose(ignoring, 4).draft.tokens == (3, 4, 3, 4)
    stopping = context(text, SamplingParams(stop_ids=(3,)))
    assert drafter(model).propose(stopping, 4).draft.tokens == (3,)


@pytest.mark.parametrize(("target_vocab", "draft_vocab"), [(8, 6), (6, 8), (7, 7)])
@pytest.mark.parametrize("sampled", [False, True])
def test_d3_padded_vocabularies_draft_only_ids_both_have(target_vocab, draft_vocab, sampled):
    rising = torch.arange(draft_vocab, dtype=torch.float32)  # likes its last ids best
    model = TableTarget(draft_vocab, lambda tokens: rising)
    params = SAMPLED if sampled else SamplingParams()
    bias = SamplingParams(temperature=params.temperature, logit_bias=((target_vocab - 1, -1.0),))
    for asked in (params, bias):
        found = drafter(model, target_vocab).propose(context((0, 1), asked), 4)
        assert len(found.draft) == 4
        assert max(found.draft.tokens) < min(target_vocab, draft_vocab)
        if sampled:
            assert found.probs.shape == (4, target_vocab)
            assert torch.allclose(found.probs.sum(-1), torch.ones(4))
            assert not found.probs[:, draft_vocab:].any()


def test_d3_a_text_with_an_id_the_draft_lacks_is_not_read():
    found = drafter(random_table(vocab=7), 9).propose(context((1, 8, 2)), 4)
    assert not len(found.draft)
    assert found.evidence.message == "The text holds token 8, which the draft model does not have."


def test_d7_a_shorter_draft_context_ends_drafting_and_never_crashes():
    model = tiny_llama(seed=4, context=32)
    kept, lengths = drafter(model), {}
    for n in range(28, 36):
        found: Proposal = kept.propose(context(range(n)), 4)
        lengths[n] = len(found.draft)
    assert lengths == {28: 4, 29: 4, 30: 3, 31: 2, 32: 1, 33: 0, 34: 0, 35: 0}
    assert found.evidence.message == "The text has 35 tokens; the draft model reads at most 32."


@pytest.mark.parametrize("params", [SamplingParams(), SAMPLED], ids=["greedy", "sampled"])
def test_b3_nan_of_the_draft_model_names_the_model_and_the_position(params):
    row = torch.tensor([0.0, float("nan"), 1.0])
    with pytest.raises(
        NumericsError, match="draft model table gave NaN or Inf for text position 4"
    ):
        drafter(TableTarget(3, lambda tokens: row)).propose(context((0, 1, 2, 0), params), 2)


def test_a_failed_pass_leaves_a_memo_that_still_tells_the_truth():
    model = random_table()
    kept, score = drafter(model), model.score
    kept.propose(context(PROMPT), 3)

    def fail(root, draft):
        raise MemoryError

    model.score = fail
    with pytest.raises(MemoryError):
        kept.propose(context((*PROMPT, 0)), 3)
    model.score = score
    found = kept.propose(context((*PROMPT, 0)), 3)
    assert found.draft.tokens == greedy(model, (*PROMPT, 0), 3)


def test_no_budget_no_pass():
    model = random_table()
    assert drafter(model).propose(context(PROMPT), 0).evidence.message
    assert model.scores == 0
