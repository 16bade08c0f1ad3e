"""Counts of penalties, row by row."""

from specviz.views.counts import penalty_counts
from tests.views.stories import Story


def test_e6_each_row_counts_the_drafts_before_it():
    story = Story(" hello", " you").add((), 0, " hello").add([" hello"] * 3, 1, " you")
    shown = penalty_counts(story.trace(), 1)
    assert shown.rows == (
        ("1", "' hello'", "2", "1", "accepted"),
        ("2", "' hello'", "3", "2", "rejected"),
        ("3", "' hello'", "4", "3", "never checked"),
    )
    assert len(shown.columns) == 5


def test_e6_a_round_without_drafts_has_nothing_to_count():
    assert penalty_counts(Story("x").add((), 0, "y").trace(), 0).rows == ()
