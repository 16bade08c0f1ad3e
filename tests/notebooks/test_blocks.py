"""Exercise checks of notebook 9."""

from collections import Counter

import pytest

from specviz.notebook.exercises import blocks


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n, r: [[True] * (n + i + 1) + [False] * (r - i - 1) for i in range(r)], "word by"),
        (lambda n, r: [[False] * n + [True] * r] * r, "all of the text"),
        (lambda n, r: [[True] * n + [j == i for j in range(r)] for i in range(r)], "word by word"),
        (lambda n, r: [[True] * n + [j != i for j in range(r)] for i in range(r)], "themselves"),
        (lambda n, r: [[True] * (n + r)], "4 lists of 7 bools"),
    ],
)
def test_a_wrong_mask_is_told_why(answer, reason):
    verdict = blocks.block_mask(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def independent(pairs):
    first, second = Counter(), Counter()
    for (a, b), chance in pairs.items():
        first[a] += chance
        second[b] += chance
    return sum(first[a] * second[b] for a, b in pairs)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda pairs: 1.0, "A block cannot"),
        (lambda pairs: sum(c * c for c in pairs.values()), "several pairs"),
        (lambda pairs: 2.0, "from 0 to 1"),
        (lambda pairs: 0.25, "Sum over the pairs"),
    ],
)
def test_a_wrong_chance_is_told_why(answer, reason):
    verdict = blocks.makes_sense(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_right_answers_pass():
    assert blocks.block_mask(lambda n, r: [[True] * (n + r)] * r)
    assert blocks.makes_sense(independent)
    assert independent({("of", "course"): 0.5, ("no", "problem"): 0.5}) == 0.5
