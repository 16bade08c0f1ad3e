"""Expected length and speedup: tables of the literature, and the shapes they must have."""

import pytest

from specviz.cost.speedup import (
    PLAIN,
    DraftCost,
    Profile,
    best,
    curve,
    expected_length,
    iid_length,
    iid_profile,
    published_profile,
    speedup,
)
from specviz.errors import ConfigError

LENGTHS = {
    0.5: (1.50, 1.75, 1.88, 1.94, 1.97, 1.99, 2.00, 2.00, 2.00, 2.00),
    0.7: (1.70, 2.19, 2.53, 2.77, 2.94, 3.14, 3.24, 3.29, 3.32, 3.33),
    0.8: (1.80, 2.44, 2.95, 3.36, 3.69, 4.16, 4.46, 4.66, 4.86, 5.00),
    0.9: (1.90, 2.71, 3.44, 4.10, 4.69, 5.70, 6.51, 7.18, 8.15, 9.66),
    0.95: (1.95, 2.85, 3.71, 4.52, 5.30, 6.73, 8.03, 9.19, 11.20, 16.13),
}
AT = (1, 2, 3, 4, 5, 7, 9, 11, 15, 31)


@pytest.mark.parametrize("rate", LENGTHS)
def test_equal_rates_give_the_textbook_lengths(rate):
    for length, want in zip(AT, LENGTHS[rate], strict=True):
        assert iid_length(rate, length) == pytest.approx(want, abs=0.006)
        assert expected_length([rate] * length) == pytest.approx(iid_length(rate, length))
        assert iid_profile(rate).expected_length(length) == pytest.approx(iid_length(rate, length))


def test_the_bonus_token_counts_so_the_length_lies_between_1_and_1_plus_d():
    assert expected_length([]) == 1
    assert expected_length([0.0, 1.0]) == 1
    assert iid_length(1, 7) == expected_length([1.0] * 7) == 8


def test_a_refusal_ends_the_draft_whatever_follows():
    assert expected_length([0.5, 0.0, 1.0, 1.0]) == 1.5


# c, a -> best D, speedup with v = 1
OPTIMA = [
    (0.01, 0.5, 5, 1.88),
    (0.01, 0.8, 14, 4.23),
    (0.02, 0.7, 8, 2.76),
    (0.05, 0.9, 13, 4.67),
    (0.1, 0.6, 3, 1.67),
    (0.2, 0.95, 10, 2.87),
]


@pytest.mark.parametrize(("c", "rate", "length", "gain"), OPTIMA)
def test_the_best_d_of_a_serial_drafter_with_free_verification(c, rate, length, gain):
    cost = DraftCost(drafting="serial", c=c)
    found = best(curve(iid_profile(rate), lambda d: 1.0, cost, range(1, 64)))
    assert found.draft_length == length
    assert found.speedup == pytest.approx(gain, abs=0.012)


# G, attention share w, a -> best D with v(D) = (1-w) + w ceil(G(1+D)/128), c = 0.02
EDGES = [
    (4, 0.2, 0.6, 6),
    (4, 0.8, 0.95, 31),
    (8, 0.8, 0.9, 15),
    (16, 0.8, 0.9, 7),
    (32, 0.2, 0.9, 11),
    (32, 0.8, 0.8, 3),
    (64, 0.8, 0.6, 1),
    (128, 0.8, 0.6, 0),
    (128, 0.2, 0.9, 6),
]


@pytest.mark.parametrize(("group", "share", "rate", "length"), EDGES)
def test_the_best_d_sits_at_the_acceptance_optimum_or_at_a_tile_edge(group, share, rate, length):
    def verify(d):
        return 1 - share + share * -(-group * (1 + d) // 128)

    cost = DraftCost(drafting="serial", c=0.02)
    points = curve(iid_profile(rate), verify, cost, range(1, 64))
    assert best(points).draft_length == length


def test_following_the_rule_blindly_can_cost_29_percent():
    cost = DraftCost(drafting="serial", c=0.02)
    at = {p.draft_length: p for p in curve(iid_profile(0.6), lambda d: 1.0, cost, (6, 31))}
    assert at[31].speedup / at[6].speedup == pytest.approx(0.71, abs=0.01)


def test_the_three_ways_of_drafting_cost_what_they_say():
    serial = DraftCost(drafting="serial", c=0.05)
    block = DraftCost(drafting="one_pass", c=0.2)
    markov = DraftCost(drafting="block_markov", c=0.2, markov=0.01)
    lookup = DraftCost(drafting="lookup", fixed=0.001)
    assert [cost(8) for cost in (serial, block, markov, lookup)] == pytest.approx(
        [0.4, 0.2, 0.28, 0.001]
    )
    assert all(cost(0) == 0 for cost in (serial, block, markov, lookup))


def test_plain_decoding_wins_where_drafts_do_not_pay():
    cost = DraftCost(drafting="serial", c=0.5)
    assert best(curve(iid_profile(0.3), lambda d: 1.0, cost, range(1, 9))) == PLAIN


def test_a_block_drafter_is_not_extrapolated_and_a_chain_is():
    profile = Profile(rates=(0.9, 0.8, 0.7), source="x", how="measured")
    free = lambda d: 1.0  # noqa: E731
    block = curve(profile, free, DraftCost(drafting="one_pass", c=0.1), range(1, 9), block=True)
    chain = curve(profile, free, DraftCost(drafting="serial", c=0.1), range(1, 9))
    assert [p.draft_length for p in block] == [1, 2, 3]
    assert len(chain) == 8
    assert profile.rates_for(5) == (0.9, 0.8, 0.7, 0.7, 0.7)


@pytest.mark.parametrize(("first", "mean"), [(0.72, 3.11), (0.88, 5.33), (0.53, 2.66), (None, 6)])
def test_a_published_mean_and_first_rate_come_out_as_they_went_in(first, mean):
    profile = published_profile(mean, 10, "a paper", first)
    assert profile.rates[0] == (first or profile.rates[1])
    assert len(set(profile.rates[1:])) == 1
    assert profile.expected_length(10) == pytest.approx(mean, abs=0.001)
    assert profile.how == "published"


def test_the_remainder_lowers_the_speedup():
    assert speedup(3, 1.0, 0.5) == 2
    assert speedup(3, 1.0, 0.5, 0.5) == 1.5


@pytest.mark.parametrize("rates", [(), (1.2,), (-0.1, 0.5), (float("nan"),)])
def test_rates_that_are_no_rates_are_refused(rates):
    with pytest.raises(ConfigError, match="each 0 to 1"):
        Profile(rates=rates, source="x", how="measured")
