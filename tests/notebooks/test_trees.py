"""Exercise checks of notebook 7: each wrong answer is told what is wrong with it."""

import pytest

from specviz.events import ROOT, Draft
from specviz.metrics.controls import matching
from specviz.notebook.exercises import trees
from specviz.verify.masks import ancestor_mask


def first_child(draft, after):
    node, depth = ROOT, 0
    for token in after:
        below = draft.children(node)
        if not below or draft.tokens[below[0]] != token:
            break
        node, depth = below[0], depth + 1
    return depth


def any_place(draft, after):
    return sum(a == b for a, b in zip(draft.tokens, after, strict=False))


def by_depth(draft, after):
    """Ignores parents: any node of the next depth will do."""
    depth = 0
    levels = list(zip(draft.depths, draft.tokens, strict=True))
    while depth < len(after) and (depth + 1, after[depth]) in levels:
        depth += 1
    return depth


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda draft, after: len(draft), "first token is wrong"),
        (any_place, "Stop at the first wrong token"),
        (lambda draft, after: 1 if matching(draft, after) else 0, "make 2"),
        (first_child, "every child"),
        (by_depth, "only children of the node reached"),
        (lambda draft, after: after.index(9), "raised ValueError"),
    ],
)
def test_a_wrong_count_is_told_why(answer, reason):
    verdict = trees.matched(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def mask(parents):
    return ancestor_mask(Draft(tuple(range(len(parents))), parents)).tolist()


def without_root(parents):
    return [row[1:] for row in mask(parents)[1:]]


def causal(parents):
    rows = 1 + len(parents)
    return [[j <= i for j in range(rows)] for i in range(rows)]


def parent_only(parents):
    rows = 1 + len(parents)
    sees = [[j in (0, i) for j in range(rows)] for i in range(rows)]
    for node, parent in enumerate(parents):
        sees[node + 1][parent + 1] = True
    return sees


def everything(parents):
    return [[True] * (1 + len(parents))] * (1 + len(parents))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (without_root, "do not forget the root"),
        (causal, "different branches"),
        (parent_only, "not only its parent"),
        (everything, "comes after it"),
        (
            lambda parents: [
                [s and i != j for j, s in enumerate(r)] for i, r in enumerate(mask(parents))
            ],
            "itself",
        ),
    ],
)
def test_a_wrong_mask_is_told_why(answer, reason):
    verdict = trees.visible(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_right_answers_pass_and_open_ones_are_open():
    assert trees.matched(matching)
    assert trees.visible(mask)
    assert trees.matched(lambda draft, after: ...).state == "open"
    assert trees.visible(...).state == "open"
