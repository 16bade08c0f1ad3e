"""Checks of notebooks 1 to 6: right answers pass, typical wrong ones are told why."""

import pytest
import torch

from specviz import recordings
from specviz.models.load import load as load_model
from specviz.notebook.exercises import (
    costs,
    decisions,
    draft_models,
    lengths,
    lookup,
    lossless,
)
from specviz.traces.store import load

SECONDS = {1: 0.040, 5: 0.050}
FOLLOWS = {"the rule": True, "keep all": False, "again from p": False, "match": True}


@pytest.fixture(scope="module")
def chat():
    return load(recordings.path("ngram-chat"))


def plus(p, q):
    return [max(a - b, 0) for a, b in zip(p, q, strict=True)]


def normal(values):
    return [value / sum(values) for value in values]


def residual(p, q):
    left = plus(p, q)
    return normal(left) if sum(left) else p


def find(tokens, n, budget, start=None, order=1):
    tail = tokens[-n:]
    for end in range(n, len(tokens))[::order]:
        if tokens[end - n : end] == tail:
            at = end if start is None else end + start
            return tokens[at : at + budget]
    return ()


def chi(counts, p, *, power=2, of="expected"):
    n = sum(counts)
    below = {"expected": lambda s, e: e, "seen": lambda s, e: s, "nothing": lambda s, e: 1}[of]
    return sum((s - n * x) ** power / below(s, n * x) for s, x in zip(counts, p, strict=True))


