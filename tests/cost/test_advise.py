"""Advice: answers, reasons and where the simple rule leads."""

import time

import pytest

from specviz.cost.advise import Question, advise
from specviz.cost.hardware import GPUS
from specviz.cost.mechanisms import mechanism_of, mechanisms, plans_blocks
from specviz.cost.model_card import built_in, names
from specviz.cost.reasons import sentences
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import Profile, iid_profile
from specviz.errors import ConfigError


def ask(model="Llama-3.1-8B", gpu="h200", **more):
    keys = ("prompts", "profiles", "only", "draft_model")
    question = {key: more.pop(key) for key in keys if key in more}
    place = Deployment(shape=built_in(model), gpu=GPUS[gpu].achieved, **more)
    return advise(Question(place=place, **question))


@pytest.mark.parametrize("model", names())
def test_every_built_in_model_gets_an_answer_with_reasons(model):
    advice = ask(model, "b200", batch=4, tp=8, context=16_384)
    assert advice.optimum.speedup >= 1
    assert advice.kernels
    said = sentences(advice)
    assert len(said) >= 6
    assert any("The rule D = 128/G - 1 says" in line for line in said)
    assert all("{" not in line for line in said)


def test_the_optimum_is_the_fastest_point_of_all_curves():
    advice = ask(batch=32)
    speeds = [p.speedup for c in advice.choices for p in c.points if p.draft_length <= c.most]
    assert advice.optimum.speedup == max([1.0, *speeds])
    assert [c.best.speedup for c in advice.choices] == sorted(
        (c.best.speedup for c in advice.choices), reverse=True
    )


def test_small_groups_lose_by_following_the_rule():
    rule = ask(only=("eagle3",)).rule
    assert rule.draft_length == 31
    assert rule.loss > 0.25
    assert not rule.agrees


def test_the_rule_decides_where_attention_dominates_and_drafts_are_accepted():
    place = {"batch": 64, "context": 131_072, "tp": 4}
    profile = {"mtp": iid_profile(0.85)}
    advice = ask("Qwen3-235B-A22B", "h200", profiles=profile, only=("mtp",), **place)
    assert advice.d_star == advice.rule.draft_length == 7
    assert advice.plain.share("attention") > 0.5
    assert advice.rule.agrees
    assert advice.optimum.draft_length == 7


def test_with_drafts_that_are_hardly_refused_the_optimum_fills_a_second_tile():
    place = {"batch": 64, "context": 131_072, "tp": 4}
    profile = {"mtp": iid_profile(0.95)}
    advice = ask("Qwen3-235B-A22B", "h200", profiles=profile, only=("mtp",), **place)
    assert advice.group_size * (1 + advice.optimum.draft_length) == 256
    assert 0.1 < advice.rule.loss < 0.25


def test_where_the_tile_is_full_from_the_start_the_rule_says_not_to_speculate():
    advice = ask("DeepSeek-V3", "h200", batch=32)
    assert (advice.group_size, advice.d_star, advice.rule.scheme) == (128, 0, "none")
    said = " ".join(sentences(advice))
    assert "do not speculate" in said
    assert advice.rule.loss == pytest.approx(1 - 1 / advice.optimum.speedup)


def test_no_drafter_that_pays_means_plain_decoding():
    useless = {"eagle3": Profile(rates=(0.01,), source="x", how="measured")}
    advice = ask(profiles=useless, only=("eagle3",))
    assert (advice.scheme, advice.optimum.draft_length) == ("none", 0)
    assert sentences(advice)[0].startswith("Do not speculate here")
    assert advice.choice is None


def test_block_drafters_are_never_advised_beyond_their_block():
    for batch in (1, 64):
        for choice in ask(batch=batch, prompts="math").choices:
            assert choice.best.draft_length <= choice.most
            if plans_blocks(choice.scheme):
                assert max(p.draft_length for p in choice.points) == len(choice.profile.rates)


def test_a_measured_profile_replaces_the_published_one_and_is_called_measured():
    mine = Profile(rates=(0.99,) * 7, source="my rounds", how="measured")
    advice = ask(profiles={"dflash": mine})
    assert advice.scheme == "dflash"
    assert advice.how["acceptance"] == "measured"
    assert advice.how["times"] == "modelled"
    assert "measured, my rounds" in sentences(advice)[-1]


def test_an_external_draft_model_is_ranked_only_when_it_is_named():
    assert "draft_model" not in {c.scheme for c in ask().choices}
    small = ask("Llama-3.1-70B", draft_model=built_in("Llama-3.1-8B"), tp=2)
    assert "draft_model" in {c.scheme for c in small.choices}


def test_longer_drafts_pay_less_the_larger_the_batch():
    lengths = [ask(batch=b, only=("eagle3",)).optimum.draft_length for b in (1, 32, 256)]
    assert lengths == sorted(lengths, reverse=True)


def test_what_does_not_fit_is_said():
    assert any("does not fit" in line for line in sentences(ask("Llama-3.1-70B", "rtx4090")))
    assert not any("does not fit" in line for line in sentences(ask()))


def test_unknown_schemes_are_refused():
    with pytest.raises(ConfigError, match="no acceptance profile for medusa"):
        ask(only=("medusa",))


def test_an_answer_takes_less_than_a_second():
    ask()  # recordings are read once
    began = time.process_time()
    ask("DeepSeek-V3", "gb300", tp=8, batch=64)
    assert time.process_time() - began < 1.0


def test_nvidias_table_has_six_mechanisms_and_every_scheme_a_row():
    assert len(mechanisms()) == 6
    for scheme in ("ngram", "suffix", "draft_model", "eagle3", "mtp", "dflash", "dspark"):
        assert mechanism_of(scheme) is not None
    assert mechanism_of("none") is None
    assert [name for name in ("dflash", "dspark", "eagle3", "none") if plans_blocks(name)] == [
        "dflash",
        "dspark",
    ]
