"""The table of Compare, and what it says of a text that left plain decoding's."""

from dataclasses import replace

import pytest

from specviz.bench.runner import Request, open_session, to_trace
from specviz.bench.sweep import Sweep
from specviz.bench.sweep_log import Memory
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.config import SamplingParams, SessionConfig
from specviz.lossless import replay_plain
from specviz.models.load import load
from specviz.views.compare_table import alarms, columns, departures, rows, same_text
from tests.cli.folders import write_model

PROMPT = Prompt("a", "copy", "abab")
PLAN = Plan(prompts=(PROMPT,), schemes=("ngram",), lengths=(2,), tokens=8, repeats=1, rows=0)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    folder = write_model(tmp_path_factory.mktemp("models") / "tiny", context=1024)
    return load(str(folder), device="cpu", dtype="float32")


@pytest.fixture(scope="module")
def log(loaded):
    log = Memory()
    list(Sweep(loaded, PLAN, log))
    return log


@pytest.fixture(scope="module")
def point(log):
    from specviz.bench.sweep_points import points

    return next(p for p in points(log.results.samples, ()) if p.prompt_class == "all")


@pytest.fixture(scope="module")
def astray(loaded, log):
    """The traces with a run in which another token was put in at output token 3."""
    request = Request(
        prompt=PROMPT.text,
        params=SamplingParams(max_tokens=8),
        config=SessionConfig(scheme="ngram", draft_length=0),
    )
    plain = log.traces["none", "a"].output
    session = open_session(loaded, request)
    while session.finish is None:
        here = len(session.output)
        session.step(forced=(plain[3] + 1) % 250 if here == 3 else None)
    report = replay_plain(session)
    trace = to_trace(session, loaded, request, lossless=report)
    return dict(log.traces) | {("ngram", "a"): trace}, report


def test_plain_decoding_comes_first_and_texts_are_compared(log, point):
    found = rows([point], log.results.samples, log.traces)
    assert {len(row) for row in found} == {len(columns())}
    assert (found[0][0], found[1][0]) == ("plain decoding", "n-gram")
    assert found[1][-1] == "identical"
    assert departures([point], log.traces) == []


def test_a_bug_is_told_with_its_place_both_tokens_and_the_margin(astray, point):
    traces, report = astray
    other = replace(point, same_text=False)
    assert report.kind == "BUG"
    assert same_text(other, traces) == "BUG"
    (said,) = departures([other], traces)
    assert "at output token 3" in said
    assert f"a logit {report.margin:.3g} above" in said
    assert said.endswith("A bug: rounding turns no more than 0.001 in this dtype.")


def test_a_near_tie_is_told_apart_from_a_bug(astray, point):
    traces, report = astray
    wide = replace(report, kind="near-tie", tolerance=report.margin + 1)
    tied = traces | {("ngram", "a"): replace(traces["ngram", "a"], lossless=wide)}
    other = replace(point, same_text=False)
    assert same_text(other, tied) == "near tie on 1 prompt"
    assert "A near tie" in departures([other], tied)[0]


def test_without_a_replay_the_place_is_still_told(astray, point):
    traces, _report = astray
    bare = traces | {("ngram", "a"): replace(traces["ngram", "a"], lossless=None)}
    (said,) = departures([replace(point, same_text=False)], bare)
    assert said.endswith("leaves plain decoding's at output token 3.")


def test_a_run_whose_text_is_another_is_replayed(loaded, log):
    """Plain decoding's text is noted down wrong, so that the drafted one seems to have left it."""
    other = Memory()
    plain = next(s for s in log.results.samples if s.cell.scheme == "none")
    sweep = Sweep(loaded, PLAN, other)
    for task in sweep:
        if task.cell.scheme == "none":
            other.results.samples[:] = [replace(plain, digest="another")]
    assert other.traces["ngram", "a"].lossless is not None
    assert other.traces["ngram", "a"].lossless.kind == "identical"
    assert log.traces["ngram", "a"].lossless is None


def test_a_drafter_that_proposes_nothing_is_named(loaded):
    prompt = Prompt("a", "chat", "abcdefg")
    other = Memory()
    list(Sweep(loaded, replace(PLAN, prompts=(prompt,)), other))
    trace = other.traces["ngram", "a"]
    empty = [r for r in trace.rounds if not len(r.draft)]
    other.traces["ngram", "a"] = replace(trace, rounds=tuple(empty))
    from specviz.bench.sweep_points import points

    (said,) = alarms(points(other.results.samples, ())[-1:], other.traces)
    assert said.startswith("n-gram: No proposals")
    assert alarms(points(other.results.samples, ())[-1:], {}) == []
