"""Verdicts: what they may and may not claim."""

import itertools

import pytest

from specviz.cost.verdict import Measured, judge, rank


def run(speedup=2.0, low=1.8, high=2.2, **more):
    values = {
        "scheme": "dflash",
        "title": "DFlash",
        "draft_length": 7,
        "speedup": speedup,
        "low": low,
        "high": high,
        "prompts": 9,
        "acceptance_length": 3.1,
        "plain_round": 0.01,
        "draft": 0.003,
        "verify": 0.012,
        "other": 0.0005,
    }
    return Measured(**values | more)


def test_a_win_says_by_how_much_with_its_interval_and_why():
    verdict = judge(run())
    assert verdict.outcome == "wins"
    assert verdict.sentence == (
        "DFlash with D = 7 wins: 2.00x plain decoding (1.80-2.20 over 9 prompts)."
    )
    assert verdict.why == (
        "A round commits 3.10 tokens and costs 1.55 plain rounds: verify 1.20, draft 0.30, "
        "remainder 0.05."
    )
    assert verdict.change == ""


@pytest.mark.parametrize(
    ("speedup", "low", "high"),
    [(1.3, 0.98, 1.5), (0.9, 0.7, 1.01), (1.015, 1.01, 1.02), (0.985, 0.98, 0.99), (1, 1, 1)],
)
def test_a_difference_inside_the_noise_is_never_a_win_or_a_loss(speedup, low, high):
    verdict = judge(run(speedup, low, high))
    assert verdict.outcome == "even"
    assert "wins" not in verdict.text
    assert "loses" not in verdict.text


def test_no_combination_claims_a_win_whose_interval_holds_one():
    numbers = [0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 2.0]
    for low, speedup, high in itertools.combinations_with_replacement(numbers, 3):
        for busy, prompts in itertools.product((False, True), (1, 2, 3, 50)):
            one = run(speedup, low, high, busy=busy, prompts=prompts)
            verdict = judge(one)
            if low <= 1 <= high or busy or prompts < 3:
                assert verdict.outcome in ("even", "unsure")
                assert rank([one]).outcome in ("even", "unsure")


def test_a_busy_machine_and_too_few_prompts_give_no_verdict():
    assert judge(run(busy=True)).outcome == "unsure"
    assert "busy" in judge(run(busy=True)).sentence
    assert judge(run(prompts=2)).change == "Measure at least 3 prompts."


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({"acceptance_length": 1.05}, "Almost no draft is accepted"),
        ({"draft": 0.02}, "Drafting costs most"),
        ({"verify": 0.03}, "Verifying costs most"),
        ({"other": 0.03}, "The remainder costs most"),
        ({"same_text": False}, "Its text differs"),
    ],
)
def test_a_loss_says_what_to_change(more, advice):
    verdict = judge(run(0.7, 0.6, 0.8, **more))
    assert verdict.outcome == "loses"
    assert verdict.change.startswith(advice)


def test_a_winner_among_several_must_be_clear_of_the_second():
    best, second = run(2.0, 1.9, 2.1, title="DSpark"), run(1.5, 1.4, 1.6)
    assert rank([second, best]).sentence.startswith("DSpark with D = 7 wins")
    near = run(1.95, 1.85, 2.05)
    verdict = rank([near, best])
    assert "DFlash may be as fast" in verdict.sentence
    assert verdict.change == "Measure more prompts to tell them apart."


def test_none_of_them_is_an_answer():
    verdict = rank([run(0.8, 0.7, 0.9), run(0.99, 0.9, 1.1)])
    assert verdict.sentence.startswith("None of them")
    assert rank([]).outcome == "unsure"


def test_one_doubtful_measurement_makes_the_comparison_doubtful():
    assert rank([run(), run(1.5, 1.4, 1.6, busy=True)]).outcome == "unsure"
