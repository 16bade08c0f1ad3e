"""Exercise checks of notebook 12, and its five runs: each has one cause, told by its numbers."""

from typing import get_args

import pytest

from specviz.metrics import summarise
from specviz.notebook.exercises import numbers
from specviz.notebook.patients import CASES, Cause, patients

CAUSES = {letter: case.cause for letter, case in CASES.items()}


def over_all(rounds):
    return 1 + sum(len(event.path) for event in rounds) / len(rounds)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (over_all, "1.188 is what specviz calls acceptance length"),
        (lambda rounds: over_all([r for r in rounds if r.draft.tokens]) - 1, "add 1"),
        (lambda rounds: summarise(rounds).acceptance_rate, "is what specviz calls acceptance rate"),
        (lambda rounds: 7.0, "Count accepted drafts"),
    ],
)
def test_another_convention_is_called_by_its_name(answer, reason):
    verdict = numbers.mean_length(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_the_right_convention_passes():
    assert numbers.mean_length(lambda rounds: over_all([r for r in rounds if r.draft.tokens]))


@pytest.mark.slow
@pytest.mark.parametrize("letter", CASES)
def test_only_the_true_cause_fits_a_patient(letter):
    trace = patients()[letter]
    fitting = [c for c in get_args(Cause) if not numbers.contradiction(trace, c)]
    assert fitting == [CAUSES[letter]]


@pytest.mark.slow
def test_a_diagnosis_is_open_wrong_or_right():
    assert numbers.diagnosis({**CAUSES, "B": ...}).state == "open"
    assert numbers.diagnosis(CAUSES)
    swapped = numbers.diagnosis({**CAUSES, "A": "healthy"})
    assert swapped.state == "wrong"
    assert "Patient A: its text differs from plain decoding" in swapped.reason
    assert "is none of" in numbers.diagnosis({**CAUSES, "A": "bad luck"}).reason
