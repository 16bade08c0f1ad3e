"""Tour, clinic, glossary and myths: every sentence is about the run it is computed on."""

import re
from dataclasses import replace

import pytest

from specviz import recordings
from specviz.events import LosslessReport
from specviz.traces.schema import redact
from specviz.traces.store import load
from specviz.views.glossary import peers, spread, words
from specviz.views.learn_clinic import symptoms
from specviz.views.learn_myths import cards
from specviz.views.learn_tour import stops
from tests.traces.samples import sampled_trace, story, trace_of


def state(trace, symptom, at=0):
    chosen = next(s for s in symptoms() if s.key == symptom)
    return chosen.checks[at](trace).state


@pytest.mark.parametrize("name", recordings.names())
def test_the_tour_has_twelve_short_stops_at_places_that_exist(name):
    trace = load(recordings.path(name))
    tour = stops(trace)
    assert len(tour) == 12
    assert {stop.part for stop in tour} == {"head", "text", "decision", "figures", "panel"}
    for stop in tour:
        assert stop.cursor == stop.cursor.clamp(trace.rounds)
        assert 40 < len(stop.text) < 420
        assert "{" not in stop.text
        assert "None" not in stop.text


def test_the_tour_survives_a_run_without_drafts():
    plain = story(([], 0, 8), ([], 0, 9))
    assert len(stops(trace_of(plain))) == 12


@pytest.mark.parametrize("symptom", [s.key for s in symptoms()])
def test_every_check_says_something_of_every_kind_of_run(symptom):
    runs = (
        trace_of(),
        trace_of((), lossless=None, finish=None),
        trace_of(lossless=None),
        redact(trace_of()),
        sampled_trace(6),
        trace_of(story(([], 0, 8), ([], 0, 9))),
    )
    chosen = next(s for s in symptoms() if s.key == symptom)
    for trace in runs:
        for check in chosen.checks:
            found = check(trace)
            assert found.found
            assert "{" not in found.found + found.advice


def test_a1_a_slower_run_is_told_to_draft_less():
    slow = trace_of(lossless=LosslessReport("identical", 8, plain_tpot=0.001))
    fast = trace_of(lossless=LosslessReport("identical", 8, plain_tpot=0.5))
    assert state(slow, "slow") == "look"
    assert state(fast, "slow") == "fine"
    assert state(trace_of(lossless=None), "slow") == "unknown"


def test_b4_a_dead_drafter_is_found():
    dead = trace_of(story(*[([1, 2], 0, 9)] * 60))
    assert state(dead, "zero") == "look"
    assert state(trace_of(), "zero") == "fine"


def test_b2_a_timid_drafter_is_found():
    timid = trace_of(story(*[([], 0, 9)] * 9, ([1], 1, 2)))
    assert state(timid, "high") == "look"


def test_c2_a_near_tie_and_a_bug_are_told_apart():
    bug, tie = (
        trace_of(lossless=LosslessReport(kind, 8, 2, 5, 9, 3.0, 1.0, 2.0, 0.1))
        for kind in ("BUG", "near-tie")
    )
    assert state(bug, "text") == "look"
    assert state(tie, "text") == "fine"


def test_g3_counters_add_up_on_recordings():
    for name in recordings.names():
        trace = load(recordings.path(name))
        assert state(trace, "end", 1) == "fine"


def test_c14_the_seed_of_a_greedy_run_is_explained():
    found = next(s for s in symptoms() if s.key == "seed").checks[0](trace_of())
    assert "nothing is drawn" in found.found
    assert state(sampled_trace(6), "seed") == "fine"


def test_h3_every_peer_has_its_formula_and_its_value():
    columns, rows = peers(trace_of().rounds)
    assert len(columns) == 4
    assert len(rows) >= 12
    assert all(len(row) == 4 and row[3] for row in rows)
    assert {"vLLM", "SGLang", "llama.cpp", "EAGLE UI", "DeepSpec"} <= {row[0] for row in rows}
    assert "honest numbers from" in spread(trace_of().rounds)
    assert spread(()).startswith("This run drafted nothing")


def test_words_are_said_once():
    names = [word for word, _meaning, _others in words()]
    assert len(names) == len(set(names)) >= 15


def test_a_card_has_a_number_and_says_how_it_is_known():
    known = {name: load(recordings.path(name)) for name in recordings.names()}
    found = cards(known)
    assert len(found) >= 10
    assert {card.how for card in found} == {"measured", "published", "worked out"}
    for card in found:
        assert any(c.isdigit() for c in card.number), card.myth
        assert card.source
        assert "{" not in card.myth + card.fact + card.number + card.source


def test_measured_cards_follow_the_recordings():
    known = {name: load(recordings.path(name)) for name in recordings.names()}
    before = [card.number for card in cards(known) if card.how == "measured"]
    slower = {
        name: replace(trace, lossless=replace(trace.lossless, plain_tpot=0.001))
        for name, trace in known.items()
    }
    assert before != [card.number for card in cards(slower) if card.how == "measured"]
    assert not [card for card in cards({}) if card.how == "measured"]


def test_cards_on_measured_gains_hold_for_the_runs_they_name():
    known = {name: load(recordings.path(name)) for name in recordings.names()}
    by_myth = {card.myth: card for card in cards(known)}
    alone = {name: trace for name, trace in known.items() if trace.config.scheme == "ngram"}
    gains = by_myth["Speculative decoding makes this model N times faster."]
    assert "same drafter" in gains.fact
    assert gains.number in {card.number for card in cards(alone)}, "n-gram runs differ most"
    shown = by_myth["E[L] is the speedup."].number
    length, speedup = (float(text) for text in re.findall(r"[0-9]+\.[0-9]+", shown))
    assert speedup < 0.8 * length, "an example that looks like the myth teaches it"
