"""Operating points and fleets: both famous ratios from the same two curves."""

import pytest

from specviz.cost.hardware import GPUS
from specviz.cost.model_card import built_in
from specviz.cost.operating import Plan, at_speed, batches, fleet, points, ratios
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import published_profile


@pytest.fixture(scope="module")
def plans():
    """gpt-oss-120b on B300s with the published lengths of a block of 15 on code."""
    place = Deployment(
        shape=built_in("gpt-oss-120b"), gpu=GPUS["b300"].achieved, context=8192, tp=8
    )
    profile = published_profile(5.0, 15, "x")
    return Plan(place), Plan(place, "dflash", 15, profile)


def test_a_speed_out_of_reach_of_plain_decoding_has_no_ratio_and_a_high_one_explodes(plans):
    plain, scheme = plans
    fastest = plain.at(1).per_user
    near = ratios(plain, scheme, 0.97 * fastest, 64)
    assert near.interactivity > 5 > near.concurrency > 1
    assert ratios(plain, scheme, 1.01 * fastest, 64).interactivity is None
    assert ratios(plain, scheme, 1.01 * fastest, 64).scheme_at_speed is not None


def test_speed_per_user_falls_and_throughput_rises_with_the_batch(plans):
    for plan in plans:
        curve = points(plan)
        users = [point.per_user for point in curve]
        assert users == sorted(users, reverse=True)
        assert curve[-1].per_gpu > curve[0].per_gpu


def test_at_speed_is_the_largest_batch_that_still_gets_it(plans):
    plain, _scheme = plans
    wanted = plain.at(37).per_user
    found = at_speed(plain, wanted)
    assert found.per_user >= wanted
    assert plain.at(found.batch + 1).per_user < wanted or found.batch == plain.most_batch()


def test_memory_limits_the_batch():
    place = Deployment(shape=built_in("Llama-3.1-8B"), gpu=GPUS["rtx4090"], context=32_768)
    plan = Plan(place)
    most = plan.most_batch()
    assert place.at(batch=most).memory <= 0.9 * 24e9 < place.at(batch=most + 1).memory
    too_large = Plan(Deployment(shape=built_in("Llama-3.1-70B"), gpu=GPUS["rtx4090"]))
    assert too_large.most_batch() == 0
    assert points(too_large) == ()
    assert at_speed(too_large, 1) is None


def test_batches_grow_by_half_octaves_and_end_at_the_limit():
    assert batches(10) == (1, 2, 3, 4, 6, 8, 10)
    assert batches(0) == ()


def test_a_fleet_has_whole_groups_of_gpus_and_costs_what_they_cost(plans):
    plain, scheme = plans
    wanted = 0.9 * plain.at(1).per_user
    one, other = fleet(plain, 50_000, wanted, 3.0), fleet(scheme, 50_000, wanted, 3.0)
    assert one.gpus % 8 == other.gpus % 8 == 0
    assert other.gpus < one.gpus
    assert one.per_hour == one.gpus * 3.0
    assert one.per_million == pytest.approx(one.per_hour / (50_000 * 3600) * 1e6)
    assert fleet(plain, 1, 1e9, 3.0).gpus is None
