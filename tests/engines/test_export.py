"""Serving configurations: what each engine calls D, and what it refuses."""

import json
import shlex

import pytest

from specviz.engines import ENGINES, READERS, export
from specviz.engines.plan import SERVED, Plan
from specviz.errors import ConfigError, UnsupportedByEngine

LACKING = {
    ("sglang", "suffix"): "scheme ngram",
    ("tensorrt-llm", "suffix"): "decoding_type: SA",
    ("llama.cpp", "suffix"): "--spec-type ngram-map-k",
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("scheme", [name for name in SERVED if name != "none"])
@pytest.mark.parametrize("length", [1, 7, 15, 64])
def test_d_survives_every_engines_own_way_of_counting(engine, scheme, length):
    plan = Plan(scheme=scheme, draft_length=length, target="org/big", draft="org/small")
    if (engine, scheme) in LACKING:
        with pytest.raises(UnsupportedByEngine, match=LACKING[engine, scheme]):
            export(engine, plan)
        return
    assert READERS[engine](export(engine, plan).text) == length


def test_the_off_by_one_between_engines():
    plan = Plan(scheme="dflash", draft_length=15)
    assert '"num_speculative_tokens": 15' in export("vllm", plan).text
    assert "--speculative-num-draft-tokens 16" in export("sglang", plan).text
    assert "max_draft_len: 15" in export("tensorrt-llm", plan).text
    assert "--spec-draft-n-max 15" in export("llama.cpp", plan).text


def test_sglang_chains_take_steps_and_a_window_of_one_more():
    text = export("sglang", Plan(scheme="eagle3", draft_length=3, draft="h")).text
    assert "--speculative-num-steps 3" in text
    assert "--speculative-eagle-topk 1" in text
    assert "--speculative-num-draft-tokens 4" in text


def test_sglang_takes_gamma_for_dspark_and_nothing_that_could_disagree():
    text = export("sglang", Plan(scheme="dspark", draft_length=7, draft="h")).text
    assert "--speculative-dspark-block-size 7" in text
    assert "num-draft-tokens" not in text


def test_sglang_counts_the_root_of_a_tree():
    plan = Plan(scheme="eagle3", draft_length=5, tree_top_k=4, tree_nodes=7)
    text = export("sglang", plan).text
    assert "--speculative-num-steps 5" in text
    assert "--speculative-eagle-topk 4" in text
    assert "--speculative-num-draft-tokens 8" in text


@pytest.mark.parametrize("engine", ["vllm", "llama.cpp"])
def test_engines_without_trees_name_the_chain(engine):
    plan = Plan(scheme="eagle3", draft_length=5, tree_top_k=4)
    with pytest.raises(UnsupportedByEngine, match="a chain of D = 5"):
        export(engine, plan)


def test_vllm_takes_no_more_than_128():
    with pytest.raises(UnsupportedByEngine, match="D = 129; the nearest it does: D = 128"):
        export("vllm", Plan(scheme="ngram", draft_length=129))


def test_vllm_json_has_the_documented_keys():
    words = shlex.split(
        export("vllm", Plan(scheme="ngram", draft_length=5)).text.replace("\\\n", "")
    )
    config = json.loads(words[-1])
    assert config == {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "prompt_lookup_max": 4,
        "prompt_lookup_min": 2,
    }
    mtp = export("vllm", Plan(scheme="mtp", draft_length=1)).text
    assert '"model"' not in mtp


@pytest.mark.parametrize("engine", ENGINES)
def test_names_with_spaces_and_quotes_stay_one_word(engine):
    hostile = 'a b\'; rm -rf "x" $HOME'
    plan = Plan(scheme="eagle3", draft_length=3, target="t", draft=hostile)
    text = export(engine, plan).text
    if engine == "tensorrt-llm":
        assert f"speculative_model: {json.dumps(hostile)}" in text
    else:
        words = shlex.split(text.replace("\\\n", " "))
        named = [json.loads(word)["model"] for word in words if word.startswith("{")]
        assert hostile in (*words, *named)


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_decoding_is_a_plain_command(engine):
    text = export(engine, Plan(scheme="none", draft_length=0, target="t")).text
    assert "spec" not in text
    with pytest.raises(ConfigError):
        READERS[engine](text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"scheme": "medusa", "draft_length": 3}, "'medusa'; engines serve"),
        ({"scheme": "ngram", "draft_length": 0}, "plain decoding has D = 0"),
        ({"scheme": "none", "draft_length": 3}, "plain decoding has D = 0"),
        ({"scheme": "ngram", "draft_length": -1}, "D is -1"),
        ({"scheme": "eagle3", "draft_length": 3, "draft": ""}, "draft is ''"),
        ({"scheme": "eagle3", "draft_length": 3, "target": "a\nb"}, "target is"),
    ],
)
def test_impossible_plans_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Plan(**values)


def test_an_unknown_engine_lists_the_known():
    with pytest.raises(ConfigError, match=r"'ollama'; known are vllm, sglang"):
        export("ollama", Plan(scheme="ngram", draft_length=3))
