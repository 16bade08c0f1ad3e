"""Two runs locked at one place of the text; where they part, and by how much."""

from dataclasses import replace

from specviz.events import Candidate, Row
from specviz.traces.diff import compare, settings
from specviz.traces.timeline import Cursor
from tests.traces.samples import trace_of
from tests.views.stories import Story


def written(*rounds, last_rows=()):
    story = Story("p")
    for drafts, accepted, last in rounds:
        story.add(drafts, accepted, last)
    trace = story.trace()
    if last_rows:
        trace = replace(
            trace, rounds=(*trace.rounds[:-1], replace(trace.rounds[-1], rows=last_rows))
        )
    return trace


ONE = written(([" a", " b"], 2, " c"), ([" d"], 1, " e"))


def test_equal_texts_have_no_divergence_whatever_their_rounds():
    other = written(([], 0, " a"), ([" b"], 1, " c"), ([" d", "x"], 1, " e"))
    found = compare(ONE, other)
    assert found.divergence is None
    assert found.stops == (0, 2, 6, 10)


def test_both_runs_stand_at_the_same_place_of_the_text():
    other = written(([], 0, " a"), ([" b"], 1, " c"), ([" d", "x"], 1, " e"))
    found = compare(ONE, other)
    assert found.at(0) == (Cursor(0), Cursor(0))
    assert found.at(2) == (Cursor(0), Cursor(1))
    assert found.at(6) == (Cursor(1), Cursor(2))
    assert found.at(10) == (Cursor(2), Cursor(3))


def test_the_first_difference_is_told_by_byte_token_round_and_node():
    other = written(([" a", " b"], 2, " c"), ([" x"], 1, " e"))
    at = compare(ONE, other).divergence
    assert at.byte == 7
    assert (at.left.index, at.left.text, at.left.round, at.left.node) == (3, " d", 1, 0)
    assert (at.right.index, at.right.text) == (3, " x")


def test_models_with_other_tokens_are_compared_by_bytes():
    """The same text in other pieces is no divergence; the first other byte is."""
    same = written(([" a b"], 1, " c d"), ([], 0, " e"))
    assert compare(ONE, same).divergence is None
    other = written(([" a b"], 1, " c x"), ([], 0, " e"))
    at = compare(ONE, other).divergence
    assert at.byte == 7
    assert (at.left.index, at.right.index) == (3, 1)
    assert at.right.text == " c x"


def test_a_run_that_ends_first_has_no_token_there():
    at = compare(ONE, written(([" a", " b"], 2, " c"))).divergence
    assert at.byte == 6
    assert (at.right.token, at.right.round) == (None, None)
    assert at.left.text == " d"


def test_c1_each_runs_own_margin_is_told_where_it_was_recorded():
    """By bytes: the two stories give their tokens other ids."""
    other = written(([" a", " b"], 2, " c"), ([" x"], 1, " e"))
    mine = ONE.rounds[1].draft.tokens[0]
    row = Row(mine, 1.0, None, (Candidate(mine, 0.6, 0.0, -0.5), Candidate(9, 0.4, 0.0, -0.9)))
    rounds = (ONE.rounds[0], replace(ONE.rounds[1], rows=(row, row)))
    left = replace(ONE, rounds=rounds, pieces={**ONE.pieces, 9: b" x"})
    at = compare(left, other).divergence
    assert abs(at.left.margin - 0.4) < 1e-9
    assert at.right.margin is None


def test_the_stop_shows_the_divergence_in_both_runs():
    other = written(([" a"], 1, " b"), ([" c"], 1, " x"))
    found = compare(ONE, other)
    assert found.divergence.byte == 7
    left, right = found.at(found.stop_of(found.divergence.byte))
    assert (left.rounds, right.rounds) == (2, 2)


def test_settings_that_differ_are_named():
    one = trace_of()
    two = replace(one, params=replace(one.params, seed=7), chat=False)
    assert [(s.name, s.left, s.right) for s in settings(one, two)] == [
        ("chat", "True", "False"),
        ("seed", "0", "7"),
    ]
    assert settings(one, one) == ()
