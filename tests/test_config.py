"""Settings that cannot work are refused when they are made, by name, never by a TypeError."""

from math import inf, nan

import pytest
import torch

from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.errors import ConfigError
from specviz.verify.processors import distribution, penalise


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 9e-4},
        {"temperature": 1e-300},
        {"temperature": True},
        {"temperature": 10**400},
        {"temperature": "1"},
        {"top_p": 1e-7},
        {"repetition_penalty": 1e-3},
        {"top_k": True},
        {"max_tokens": True},
        {"seed": False},
        {"seed": 1.0},
        {"ignore_eos": "no"},
        {"stop": "abc"},
        {"stop": ["a"]},
        {"stop": ("a", "")},
        {"stop": ("a\udcff",)},
        {"stop": (b"a",)},
        {"stop": None},
        {"stop_ids": 3},
        {"stop_ids": (-1,)},
        {"stop_ids": ("3",)},
        {"stop_ids": (True,)},
        {"logit_bias": {3: 1.0}},
        {"logit_bias": (3, 1.0)},
        {"logit_bias": ((3,),)},
        {"logit_bias": ((3, None),)},
        {"logit_bias": ((3, nan),)},
        {"logit_bias": ((3, inf),)},
        {"logit_bias": ((3, 1e5),)},
        {"logit_bias": ((3, -1e5),)},
        {"logit_bias": ((True, 1.0),)},
        {"logit_bias": None},
    ],
    ids=str,
)
def test_sampling_of_the_wrong_type_or_range_is_named(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(bad))} is .*; allowed: "):
        SamplingParams(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"ngram_min": 1.5},
        {"ngram_max": "3"},
        {"ngram_min": True},
        {"suffix_max_depth": None},
        {"suffix_max_requests": 1.5},
        {"suffix_max_factor": True},
        {"draft_min_p": True},
        {"draft_sampled": 1},
        {"draft_model": " "},
        {"draft_model": 3},
    ],
    ids=str,
)
def test_options_of_the_wrong_type_are_named(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(bad))} is .*; allowed: "):
        DrafterOptions(**bad)


@pytest.mark.parametrize("bad", [{"draft_length": True}, {"draft_length": 2.0}, {"scheme": None}])
def test_a_session_of_the_wrong_type_is_named(bad: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=rf"{next(iter(bad))} is .*; allowed: "):
        SessionConfig(**bad)


def test_one_stop_string_alone_is_answered_with_how_to_give_it() -> None:
    with pytest.raises(ConfigError, match="stop is 'abc'; allowed: a tuple of strings"):
        SamplingParams(stop="abc")  # type: ignore[arg-type]


@pytest.mark.parametrize("bias", [1e4, -1e4, -inf])
def test_the_most_extreme_settings_still_give_a_distribution(bias: float) -> None:
    params = SamplingParams(
        temperature=1e-3,
        top_p=1e-6,
        repetition_penalty=0.01,
        frequency_penalty=100,
        presence_penalty=-100,
        logit_bias=((1, bias),),
    )
    logits = torch.tensor([[60.0, -60.0, 3.0, 0.0]])
    p = distribution(penalise(logits, (0, 1), [(0, 0, 1)], params), params)
    assert p.sum().item() == pytest.approx(1)
