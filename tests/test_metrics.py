"""Metrics: exact values on rounds written by hand, and identities on random ones."""

import random

import pytest

from specviz.events import Draft, Timing
from specviz.metrics import (
    Clock,
    alarms,
    by_budget,
    definitions,
    predicted_speedup,
    prompt_overlap,
    segments,
    shifted_acceptance,
    speedup,
    speedups,
    summarise,
)
from tests.traces.samples import OUTPUT, PROMPT, ROUNDS, chain_round, story


def random_story(seed, uncut=True):
    rng = random.Random(seed)
    rounds = []
    for _ in range(rng.randrange(1, 30)):
        drafted = [rng.randrange(9) for _ in range(rng.randrange(6))]
        accepted = rng.randint(0, len(drafted))
        rounds.append((drafted, accepted, 1))
    if not uncut:
        past = {"past": 2, "path": (0, 1), "past_end": (2, 3)}
        rounds.append(([1, 2, 3, 4, 5], 2, None, past))
    return story(*rounds)


def test_a_run_by_hand():
    s = summarise(ROUNDS)
    assert (s.rounds, s.asked, s.proposing, s.cut) == (4, 4, 3, 0)
    assert (s.drafted, s.accepted, s.output_tokens) == (7, 4, len(OUTPUT))
    assert (s.rejected, s.unchecked, s.past_end) == (2, 1, 0)
    assert s.acceptance_length == 2.0
    assert s.acceptance_rate == 4 / 7
    assert s.mean_drafted == 7 / 4
    assert s.hit_rate == 3 / 4
    assert s.per_position == (2 / 4, 2 / 4, 0.0)
    assert s.per_position_proposed == (2 / 3, 2 / 3, 0.0)
    assert s.conditional == (2 / 4, 1.0, 0.0)
    assert s.histogram == (2, 0, 2, 0)
    assert s.draft_histogram == (1, 0, 2, 1)
    assert s.tpot == pytest.approx(0.38 / 8)
    assert s.mean_timing.score == pytest.approx(0.04)
    assert s.other_share == pytest.approx(0.015 / 0.095)


def test_h2_one_round_has_every_number():
    s = summarise(story(([1, 2], 1, 3)))
    assert (s.acceptance_length, s.acceptance_rate, s.histogram) == (2.0, 0.5, (0, 1, 0))
    assert s.tpot == pytest.approx(0.0475)


def test_no_rounds_divide_by_nothing():
    s = summarise(())
    assert s.acceptance_length is s.acceptance_rate is s.hit_rate is s.tpot is None
    assert s.per_position == s.conditional == ()
    assert s.histogram == (0,)
    assert alarms(()) == () == segments(())
    assert predicted_speedup(s, 0.1) is None
    assert all(d.value in (None, ()) for d in definitions(()))


def test_plain_and_forced_rounds_never_count_as_misses():
    plain = story(*[([], 0, 1, {"scheme": "none"})] * 9)
    forced = story(*[([], 0, 1, {"last_kind": "forced"})] * 9)
    for rounds in (plain, forced):
        assert summarise(rounds).hit_rate is None
        assert summarise(rounds).acceptance_length == 1.0
        assert alarms(rounds) == ()


@pytest.mark.parametrize("seed", range(40))
def test_h4_h7_identities(seed):
    s = summarise(random_story(seed))
    assert s.output_tokens == s.accepted + s.rounds
    assert s.acceptance_length == pytest.approx(1 + sum(s.per_position))
    assert all(a >= b for a, b in zip(s.per_position, s.per_position[1:], strict=False))
    assert s.drafted == s.accepted + s.rejected + s.unchecked + s.past_end
    assert sum(s.histogram) == sum(s.draft_histogram) == s.rounds
    assert sum(i * n for i, n in enumerate(s.histogram)) == s.accepted
    assert s.empty_rounds == s.draft_histogram[0]
    assert s.rejected_rounds + s.empty_rounds == s.histogram[0]


def test_h7_81_accepted_and_30_rounds_emit_111():
    rounds = story(*[([1, 2, 3], 3, 4)] * 27, *[([5], 0, 6)] * 3)
    s = summarise(rounds)
    assert (s.accepted, s.rounds, s.output_tokens) == (81, 30, 111)


@pytest.mark.parametrize("seed", range(10))
def test_g3_a_cut_round_counts_only_what_was_returned(seed):
    whole, cut = (summarise(random_story(seed, uncut)) for uncut in (True, False))
    assert (cut.cut, cut.past_end) == (1, 2)
    assert cut.output_tokens == whole.output_tokens + 2
    assert cut.output_tokens == cut.accepted + cut.rounds - cut.cut
    assert cut.drafted == cut.accepted + cut.rejected + cut.unchecked + cut.past_end


def test_trees_count_nodes_drafted_and_path_tokens_accepted():
    tree = Draft((1, 2, 3, 4, 5), (-1, -1, 0, 1, 3))  # two branches, three deep
    r = chain_round([], 0, 9, draft=tree, path=(1, 3), last_kind="recovered")
    s = summarise([r])
    assert (s.drafted, s.accepted, s.acceptance_length) == (5, 2, 3.0)
    assert s.per_position == (1.0, 1.0, 0.0)


def test_a2_outputs_of_unequal_length_are_compared_per_token_only():
    unequal = speedups(Clock(1000, 14.3, 1.0), Clock(947, 15.3, 1.0))
    assert unequal.with_prefill is None
    assert unequal.decode_only == pytest.approx(14.3 / 1000 / (15.3 / 947))


