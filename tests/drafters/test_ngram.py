"""Prompt lookup equals its brute-force definition under every tie rule, whatever came before."""

import random
import warnings

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, TieRule
from specviz.drafters.base import Context, Proposal
from specviz.drafters.ngram import NgramDrafter
from specviz.verify.draws import Draws

RULES: tuple[TieRule, ...] = ("vllm", "transformers", "llama.cpp")


def context(tokens, params: SamplingParams | None = None) -> Context:
    return Context(tuple(tokens), 1, params or SamplingParams(), Draws(0))


def drafter(low: int = 1, high: int = 3, tie: TieRule = "vllm", ends=()) -> NgramDrafter:
    options = DrafterOptions(ngram_min=low, ngram_max=high, ngram_tie=tie)
    return NgramDrafter(options, frozenset(ends))


def letters(text: str) -> tuple[int, ...]:
    return tuple(map(ord, text))


def spelled(proposal: Proposal) -> str:
    return "".join(map(chr, proposal.draft.tokens))


def by_definition(tokens, low: int, high: int, tie: TieRule, budget: int) -> tuple[int, ...]:
    for n in range(high, low - 1, -1):
        tail = tokens[len(tokens) - n :]
        starts = [s for s in range(len(tokens) - n) if tokens[s : s + n] == tail]
        if n < len(tokens) and starts:
            start = starts[-1] if tie == "llama.cpp" else starts[0]
            return tokens[start + n : start + n + budget]
    return ()


def wander(rng: random.Random, alphabet: int, steps: int):
    """Texts as a drafter meets them: they grow, are rewound and branch."""
    text: tuple[int, ...] = ()
    for _ in range(steps):
        if rng.random() < 0.25:
            text = text[: rng.randint(0, len(text))]
        text += tuple(rng.randrange(alphabet) for _ in range(rng.randint(1, 6)))
        yield text


@pytest.mark.parametrize("tie", RULES)
@pytest.mark.parametrize(("low", "high"), [(1, 3), (2, 4), (1, 1), (3, 8)])
def test_equals_the_definition_on_any_text_after_any_rewind(tie, low, high):
    rng = random.Random(f"{tie}{low}{high}")
    for alphabet in (2, 3, 5):
        kept = drafter(low, high, tie)
        for text in wander(rng, alphabet, 120):
            budget = rng.randint(1, 6)
            found = kept.propose(context(text), budget)
            assert found.draft.tokens == by_definition(text, low, high, tie, budget)
            assert found == drafter(low, high, tie).propose(context(text), budget)


def test_transformers_rule_does_what_transformers_does():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.generation.candidate_generator import PromptLookupCandidateGenerator
        from transformers.generation.logits_process import (
            LogitsProcessorList,
            SuppressTokensLogitsProcessor,
        )
    rng, vocab, end, forbidden = random.Random(7), 5, 4, 3
    banned = LogitsProcessorList([SuppressTokensLogitsProcessor([forbidden])])
    params = SamplingParams(logit_bias=((forbidden, float("-inf")),))
    for bias in (False, True):
        theirs = PromptLookupCandidateGenerator(
            eos_token_id=torch.tensor([end]),
            num_output_tokens=4,
            max_matching_ngram_size=3,
            max_length=1000,
            logits_processor=banned if bias else None,
            vocab_size=vocab,
        )
        ours = drafter(1, 3, "transformers", ends=(end,))
        for text in wander(rng, vocab, 150):
            if len(text) < 2:
                continue
            whole, _ = theirs.get_candidates(torch.tensor([text]))
            expected = tuple(whole[0, len(text) :].tolist())
            asked = context(text, params if bias else None)
            assert ours.propose(asked, 4).draft.tokens == expected


def test_ties_go_to_the_occurrence_the_rule_names():
    text = letters("ab1 ab2\nab")
    assert spelled(drafter(tie="vllm").propose(context(text), 1)) == "1"
    assert spelled(drafter(tie="transformers").propose(context(text), 1)) == "1"
    assert spelled(drafter(tie="llama.cpp").propose(context(text), 1)) == "2"


def test_the_longest_match_wins_over_an_earlier_shorter_one():
    assert spelled(drafter().propose(context(letters("bX cabY ab")), 1)) == "Y"


def test_evidence_shows_the_match_and_what_was_copied():
    found = drafter().propose(context(letters("one two one ")), 3)
    assert spelled(found) == "two"
    assert found.evidence.match == (1, 4)
    assert found.evidence.source == (4, 7)
    assert found.evidence.store == "context"
    assert found.probs is None


@pytest.mark.parametrize(("tie", "copied"), [("vllm", "aaaa"), ("llama.cpp", "a")])
def test_a_match_may_overlap_the_tail_and_the_copy_ends_with_the_text(tie, copied):
    assert spelled(drafter(1, 2, tie).propose(context(letters("aaaaaa")), 9)) == copied


def test_a2_forty_different_tokens_are_never_matched_and_it_says_so():
    lookup = drafter(2, 4)
    found = [lookup.propose(context(range(n)), 5) for n in range(1, 41)]
    assert not any(len(p.draft) for p in found)
    assert "2 tokens; a match of 2 needs at least 3" in found[1].evidence.message
    assert found[-1].evidence.message == "The last 2 tokens occur nowhere earlier in the text."


def test_a3_repeating_the_prompt_is_drafted_and_new_text_is_not():
    prompt = tuple(range(50))
    lookup, new = drafter(), tuple(range(100, 150))

    def hits(answer):
        rounds = [(prompt + answer[:i], answer[i]) for i in range(1, len(answer))]
        return sum(lookup.propose(context(t), 1).draft.tokens == (a,) for t, a in rounds)

    assert hits(prompt) == 49
    assert hits(new) == 0


def test_b9_second_and_third_copy_are_drafted_index_exact_and_the_first_is_not():
    text = letters("ABCDEFGH" * 3)
    right = [
        drafter().propose(context(text[:i]), 1).draft.tokens == text[i : i + 1]
        for i in range(1, len(text))
    ]
    assert right == [False] * 8 + [True] * 15


def test_c17_every_proposed_id_stands_in_the_text():
    rng = random.Random(3)
    lookup = drafter()
    for text in wander(rng, 9, 200):
        assert set(lookup.propose(context(text), 8).draft.tokens) <= set(text)


def test_no_budget_no_draft():
    assert drafter().propose(context(letters("abab")), 0).evidence.message


def test_transformers_rule_says_when_an_end_token_left_nothing():
    found = drafter(tie="transformers", ends=(9,)).propose(context((1, 9, 2, 1)), 4)
    assert not len(found.draft)
    assert "end token" in found.evidence.message
    going_on = context((1, 9, 2, 1), SamplingParams(ignore_eos=True))
    found = drafter(tie="transformers", ends=(9,)).propose(going_on, 4)
    assert found.draft.tokens == (9, 2, 1)


def test_a_round_costs_no_scan_of_the_text():
    """Every lookup touches at most ngram_max grams per new token and per question."""
    lookup = drafter(1, 3)
    text = tuple(i % 1000 for i in range(20_000))
    lookup.propose(context(text), 4)
    index = lookup._index
    seen = []
    grams = index._grams
    index._grams = lambda tokens, end: seen.append(end) or grams(tokens, end)
    lookup.propose(context((*text, 0, 1)), 4)
    assert seen == [20_001, 20_002]
