"""Exercise checks of notebook 11."""

from math import ceil

import pytest

from specviz.notebook.exercises import tiles


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda group, tile: tile // group, "forgot the root"),
        (lambda group, tile: tile / group - 1, "whole number"),
        (lambda group, tile: tile // group - 1, "always a root row"),
        (lambda group, tile: max(0, ceil(tile / group) - 1), "130 rows are asked for"),
        (lambda group, tile: max(0, tile // group - 2), "would still fit"),
        (lambda group, tile: max(0, 128 // group - 1), "more than a tile has"),
    ],
)
def test_a_wrong_length_is_told_why(answer, reason):
    verdict = tiles.longest_free(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda group, tokens, tile: -(-group * tokens // tile), "if tokens could be split"),
        (lambda group, tokens, tile: tokens / (tile // group), "is begun is a whole tile"),
        (lambda group, tokens, tile: tokens // (tile // group), "Round up"),
        (lambda group, tokens, tile: tokens, "First ask"),
    ],
)
def test_a_wrong_number_of_tiles_is_told_why(answer, reason):
    verdict = tiles.blocks(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_right_answers_pass():
    assert tiles.longest_free(lambda group, tile: max(0, tile // group - 1))
    assert tiles.blocks(lambda group, tokens, tile: -(-tokens // (tile // group)))
