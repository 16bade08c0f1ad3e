"""The text twin: what the pane shows, for people who do not see it."""

import pytest

from specviz.events import Finish
from specviz.views.sentences import ending, sentence, text_twin
from tests.views.stories import HOSTILE, Story


def said(story):
    return sentence(story.rounds[-1], story.spell.pieces)


def test_a_round_with_a_refusal_names_both_tokens():
    story = Story("x").add([" a", " b", " cat", " d", " e"], 2, " dog")
    assert said(story) == "Round 1: drafted 5, accepted 2, replaced ' cat' by ' dog'."


def test_rounds_without_refusal_draft_or_ending_read_well():
    assert (
        said(Story("x").add([" a"], 1, "!")) == "Round 1: drafted 1, accepted 1, added bonus '!'."
    )
    assert said(Story("x").add((), 0, "\n")) == ("Round 1: nothing drafted, the target wrote '↵'.")
    assert said(Story("x").add([" a", " b"], 1, None, past_end=1)) == (
        "Round 1: drafted 2, accepted 1, then the text ended."
    )
    assert said(Story("x").add((), 0, "y", kind="forced")) == "Round 1: you put in 'y'."


def test_the_table_has_one_row_per_round():
    story = Story("x").add([" a", " b"], 1, " c").add((), 0, "d")
    twin = text_twin(story.rounds, story.spell.pieces)
    assert twin.rows == (("1", "' a b'", "' a'", "' a c'"), ("2", "", "", "'d'"))
    assert len(twin.sentences) == 2
    assert len(twin.columns) == 4


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_makes_one_line(text):
    assert "\n" not in said(Story("x").add([text], 0, text + "a"))


def test_every_reason_to_end_has_a_sentence():
    reasons = ("stop_token", "stop_string", "length", "context", "cancelled", "error")
    assert len({ending(Finish(reason)) for reason in reasons}) == len(reasons)
    assert ending(None) == ""
    assert ending(Finish("stop_string", "##")).endswith("(##)")
