"""`speculation_profile.json`: what is written is what other tools read, and ours reads theirs."""

import json

import pytest

from specviz import recordings
from specviz.cost.acceptance import from_file, of_rounds
from specviz.errors import ConfigError
from specviz.metrics.summary import summarise
from specviz.traces.imports import read
from specviz.traces.profile import Acceptance, of_trace, profile
from specviz.traces.store import load

# As specdec_bench of NVIDIA Model-Optimizer writes it: lengths 1, 2 and 4 seen, never 3.
THEIRS = {
    "schema_version": "1.0",
    "measured": True,
    "method": "dflash",
    "draft_checkpoint": {"id": "nvidia/Some-DFlash"},
    "target_model": "org/target",
    "num_speculative_tokens": 3,
    "conditional_accept_rates": [0.6, 0.5, 1.0],
    "marginal_accept_rates": [0.6, 0.3, 0.3],
    "mean_accept_length": 2.2,
    "mean_accept_length_per_request": 2.3,
    "accept_length_model": "measured_per_k",
    "accept_length_by_k": {"3": 2.2},
    "acceptance_length_histogram": {"1": 40, "2": 30, "4": 30},
}


@pytest.mark.parametrize("name", ["ngram-copy", "eagle3-chat", "eagle3-tree", "dspark-chat"])
def test_a_profile_of_a_run_says_what_the_run_says(name: str) -> None:
    trace = load(recordings.path(name))
    summary, found = summarise(trace.rounds), json.loads(of_trace(trace))
    length = trace.config.draft_length
    assert len(found["marginal_accept_rates"]) == len(found["conditional_accept_rates"]) == length
    assert found["marginal_accept_rates"][0] == pytest.approx(summary.per_position[0], abs=1e-6)
    assert found["mean_accept_length"] == pytest.approx(summary.acceptance_length, abs=1e-6)
    most = 1 / len(trace.rounds)  # where the output ends, the last round is cut
    assert found["validation"]["mean_consistency"]["abs_delta"] <= most + 1e-6
    assert found["validation"]["marginal_monotonicity"] == {"passed": True, "violations": []}
    assert sum(found["acceptance_length_histogram"].values()) == len(trace.rounds)
    known = name in ("ngram-copy", "eagle3-chat")  # the others plan anew for another D
    assert (found["accept_length_model"] == "chain_analytic") is known
    scheme, rates = from_file(json.dumps(found), "p.json")
    expected = of_rounds(trace.rounds, "")
    assert scheme == trace.config.scheme
    reached = len(expected.rates)
    assert rates.rates[:reached] == pytest.approx(expected.rates, abs=1e-4)


def test_a_profile_of_another_tool_is_read_by_the_cost_model() -> None:
    scheme, found = from_file(json.dumps(THEIRS), "theirs.json")
    assert (scheme, found.rates) == ("dflash", (0.6, 0.5, 1.0))
    only_marginal = {k: v for k, v in THEIRS.items() if k != "conditional_accept_rates"}
    assert from_file(json.dumps(only_marginal), "m")[1].rates == pytest.approx((0.6, 0.5, 1.0))


def test_a_placeholder_is_no_measurement() -> None:
    stub = THEIRS | {"measured": False, "mean_accept_length": None}
    with pytest.raises(ConfigError, match="nothing was measured"):
        from_file(json.dumps(stub), "stub.json")
    (run,) = read(json.dumps(stub))
    assert run.per_position == ()
    assert "nothing was measured" in run.source


def test_an_imported_profile_shifts_lengths_to_accepted_drafts() -> None:
    (run,) = read(json.dumps(THEIRS))
    assert run.histogram == (40, 30, 0, 30)  # length 1 is "nothing accepted"
    assert (run.rounds, run.draft_length, run.acceptance_length) == (100, 3, 2.2)
    assert run.per_position == (0.6, 0.3, 0.3)
    assert "dflash" in run.about
    assert run.contradictions == ()
    (cut,) = read(json.dumps(THEIRS | {"mean_accept_length": 2.9}))
    assert "2.200" in cut.contradictions[0]


def test_a_mean_that_the_rates_do_not_give_is_said_in_the_file() -> None:
    acceptance = Acceptance(method="ngram", draft_length=2, marginal=(0.5, 0.25, 0.1), length=1.85)
    found = profile(acceptance)
    assert found["marginal_accept_rates"] == [0.5, 0.25]
    validation = found["validation"]
    assert isinstance(validation, dict)
    assert validation["mean_consistency"]["passed"] is False
    assert validation["mean_consistency"]["abs_delta"] == 0.1
