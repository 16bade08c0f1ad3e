"""The speed panel: numbers that are known, and plain words where one is not."""

import json
from dataclasses import replace

import pytest

from specviz.views.charts import lengths_chart, time_chart
from specviz.views.speed import speed_view
from tests.views.stories import Story


def trace(rounds=4):
    story = Story("x")
    for _ in range(rounds):
        story.add([" a", " b"], 2, " c")
    return story.trace()


def test_the_formula_is_filled_in_with_measured_numbers():
    shown = speed_view(trace(5), 5, 0.020, live=False)
    assert shown.formula == (
        "Speedup = E[L] · T_target / (T_draft + T_verify)",
        "= 3.00 · 20.00 ms / (1.00 ms + 22.00 ms) = 2.61x",
        "The remainder, 2.00 ms per round (8% of it), is not in the formula.",
    )
    assert (shown.predicted, shown.measured) == ("2.61x", "2.40x")
    assert shown.reading == "3.00 tokens per round made it 2.40x as fast as plain decoding."


def test_without_a_measured_plain_time_no_speedup_is_claimed():
    shown = speed_view(trace(), 4, None, live=True)
    assert (shown.predicted, shown.measured) == ("", "")
    assert "not measured" in shown.formula[1]
    assert ("T_target", "unknown", "not measured") in shown.rows
    assert "not measured" in shown.reading


def test_a_loss_is_called_a_loss_and_raises_the_alarm():
    shown = speed_view(trace(5), 5, 0.004, live=True)
    assert "did not pay" in shown.reading
    assert any("Slower than plain decoding" in text for text in shown.warnings)


def test_fewer_than_five_rounds_are_too_few_to_tell():
    few = speed_view(trace(), 4, 0.020, live=True)
    assert (few.measured, few.unsure) == ("2.40x", "too few rounds to tell")
    assert few.formula[-1] == "Measured over 4 rounds: 2.40x, too few rounds to tell."
    assert few.reading.endswith("too few rounds to tell.")
    assert speed_view(trace(5), 5, 0.020, live=True).unsure == ""
    assert speed_view(trace(), 4, None, live=True).unsure == ""


def test_recording_that_costs_more_than_3_percent_is_said_with_the_time_without_it():
    def shown(record):
        run = trace(5)
        rounds = [replace(r, timing=replace(r.timing, record=record)) for r in run.rounds]
        return speed_view(replace(run, rounds=tuple(rounds)), 5, 0.020, live=True).formula

    assert shown(0.001)[-1] == (
        "Recording details took 1.00 ms per round (4% of it); without, 8.00 ms per token."
    )
    assert not any("Recording" in line for line in shown(0.0005))


def test_the_label_says_live_or_recorded_device_and_dtype():
    recorded = speed_view(trace(), 4, None, live=False).label
    assert recorded == "recorded on 2026-11-30 · batch 1 · float32 · a test (cpu)"
    assert speed_view(trace(), 4, None, live=True).label.startswith("live · batch 1")


def test_only_rounds_up_to_the_cursor_count():
    assert speed_view(trace(), 1, None, live=True).lengths == (3,)
    empty = speed_view(trace(), 0, 0.02, live=True)
    assert empty.formula[-1] == "No round has run yet."
    assert empty.lengths == ()


def test_the_time_chart_stacks_all_of_a_round():
    shown = speed_view(trace(), 4, None, live=True)
    spec = json.loads(time_chart(shown.parts, shown.labels).to_json())
    assert sum(bar["x"][0] for bar in spec["data"]) == pytest.approx(25)
    assert [bar["name"] for bar in spec["data"]] == [
        "draft",
        "score",
        "verify",
        "commit",
        "remainder",
    ]
    assert spec["layout"]["xaxis"]["title"]["text"] == "ms per round"


def test_the_chart_of_lengths_has_one_bar_per_round_and_the_mean():
    spec = json.loads(lengths_chart([3, 1, 5], 3.0).to_json())
    assert list(spec["data"][0]["x"]) == [1, 2, 3]
    assert list(spec["data"][0]["y"]) == [3, 1, 5]
    later = json.loads(lengths_chart([3, 1], 2.0, first=10).to_json())
    assert list(later["data"][0]["x"]) == [11, 12]
    assert spec["layout"]["annotations"][0]["text"] == "E[L] = 3.00"