def test_a3_overlap_tells_a_copy_from_free_text():
    answer = list(range(100, 130))
    copy, free = [1, 2, *answer, 3], [1, 2, 3, 4]
    assert prompt_overlap(copy, answer) == 1.0
    assert prompt_overlap(free, answer) == 0.0
    assert prompt_overlap(free, answer + answer) == pytest.approx(28 / 58)
    assert prompt_overlap(free, answer[:2]) is None


def test_a3_the_window_may_begin_in_the_prompt_of_what_stood_there():
    # "3 1 2" begins in the prompt and ends in the output; it is context for what follows
    assert prompt_overlap([3], [1, 2, 3, 1, 2]) == pytest.approx(1 / 3)


def test_a5_each_stretch_of_one_draft_length_has_its_own_means():
    budgets = [4, 4, 4, 0, 0, 4]
    rounds = story(
        *(
            ([1, 2] if d else [], 2 if d else 0, 5, {"budget": d, "timing": Timing(total=d + 1.0)})
            for d in budgets
        )
    )
    parts = segments(rounds)
    assert [(p.start, p.stop, p.budget) for p in parts] == [(0, 3, 4), (3, 5, 0), (5, 6, 4)]
    assert [p.round_seconds for p in parts] == [5.0, 1.0, 5.0]
    assert [p.acceptance_length for p in parts] == [3.0, 1.0, 3.0]
    assert {d: s.rounds for d, s in by_budget(rounds).items()} == {0: 2, 4: 4}


def test_a7_longer_drafts_lower_the_rate_and_keep_the_length():
    short = summarise(story(*[([1, 2, 3, 4], 3, 9)] * 10))
    long = summarise(story(*[([*range(16)], 3, 9, {"budget": 16})] * 10))
    assert long.acceptance_rate < short.acceptance_rate
    assert long.acceptance_length >= short.acceptance_length


def test_a11_empty_rounds_are_not_rejected_rounds():
    rounds = story(*[([], 0, 1)] * 8, *[([2], 0, 1)] * 2)
    s = summarise(rounds)
    assert (s.empty_rounds, s.rejected_rounds) == (8, 2)
    assert s.draft_histogram == (8, 2)
    only_empty = summarise(rounds[:8])
    assert (only_empty.acceptance_length, only_empty.acceptance_rate) == (1.0, None)


def test_a13_the_two_denominators_differ():
    both = speedups(Clock(59, 108.5, 46.7), Clock(59, 7.97, 33.73))
    assert both.decode_only == pytest.approx(13.6, abs=0.1)
    assert both.with_prefill == pytest.approx(3.7, abs=0.05)


def test_a16_a_shifted_draft_is_hardly_ever_right():
    text = [(7 * i) % 101 for i in range(100)]
    rounds = story(*((text[i + 3 : i + 6], 3, text[i + 6]) for i in range(0, 90, 4)))
    assert shifted_acceptance(rounds, text, shift=0) == 1.0
    assert shifted_acceptance(rounds, text, shift=1) < 0.1
    assert shifted_acceptance(rounds, text, shift=-1) < 0.1
    assert shifted_acceptance(story(([], 0, 1)), text) is None


def test_a16_unshifted_drafts_give_the_true_rate():
    text = (*PROMPT, *OUTPUT)
    assert shifted_acceptance(ROUNDS, text, shift=0) == summarise(ROUNDS).acceptance_rate


def test_predicted_speedup_is_the_formula_of_the_speed_panel():
    s = summarise(ROUNDS)  # 2 tokens a round; 10 + 40 + 20 + 10 ms without the remainder
    assert predicted_speedup(s, 0.04) == pytest.approx(2 * 0.04 / 0.08)
    assert predicted_speedup(s, None) is None
    assert speedup(0.1, 0.05) == pytest.approx(2.0)
    assert speedup(None, 0.05) is speedup(0.1, None) is None


def test_h3_every_peers_definition_on_one_trace():
    found = {(d.peer, d.name): d.value for d in definitions(ROUNDS)}
    assert found == {
        ("specviz", "acceptance length"): 2.0,
        ("specviz", "acceptance rate"): 4 / 7,
        ("EAGLE UI", "compression ratio"): 2.0,
        ("EAGLE#195", "accept rate"): 2.0,
        ("NeMo", "acceptance length"): 2.0,
        ("vLLM", "Mean acceptance length"): 1 + 4 / 3,
        ("vLLM", "Avg Draft acceptance rate"): 4 / 7,
        ("vLLM", "Per-position acceptance rate"): (2 / 3, 2 / 3, 0.0),
        ("SGLang", "spec_accept_rate"): 4 / 16,
        ("Spec-Bench", "#mean accepted tokens"): 2.0,
        ("DeepSpec", "verify_rate"): 8 / 11,
        ("DeepSpec", "accept_rate@i"): (2 / 3, 2 / 3, 0.0),
        ("DSpark", "conditional acceptance"): (0.5, 1.0, 0.0),
        ("llama.cpp", "acc per pos"): (0.5, 0.5, 0.0),
        ("LM Studio", "accepted / predicted"): 0.5,
    }


def test_h12_a_draft_length_per_round_is_kept():
    proposed = [7, 4, 0, 7, 2, 1, 0, 0]
    s = summarise(story(*(([*range(n)], 0, 9, {"budget": 7}) for n in proposed)))
    assert s.draft_histogram == (3, 1, 1, 0, 1, 0, 0, 2)
    assert s.mean_drafted == sum(proposed) / 8
    assert s.hit_rate == 5 / 8
