"""Alarms: raised by exactly the numbers they name."""

import pytest

from specviz.events import LosslessReport, Timing
from specviz.metrics import alarms, summarise
from tests.traces.samples import ROUNDS, story


def kinds(found):
    return {alarm.kind for alarm in found}


def alarm(kind, found):
    return next(alarm for alarm in found if alarm.kind == kind)


def test_a2_nothing_found_is_no_acceptance_of_zero():
    rounds = story(*[([], 0, i) for i in range(40)])
    s = summarise(rounds)
    assert (s.hit_rate, s.acceptance_rate, s.acceptance_length) == (0.0, None, 1.0)
    found = alarms(rounds, plain_tpot=0.09)
    assert kinds(found) == {"silent", "slower"}
    assert "40 rounds" in alarm("silent", found).sentence


def test_a6_the_remainder_is_its_own_number():
    slow = Timing(draft=0.002, score=0.008, verify=0.001, commit=0.001, total=0.032)
    rounds = story(*[([1], 1, 2, {"timing": slow})] * 5)
    found = alarm("remainder", alarms(rounds))
    assert dict(found.facts)["seconds"] == pytest.approx(0.020)
    assert "20.0 ms" in found.sentence
    quick = Timing(draft=0.002, score=0.008, verify=0.001, commit=0.001, total=0.014)
    assert "remainder" not in kinds(alarms(story(*[([1], 1, 2, {"timing": quick})] * 5)))


def test_b2_a_timid_drafter_is_called_timid():
    rounds = story(*([([1], 1, 2)] * 3 + [([], 0, 3)] * 7))
    found = alarm("timid", alarms(rounds))
    assert dict(found.facts) == {"rate": 1.0, "drafted_per_round": 0.3, "rounds": 3}
    assert "timid" not in kinds(alarms(story(*[([1, 2], 2, 3)] * 10)))


def test_b4_a_dead_drafter_is_an_error_after_50_rounds():
    rounds = story(*[([1, 2, 3, 4], 0, 9)] * 49, ([1, 2, 3, 4], 1, 9))
    found = alarms(rounds)
    assert found[0].kind == "dead"
    assert found[0].severity == "error"
    assert "dead" not in kinds(alarms(rounds[1:]))
    assert "dead" not in kinds(alarms(story(*[([1], 0, 9)] * 49, ([1], 1, 9))))


def test_a1_slower_flips_exactly_below_one():
    tpot = summarise(ROUNDS).tpot
    assert "slower" not in kinds(alarms(ROUNDS, tpot))
    assert "slower" in kinds(alarms(ROUNDS, tpot * 0.999))


def test_a18_unequal_times_of_equal_passes_mean_a_busy_machine():
    def run(scores):
        return story(*(([1], 1, 2, {"timing": Timing(score=t, total=t)}) for t in scores))

    assert "busy" in kinds(alarms(run([0.02] * 16 + [0.05] * 4)))
    assert "busy" not in kinds(alarms(run([0.02] * 20)))
    assert "busy" not in kinds(alarms(run([0.02] * 15 + [0.05] * 4)))  # too few to tell


def test_a_differing_output_names_token_and_margin():
    bug = LosslessReport("BUG", 8, 3, 1, 2, plain_logit=4.5, token_logit=2.0)
    tie = LosslessReport("near-tie", 8, 3, 1, 2, plain_logit=2.001, token_logit=2.0)
    first = alarms(ROUNDS, lossless=bug)[0]
    assert (first.kind, first.severity) == ("bug", "error")
    assert "token 3" in first.sentence
    assert "2.5 logits" in first.sentence
    assert alarm("near-tie", alarms(ROUNDS, lossless=tie)).severity == "info"
    assert kinds(alarms(ROUNDS, lossless=LosslessReport("identical", 8))) == set()
