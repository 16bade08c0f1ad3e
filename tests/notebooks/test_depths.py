"""Exercise checks of notebook 8."""

import pytest

from specviz.notebook.exercises import depths


def length(rates, d):
    total = alive = 1.0
    for rate in rates[:d]:
        alive *= rate
        total += alive
    return total


def best(rates, cost):
    return max(range(len(rates) + 1), key=lambda d: (length(rates, d) / (1 + cost * d), -d))


def sums(rates, cost):
    return max(range(len(rates) + 1), key=lambda d: (sum(rates[:d]) / (1 + cost * d), -d))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n: [(i, i, i + 1) for i in range(n - 1)], "already knows the token"),
        (lambda n: [(i, i + 1, i + 1) for i in range(n - 1)], "no guess"),
        (lambda n: [(i, i + 1, i + 2) for i in range(n)], "past the end"),
        (lambda n: [(i, i + 1, i + 2) for i in range(1, n - 2)], "Every position"),
        (lambda n: [(i, i + 1) for i in range(n - 1)], "triple"),
        (lambda n: [(i, i + 2, i + 3) for i in range(n - 3)], "Every position"),
    ],
)
def test_wrong_rows_are_told_why(answer, reason):
    verdict = depths.rows(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda rates, cost: len(rates), "Too long"),
        (lambda rates, cost: 9, "from 0 to the number"),
        (sums, "the rates multiply"),
        (lambda rates, cost: 1, "Too short"),
    ],
)
def test_a_wrong_length_is_told_why(answer, reason):
    verdict = depths.best_length(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_right_answers_pass():
    assert depths.rows(lambda n: [(i, i + 1, i + 2) for i in range(n - 2)])
    assert depths.best_length(best)
