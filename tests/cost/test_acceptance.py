"""Where acceptance profiles come from: papers, recordings, files."""

import json

import pytest

from specviz import recordings
from specviz.cost.acceptance import CLASSES, external, from_file, of_rounds, published, recorded
from specviz.cost.model_card import built_in
from specviz.errors import ConfigError, TraceError
from specviz.events import Round
from specviz.metrics.summary import summarise
from specviz.traces.store import load, to_json


@pytest.mark.parametrize("prompts", CLASSES)
def test_published_profiles_say_where_they_come_from(prompts):
    found = published(built_in("Qwen3-8B"), prompts)
    assert {"eagle3", "dflash", "dspark", "ngram"} == set(found)
    for name, profile in found.items():
        assert profile.how == ("measured" if name == "ngram" else "published")
        assert "arXiv" in profile.source or "NVIDIA" in profile.source or "record" in profile.source


@pytest.mark.parametrize(
    ("model", "scheme", "prompts", "mean"),
    [
        ("Qwen3-8B", "dspark", "chat", 3.72),
        ("Qwen3-8B", "eagle3", "math", 5.30),
        ("Llama-3.1-70B", "dflash", "code", 4.59),
        ("SmolLM2-135M", "dspark", "math", 6.11),
    ],
)
def test_the_nearest_published_target_is_taken(model, scheme, prompts, mean):
    profile = published(built_in(model), prompts)[scheme]
    assert profile.expected_length(7) == pytest.approx(mean, abs=0.01)


def test_an_external_draft_model_is_only_known_for_one_pair_of_models():
    profile = external()
    assert profile.expected_length(10) == pytest.approx(6, abs=0.01)
    assert "122B" in profile.source


def test_mtp_only_where_the_checkpoint_has_it():
    assert "mtp" not in published(built_in("Qwen3-8B"), "chat")
    deepseek = published(built_in("DeepSeek-V3"), "chat")["mtp"]
    assert deepseek.expected_length(3) == pytest.approx(2.55, abs=0.01)


def test_a_recording_is_a_measured_profile():
    name = "ngram-chat"
    profile = recorded(name)
    trace = load(recordings.path(name))
    assert profile.how == "measured"
    assert profile.rates == tuple(summarise(trace.rounds).conditional[: len(profile.rates)])
    assert recorded("no-such") is None


def test_rounds_without_drafts_have_no_profile():
    assert of_rounds((), "nothing") is None
    plain: list[Round] = []
    assert of_rounds(plain, "nothing") is None


def test_a_trace_file_and_its_profile_agree():
    trace = load(recordings.path("ngram-copy"))
    scheme, profile = from_file(to_json(trace), "copy.json")
    assert (scheme, profile.rates) == ("ngram", recorded("ngram-copy").rates)
    packed = recordings.path("ngram-copy").read_bytes()
    assert from_file(packed, "copy.json.gz")[1].rates == profile.rates


def test_json_profiles_may_be_conditional_or_marginal():
    conditional = json.dumps({"method": "eagle3", "conditional": [0.8, 0.5]})
    marginal = json.dumps({"acceptance": {"marginal": [0.8, 0.4, 0.0, 0.0]}})
    assert from_file(conditional, "a")[0] == "eagle3"
    assert from_file(conditional, "a")[1].rates == (0.8, 0.5)
    assert from_file(marginal, "b")[1].rates == pytest.approx((0.8, 0.5, 0.0))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{}", ConfigError, "has no acceptance rates"),
        ("[1, 2]", ConfigError, "has no acceptance rates"),
        ('{"conditional": "high"}', ConfigError, "conditional is high"),
        ('{"conditional": [2]}', ConfigError, "each 0 to 1"),
        ("nonsense", TraceError, "JSON|trace"),
        ('{"rounds": []}', TraceError, "trace|schema"),
    ],
)
def test_files_that_are_no_profile_are_named(text, error, message):
    with pytest.raises(error, match=message):
        from_file(text, "x.json")
