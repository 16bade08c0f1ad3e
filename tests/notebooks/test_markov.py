"""Exercise checks of notebook 10, and the example of DSpark's appendix."""

import pytest

from specviz.notebook.exercises import markov


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda base, before, w1, w2: w2 @ w1[before], "bias alone"),
        (lambda base, before, w1, w2: base, "block alone"),
        (lambda base, before, w1, w2: base - w2 @ w1[before], "not taken away"),
        (lambda base, before, w1, w2: base.add_(w2 @ w1[before]), "changes `base` itself"),
        (lambda base, before, w1, w2: w1[before], "one number per draft token"),
        (lambda base, before, w1, w2: base + w2 @ w1[before - 1], "Take row"),
        (lambda base, before, w1, w2: base @ w1, "Torch says: mat1 and mat2"),
    ],
)
def test_a_wrong_correction_is_told_why(answer, reason):
    verdict = markov.corrected(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def replaced_from_p(p, q, verified):
    """Draws from p after a refusal, where the residual belongs."""
    out = dict.fromkeys(p, 0.0)
    for y in q:
        accept = min(1, p[y] / q[y]) if verified[y] else 0
        out[y] += q[y] * accept
        for x in p:
            out[x] += q[y] * (1 - accept) * p[x]
    return out


def cut_to_residual(p, q, verified):
    """Draws from the residual also where the draft was never judged."""
    out = dict.fromkeys(p, 0.0)
    left = {x: max(p[x] - q[x], 0) for x in p}
    for y in q:
        accept = min(1, p[y] / q[y]) if verified[y] else 0
        out[y] += q[y] * accept
        for x in p:
            out[x] += q[y] * (1 - accept) * left[x] / sum(left.values())
    return out


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda p, q, verified: dict(p), "this rule looked at y"),
        (lambda p, q, verified: dict(q), "must be replaced"),
        (lambda p, q, verified: {x: min(p[x], q[x]) for x in p}, "sums to"),
        (lambda p, q, verified: {"A": 1.0}, "every token of p"),
        (replaced_from_p, "from max(p - q, 0)"),
        (cut_to_residual, "never judged"),
    ],
)
def test_a_wrong_distribution_is_told_why(answer, reason):
    verdict = markov.output(answer)
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_a_cut_that_looks_at_the_draft_changes_the_text():
    p, q = {"A": 0.7, "B": 0.3}, {"A": 0.5, "B": 0.5}
    for verified in ({"A": True, "B": True}, {"A": False, "B": False}):
        assert markov.committed(p, q, verified) == pytest.approx(p)
    peeked = markov.committed(p, q, {"A": True, "B": False})
    assert peeked == pytest.approx({"A": 0.85, "B": 0.15})


def test_right_answers_pass():
    assert markov.corrected(lambda base, before, w1, w2: base + w2 @ w1[before])
    assert markov.output(markov.committed)
