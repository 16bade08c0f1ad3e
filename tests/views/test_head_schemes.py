"""Panels of the heads: trees with their accepted path, depths, blocks and what ended them."""

import re
from dataclasses import replace

import pytest

from specviz.events import ROOT, Draft, Evidence
from specviz.traces.schema import Trace
from specviz.views.schemes import SchemeView, scheme_view
from tests.views.stories import CARD, HOSTILE, Story

HEADS = ("eagle3", "mtp", "dflash", "dspark")


def plain(markup: str) -> str:
    text = re.sub(r"\s*<[^>]*>\s*", " ", markup).replace("&#x27;", "'")
    return " ".join(text.split())


def shown(scheme: str, evidence: Evidence, accepted: int = 1) -> SchemeView:
    story = Story("x", scheme=scheme)
    story.add([" a", " b"], accepted, " c", evidence=evidence)
    return scheme_view(story.trace(draft=CARD), 0)


def tree() -> Trace:
    """Root with children a and b; b, which is accepted, has the child c."""
    story = Story("x", scheme="eagle3")
    evidence = Evidence(scores=(0.5, 0.25, 0.125), passes=2)
    story.add([" a", " b", " c"], 1, " d", evidence=evidence)
    trace = story.trace(draft=CARD)
    event = trace.rounds[0]
    draft = Draft(event.draft.tokens, (ROOT, ROOT, 1))
    checks = (
        replace(event.checks[1], node=0),
        replace(event.checks[0], node=1),
        replace(event.checks[1], node=2),
    )
    return replace(trace, rounds=(replace(event, draft=draft, path=(1,), checks=checks),))


def test_a_tree_shows_scores_branches_and_the_accepted_path() -> None:
    panel = scheme_view(tree(), 0)
    assert "3 nodes in 2 levels" in panel.lines[-1]
    assert "".join(plain(panel.excerpt).split()) == "'a'0.5'b'0.25'c'0.125"
    kept = re.findall(r'sv-node sv-kept"><span[^>]*>([^<]*)<', panel.excerpt)
    assert [text.replace("&#x27;", "'") for text in kept] == ["' b'"]
    inside = panel.excerpt.partition("sv-children")[2]
    assert " c" in inside
    assert " a" not in inside
    assert [row[-1] for row in panel.rows] == ["rejected", "accepted", "rejected"]


def test_a_chain_is_a_row_of_slots() -> None:
    panel = shown("eagle3", Evidence(scores=(0.5, 0.25), passes=2, caught_up=3))
    assert panel.lines[:2] == ("Head: tiny", "It ran 2 forward passes.")
    assert panel.excerpt.count('class="sv-slot"') == 2
    assert "width:50%" in panel.excerpt


def test_d6_a_part_of_the_vocabulary_is_said() -> None:
    story = Story("x", scheme="eagle3").add([" a"], 0, " b", evidence=Evidence(scores=(0.5,)))
    lines = scheme_view(story.trace(draft=replace(CARD, vocab=16)), 0).lines
    assert "It can draft 16 of the target's 64 ids; the target's token can be any." in lines


def test_depths_an_mtp_module_was_not_trained_for_are_labelled_reused() -> None:
    panel = shown("mtp", Evidence(scores=(0.5, 0.25), note="Reused from 2.", trained=1))
    assert [row[0] for row in panel.rows] == ["1", "2, reused"]
    assert "2, reused" in panel.excerpt
    assert "Reused from 2." in panel.lines


def test_a_block_is_said_to_be_filled_at_once() -> None:
    panel = shown("dflash", Evidence(scores=(0.5, 0.25), passes=1))
    assert "It ran 1 forward pass." in panel.lines
    assert "All slots were filled at once" in panel.lines[-1]
    assert plain(panel.excerpt) == "+1 ' a' 0.5 +2 ' b' 0.25"


def test_dspark_shows_what_the_markov_head_changed_and_where_confidence_cut() -> None:
    story = Story("x", scheme="dspark")
    tokens = [story.spell(text) for text in (" a", " z")]
    evidence = Evidence(
        scores=(0.5, 0.25),
        confidence=(0.9, 0.6, 0.125),
        unbiased=tuple(tokens),
        unbiased_scores=(0.5, 0.75),
        message="Stopped.",
    )
    story.add([" a", " b"], 1, " c", evidence=evidence)
    panel = scheme_view(story.trace(draft=CARD), 0)
    words = plain(panel.excerpt)
    assert words.count("block alone") == 1
    assert "block alone: ' z' 0.75" in words
    assert words.endswith("cut here confidence 0.125")
    assert "In 1 slot " in panel.lines[-2]
    assert panel.lines[-1] == "Stopped."
    assert [row[4:] for row in panel.rows] == [("' a' 0.5", "0.9"), ("' z' 0.75", "0.6")]


@pytest.mark.parametrize("scheme", HEADS)
def test_a_round_without_a_draft_says_why(scheme: str) -> None:
    story = Story("x", scheme=scheme)
    story.add((), 0, "b", evidence=Evidence(message="No room."))
    panel = scheme_view(story.trace(), 0)
    assert "No room." in panel.lines
    assert not panel.excerpt


@pytest.mark.parametrize("scheme", HEADS)
@pytest.mark.parametrize("text", HOSTILE)
def test_i3_hostile_tokens_stay_text(scheme: str, text: str) -> None:
    story = Story("x", scheme=scheme)
    other = story.spell(text + "?")
    evidence = Evidence(scores=(0.5,), unbiased=(other,), unbiased_scores=(0.5,))
    story.add([text], 0, "y", evidence=evidence)
    excerpt = scheme_view(story.trace(), 0).excerpt
    assert set(re.findall(r"<(/?\w+)", excerpt)) <= {
        f"{slash}{name}" for slash in ("", "/") for name in ("div", "span", "small")
    }
    assert not re.search(r"<[^>]*\son\w+=", excerpt)
