"""Drafts at every place of a known text say what a run would say."""

from dataclasses import replace

import pytest
import torch

from specviz.config import SamplingParams
from specviz.drafters.base import Proposal
from specviz.errors import ConfigError
from specviz.events import ROOT, Draft
from specviz.notebook.drafts import Place, agreement, drafts, features, recording, shipped


@pytest.fixture(scope="module")
def trace():
    """A short piece of a recording, so that a module of tests takes seconds."""
    whole = recording("eagle3-chat")
    return replace(whole, rounds=whole.rounds[:12])


def test_a_place_counts_what_greedy_verification_keeps():
    tree = Draft((5, 8, 6), (ROOT, ROOT, 1))
    assert Place(Proposal(tree), (8, 6, 9)).accepted == 2
    assert Place(Proposal(tree), (6, 8)).accepted == 0


@pytest.mark.slow
def test_drafts_are_those_of_a_run(trace):
    """Where a place is the start of a recorded round, the draft is the round's own."""
    start, length = len(trace.prompt), trace.config.draft_length
    places = drafts(trace, "eagle3", length, every=1)
    rounds = {event.start: event for event in trace.rounds}
    compared = [
        (place.proposal.draft, place.accepted, rounds[start + 1 + at])
        for at, place in enumerate(places)
        if start + 1 + at in rounds
    ]
    assert len(compared) > 5
    same = [draft == event.draft for draft, _accepted, event in compared]
    assert sum(same) >= 0.8 * len(same)  # the recording was made in another dtype
    for draft, accepted, event in compared:
        assert draft != event.draft or accepted == len(event.path)


@pytest.mark.slow
def test_agreement_at_depth_1_is_the_share_of_first_drafts_that_are_right(trace):
    head = shipped("eagle3")
    share = agreement(trace, head, features(trace, head), steps=2)
    places = drafts(trace, "eagle3", 1, every=1)
    right = sum(place.accepted for place in places) / len(places)
    assert len(share) == 2
    assert share[0] == pytest.approx(right, abs=0.06)  # the last tokens have no place


@pytest.mark.slow
def test_features_are_one_row_per_token_and_read_once(trace):
    head = shipped("mtp")
    states = features(trace, head)
    assert states.shape[:2] == (len(trace.tokens), len(head.taps))
    assert features(trace, head) is states
    assert bool(torch.isfinite(states).all())


def test_a_sampled_run_is_refused(trace):
    sampled = replace(trace, params=SamplingParams(temperature=1.0))
    with pytest.raises(ConfigError, match="sampled"):
        drafts(sampled, "eagle3", 2)
