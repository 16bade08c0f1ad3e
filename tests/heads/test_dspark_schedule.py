"""How many drafts are verified: worth it, and never by what a later slot says."""

import json

import pytest

from specviz.errors import ConfigError
from specviz.heads.dspark_schedule import (
    Admission,
    Confidence,
    StepTable,
    admit_up_to,
    read_temperatures,
    schedule,
)


def flat(rows: int) -> float:
    return 10.0


def test_free_rows_admit_every_draft_and_dear_ones_none() -> None:
    survival = [(0.9, 0.5, 0.1), (0.2, 0.1, 0.1)]
    assert schedule(survival, flat) == (3, 3)
    assert schedule(survival, lambda rows: 1 / rows**2) == (0, 0)


def test_the_likeliest_drafts_of_all_requests_are_admitted_first() -> None:
    table = StepTable((1, 5), (10.0, 1.0))  # from the fifth row on, ten times slower
    assert schedule([(0.9, 0.8, 0.7), (0.5, 0.4, 0.3)], table) == (2, 0)
    assert admit_up_to([(0.9, 0.3), (0.8, 0.7)], 3) == (1, 2)
    assert admit_up_to([(0.9, 0.3), (0.8, 0.7)], 0) == (0, 0)


def test_a_cliff_ends_admission_even_if_rows_beyond_it_would_pay() -> None:
    cliff = StepTable((1, 2, 3), (10.0, 4.0, 9.9))
    assert schedule([(1.0, 1.0, 1.0)], cliff) == (0,)


@pytest.mark.parametrize("confidences", [(0.9, 0.8, 0.7), (0.99, 0.2, 0.9), (0.3,), (1.0, 1.0)])
def test_deciding_slot_by_slot_equals_the_schedule_of_one_request(
    confidences: tuple[float, ...],
) -> None:
    speed = StepTable((1, 2, 3, 4), (10.0, 6.0, 5.0, 4.0))
    admission, taken = Admission(Confidence(speed=speed)), 0
    while taken < len(confidences) and admission.admits(confidences[taken]):
        taken += 1
    survival, product = [], 1.0
    for confidence in confidences:
        product *= confidence
        survival.append(product)
    assert (taken,) == schedule([survival], speed)


def test_a_threshold_stops_before_the_first_slot_less_sure() -> None:
    admission = Admission(Confidence(threshold=0.5))
    assert [admission.admits(c) for c in (0.9, 0.5, 0.49)] == [True, True, False]


def test_files_of_engines_are_read() -> None:
    table = StepTable.from_json(
        json.dumps({"sample_batch_tokens": [1, 8], "sample_steps_per_sec": [40, 30.5]})
    )
    assert [table(rows) for rows in (1, 7, 8, 100)] == [40, 40, 30.5, 30.5]
    assert read_temperatures('{"temperatures": [1.0, 1.5], "ece_before": 0.1}') == (1.0, 1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "a JSON list; an object is needed"),
        ("{}", "sample_batch_tokens is None; a list of numbers"),
        ('{"sample_batch_tokens": [2, 1], "sample_steps_per_sec": [1, 1]}', "ascending"),
        ('{"sample_batch_tokens": [1], "sample_steps_per_sec": [0]}', "above 0"),
    ],
)
def test_a_damaged_step_table_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        StepTable.from_json(text)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"threshold is 1\.5; allowed: 0 to 1"):
        Confidence(threshold=1.5)
    with pytest.raises(ConfigError, match="temperatures"):
        Confidence(temperatures=(1.0, 0.0))
