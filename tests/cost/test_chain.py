"""Latency of agent chains drawn from measured rounds."""

import time

import numpy as np
import pytest

from specviz.cost.chain import Chain, drawn_lengths, simulate
from specviz.cost.speedup import Profile
from specviz.errors import ConfigError


def test_plain_decoding_takes_a_round_per_token_and_never_varies():
    latency = simulate(Chain(calls=3, tokens=100, wait=0.5), [1], 0.01)
    assert latency.quantile(0.01) == latency.quantile(0.99) == pytest.approx(3 * 1.0 + 1.5)


def test_the_median_is_what_the_mean_length_says_and_the_spread_is_not_nothing():
    lengths = [1, 1, 1, 1, 6, 6, 6, 6] * 20
    latency = simulate(Chain(calls=10, tokens=350), lengths, 0.01)
    assert latency.median == pytest.approx(10 * 350 / 3.5 * 0.01, rel=0.03)
    assert latency.quantile(0.95) > latency.quantile(0.05)


def test_bursts_spread_latency_more_than_the_same_rounds_mixed():
    bursty = [1] * 64 + [6] * 64
    mixed = [1, 6] * 64
    wide, narrow = (simulate(Chain(calls=2, tokens=200), rounds, 1) for rounds in (bursty, mixed))
    assert np.std(wide.seconds) > 2 * np.std(narrow.seconds)


def test_the_same_seed_gives_the_same_chains():
    chain = Chain(calls=2, tokens=50)
    one, two, other = (simulate(chain, [1, 2, 5], 1, seed) for seed in (7, 7, 8))
    assert (one.seconds == two.seconds).all()
    assert (one.seconds != other.seconds).any()


def test_a_call_is_never_shorter_than_its_tokens_need():
    latency = simulate(Chain(calls=1, tokens=10), [1, 4], 1)
    assert latency.seconds.min() >= 3
    assert latency.seconds.max() <= 10


def test_lengths_drawn_from_a_profile_have_its_mean():
    profile = Profile(rates=(0.8, 0.7, 0.6), source="x", how="published")
    lengths = drawn_lengths(profile, 3, 20_000)
    assert np.mean(lengths) == pytest.approx(profile.expected_length(3), rel=0.02)
    assert set(lengths) == {1, 2, 3, 4}


def test_the_longest_chain_still_answers_in_time():
    began = time.perf_counter()
    simulate(Chain(calls=1000, tokens=2000), [1, 3, 5], 0.01)
    assert time.perf_counter() - began < 20  # a bound on a hang, not a measurement


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"calls": 0, "tokens": 5}, "0 calls of 5"),
        ({"calls": 1, "tokens": 0}, "1 calls of 0"),
        ({"calls": 1, "tokens": 1, "wait": -1}, "-1 seconds"),
        ({"calls": 1, "tokens": 1, "wait": float("nan")}, "nan seconds"),
    ],
)
def test_impossible_chains_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        Chain(**values)


@pytest.mark.parametrize("lengths", [[], [0, 0]])
def test_without_rounds_nothing_is_drawn(lengths):
    with pytest.raises(ConfigError, match="no measured rounds"):
        simulate(Chain(calls=1, tokens=1), lengths, 1)