RIGHT = {
    "always": lambda: decisions.always({"c", "d"}),
    "accept": lambda: decisions.accept(lambda p, q, x, u: u * q[x] < p[x]),
    "residual": lambda: decisions.residual(residual),
    "rate": lambda: decisions.rate(0.6),
    "parts": lambda: lossless.parts((0.1, 0.3)),
    "statistic": lambda: lossless.statistic(chi),
    "survivors": lambda: lossless.survivors({"the rule", "match"}, FOLLOWS),
    "speedup": lambda: lengths.speedup(lambda length, verify, draft: length / (verify + draft)),
    "ceiling": lambda: lengths.ceiling(2.5, 0.6),
    "needed": lambda: lengths.needed(2.2, verify=1.2, each=0.25, length=4),
    "lookup": lambda: lookup.lookup(find),
    "ties": lambda: lookup.ties(("C", "D")),
    "gain": lambda: costs.gain(4.0, SECONDS),
    "model passes": lambda: draft_models.passes(3, 3),
    "unread": lambda: draft_models.unread(2),
    "most": lambda: draft_models.most(0.1, 1.4, 1.1, 3),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_are_right(name):
    verdict = RIGHT[name]()
    assert verdict, verdict
    assert verdict.reason.endswith((".", "?"))


WRONG = [
    (lambda: decisions.always({"a", "c", "d"}), "proposed more often"),
    (lambda: decisions.always({"d"}), "nothing has to go"),
    (lambda: decisions.always({"e", "c", "d"}), "no symbol e"),
    (lambda: decisions.accept(lambda p, q, x, u: u < p[x]), "u = 0.2"),
    (lambda: decisions.accept(lambda p, q, x, u: u > p[x] / q[x]), "keep"),
    (lambda: decisions.accept(lambda p, q, x, u: u < p[0] / q[0]), "drafted symbol x"),
    (lambda: decisions.accept(lambda p, q, x, u: u <= p[x] / q[x]), "p = 0"),
    (lambda: decisions.accept(lambda p, q, x, u: True), "above it: reject"),
    (lambda: decisions.residual(plus), "divide by the sum"),
    (
        lambda: decisions.residual(lambda p, q: [a - b for a, b in zip(p, q, strict=True)]),
        "negativ",
    ),
    (lambda: decisions.residual(lambda p, q: p), "p itself"),
    (
        lambda: decisions.residual(
            lambda p, q: normal([abs(a - b) for a, b in zip(p, q, strict=True)])
        ),
        "not |p - q|",
    ),
    (lambda: decisions.residual(lambda p, q: normal(plus(p, q))), "ZeroDivisionError"),
    (lambda: decisions.residual(lambda p, q: [1.0]), "four symbols"),
    (lambda: decisions.rate(0.2), "independent"),
    (lambda: decisions.rate(0.4), "rejected"),
    (lambda: decisions.rate(0.729), "weigh"),
    (lambda: decisions.rate(0.5), "Add q times"),
    (lambda: lossless.parts((0.4, 0.0)), "10 of 100"),
    (lambda: lossless.parts((0.2, 0.3)), "proposed (q) and kept"),
    (lambda: lossless.parts((0.1, 0.75)), "residual of d"),
    (lambda: lossless.parts((0.1, 0.4)), "how often is a draft rejected"),
    (lambda: lossless.parts(0.4), "TypeError"),
    (lambda: lossless.statistic(lambda c, p: chi(c, p, of="nothing")), "Divide each square"),
    (lambda: lossless.statistic(lambda c, p: chi(c, p, of="seen")), "not by what was seen"),
    (lambda: lossless.statistic(lambda c, p: chi(c, p, power=1)), "Square"),
    (lambda: lossless.statistic(lambda c, p: chi(c, p) / sum(c)), "counts, not shares"),
    (lambda: lossless.survivors({"the rule", "keep all", "match"}, FOLLOWS), "'keep all' does not"),
    (lambda: lossless.survivors({"the rule"}, FOLLOWS), "'match' follows p too"),
    (lambda: lossless.survivors({"rule"}, FOLLOWS), "no rule 'rule'"),
    (lambda: lengths.speedup(lambda length, verify, draft: length / verify), "drafting"),
    (lambda: lengths.speedup(lambda length, verify, draft: length), "more rows"),
    (lambda: lengths.speedup(lambda length, verify, draft: max(1, length / (verify + draft))), "1"),
    (lambda: lengths.ceiling(1.5, 0.6), "own token"),
    (lambda: lengths.ceiling(1.6, 0.6), "D = 1"),
    (lambda: lengths.ceiling(1001, 0.6), "without end"),
    (lambda: lengths.ceiling(2, 0.6), "Add 1"),
    (lambda: lengths.needed(1.45, verify=1.2, each=0.25, length=4), "each draft"),
    (lambda: lengths.needed(1.2, verify=1.2, each=0.25, length=4), "cost time"),
    (lambda: lengths.needed(2.0, verify=1.2, each=0.25, length=4), "not 1"),
    (lambda: lookup.lookup(lambda t, n, b: find(t, n, b, order=-1)), "earliest"),
    (lambda: lookup.lookup(lambda t, n, b: find(t, n, len(t))), "budget"),
    (lambda: lookup.lookup(lambda t, n, b: find(t, n, n, start=-n)), "matched tokens"),
    (lambda: lookup.lookup(lambda t, n, b: t[:b]), "For (1, 2, 3, 4, 1, 2)"),
    (lambda: lookup.lookup(lambda t, n, b: ()), "do occur earlier"),
    (lambda: lookup.ties(("D", "C")), "other way round"),
    (lambda: lookup.ties(("A", "B")), "what came after"),
    (lambda: lookup.ties(("X", "D")), "twice"),
    (lambda: costs.gain(3.2, SECONDS), "own token"),
    (lambda: costs.gain(0.25, SECONDS), "Upside down"),
    (lambda: costs.gain(5, SECONDS), "what you measured"),
    (lambda: costs.gain(2, SECONDS), "Divide"),
    (lambda: draft_models.passes(1, 3), "block drafter"),
    (lambda: draft_models.passes(4, 3), "target's pass"),
    (lambda: draft_models.passes(7, 3), "D = 3"),
    (lambda: draft_models.unread(1), "own last draft"),
    (lambda: draft_models.unread(0), "bonus"),
    (lambda: draft_models.unread(4), "second and third"),
    (lambda: draft_models.unread(9), "Go through"),
    (lambda: draft_models.most(0.4 / 3, 1.4, 1.1, 3), "not 1"),
    (lambda: draft_models.most(0.3, 1.4, 1.1, 3), "the cost of one"),
    (lambda: draft_models.most(1.0, 1.4, 1.1, 3), "solve"),
]


@pytest.mark.parametrize(("check", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_wrong_answers_are_told_why(check, reason):
    verdict = check()
    assert verdict.state == "wrong"
    assert reason in verdict.reason


def test_counts_of_a_run(chat):
    drafted = sum(len(event.draft) for event in chat.rounds)
    accepted = sum(len(event.path) for event in chat.rounds)
    refused = sum(event.fates.count("rejected") for event in chat.rounds)
    rounds = len(chat.rounds)
    assert lookup.wasted(drafted - accepted, chat)
    assert "scored too" in lookup.wasted(refused, chat).reason
    assert "accepted" in lookup.wasted(drafted, chat).reason
    assert "others" in lookup.wasted(accepted, chat).reason
    assert "take away" in lookup.wasted(-1, chat).reason
    assert costs.passes(rounds, chat)
    assert "one token" in costs.passes(1, chat).reason
    together = len(chat.prompt) + len(chat.output)
    assert "read together" in costs.passes(together, chat).reason
    assert "first token" in costs.passes(len(chat.output) - 1, chat).reason
    assert "Count the rounds" in costs.passes(7, chat).reason


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_megabytes_of_a_pass_are_those_of_the_dtype_it_is_held_in(
    embedded_model, monkeypatch, dtype
):
    held = load_model(dtype=dtype)
    monkeypatch.setattr(costs, "model", lambda: held)
    size = {"bfloat16": 2, "float32": 4}[dtype]
    assert costs.megabytes(134.5 * size)
    for answer, reason in (
        (134.5, f"here each has {size} bytes"),
        (134.5 * (6 - size), f"{8 * size} bits"),
        (134_515_008 * size, "millions of bytes"),
        (134.5 * 8 * size, "megabits"),
        (98, "Multiply"),
    ):
        assert reason in costs.megabytes(answer).reason


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (lambda: lookup.lookup(lambda *given: undefined), "raised NameError"),  # noqa: F821
        (lambda: lookup.lookup(lambda *given: [][3]), "raised IndexError"),
        (lambda: draft_models.unread(torch.ones(2)), "raised RuntimeError"),
        (lambda: lengths.speedup(lambda *given: 1 / 0), "raised ZeroDivisionError"),
        (lambda: decisions.accept(7), "raised TypeError"),
    ],
)
def test_an_answer_that_raises_is_told_what_it_raised(verdict, reason):
    assert verdict().state == "wrong"
    assert reason in verdict().reason


@pytest.mark.parametrize("nothing", [..., None, lambda *given: ..., lambda *given: None])
def test_what_is_not_answered_is_neither_right_nor_wrong(nothing):
    verdict = lengths.speedup(nothing)
    assert verdict.state == "open"
    assert not verdict
    assert "..." in verdict.reason
    assert verdict.reason in verdict._repr_html_()


def test_what_an_answer_says_is_text_and_never_markup():
    verdict = lossless.survivors({"<script>"}, FOLLOWS)
    assert "<script>" not in verdict._repr_html_()
    assert "&lt;script&gt;" in verdict._repr_html_()
