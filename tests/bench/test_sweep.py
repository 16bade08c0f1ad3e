"""A small sweep of a tiny model, and what its file promises."""

import json
from dataclasses import replace

import pytest

from specviz.bench.sweep import Sweep, sweep
from specviz.bench.sweep_log import FILE, TRACES, Folder, Memory, read
from specviz.bench.sweep_plan import Decode, Passes, Plan, Prompt
from specviz.bench.sweep_points import points
from specviz.bench.sweep_report import as_csv, as_json, lines, profile, write
from specviz.cost.acceptance import from_file
from specviz.errors import ConfigError
from specviz.traces.store import load as load_trace

PLAN = Plan(
    prompts=(Prompt("a", "copy", "abab"), Prompt("b", "chat", "hello")),
    schemes=("ngram", "eagle3"),
    lengths=(1, 2),
    tokens=6,
    repeats=1,
    rows=3,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sweeps") / "one"


@pytest.fixture(scope="module")
def results(loaded, folder):
    return sweep(loaded, PLAN, Folder(folder)).results


def test_every_setting_is_measured_beside_plain_decoding(results):
    measured = {(s.cell.scheme, s.cell.draft_length, s.prompt) for s in results.samples}
    wanted = (("none", 0), ("ngram", 1), ("ngram", 2))
    assert measured == {(s, d, p) for p in "ab" for s, d in wanted}
    for prompt in "ab":
        orders = [s.order for s in results.samples if s.prompt == prompt]
        plain = [s.order for s in results.samples if s.prompt == prompt and s.cell.scheme == "none"]
        assert (plain[0], plain[-1]) == (min(orders), max(orders))


def test_a_scheme_without_a_head_is_named_with_the_reason(results):
    assert list(results.unavailable) == ["eagle3"]
    assert "needs a head" in results.unavailable["eagle3"]


def test_only_schemes_that_cannot_draft_are_refused(loaded):
    with pytest.raises(ConfigError, match="needs a head"):
        Sweep(loaded, replace(PLAN, schemes=("mtp",)), Memory())


def test_what_is_in_the_file_is_never_measured_again(loaded, folder, results):
    again = Sweep(loaded, PLAN, Folder(folder))
    assert again.todo == []
    assert again.total > 0
    more = Sweep(loaded, replace(PLAN, lengths=(1, 2, 4)), Folder(folder))
    assert {t.cell.draft_length for t in more.todo if isinstance(t, Decode)} <= {4, 0}


def test_a_kill_in_the_middle_of_a_line_loses_that_line_only(loaded, folder, results, tmp_path):
    whole = (folder / FILE).read_bytes()
    at = whole.index(b'"kind": "sample"', whole.index(b'"kind": "sample"') + 1) + 40
    (tmp_path / TRACES).mkdir()
    (tmp_path / FILE).write_bytes(whole[:at])
    log = Folder(tmp_path)
    assert len(log.results.samples) == 1
    resumed = Sweep(loaded, replace(PLAN, rows=0), log)
    next(iter(resumed))
    assert len(read(tmp_path / FILE).samples) == 2
    assert (tmp_path / FILE).read_bytes().startswith(whole[:at])


def test_a_file_of_another_setting_is_not_mixed_with_this_one(loaded, folder, results):
    with pytest.raises(ConfigError, match="another model, machine or setting"):
        Sweep(loaded, replace(PLAN, tokens=7), Folder(folder))


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / FILE).write_text("not a sweep\n")
    with pytest.raises(ConfigError, match="no file of a sweep"):
        Folder(tmp_path)


def test_stopping_keeps_nothing_unfinished(loaded):
    asked = iter([False, False, False, True])
    stopped = Sweep(loaded, PLAN, Memory(), stop=lambda: next(asked, True))
    assert list(stopped) == []
    assert stopped.log.results.length == 0


def test_each_point_has_its_trace(folder, results):
    named = [s for s in results.samples if s.trace]
    assert len(named) == 6
    for sample in named:
        trace = load_trace(folder / TRACES / sample.trace)
        assert trace.config.draft_length == sample.cell.draft_length
        assert sum(r.acceptance_length for r in trace.rounds) == sample.tokens


def test_a_point_has_measured_and_predicted_with_the_remainder_between(results):
    for point in points(results.samples, results.passes):
        assert point.low <= point.speedup <= point.high
        assert point.same_text is True
        assert point.predicted is not None
        assert point.error == pytest.approx(point.predicted / point.speedup - 1)


def test_reports_hold_every_point_and_where_it_was_measured(folder, results):
    rows = lines(results)
    wanted = {"scheme", "draft_length", "group_size", "mode", "prompt_class", "acceptance_length",
              "measured_speedup", "interval", "predicted_speedup", "timing"}  # fmt: skip
    assert len(rows) == 2 * 3  # two lengths; two classes and all
    assert all(wanted <= set(row) for row in rows)
    write(results, folder)
    whole = json.loads((folder / "sweep.json").read_text())
    assert whole["sweep"]["environment"]["threads"] == 1
    assert whole["verify"][0]["relative"]["1"] == 1.0
    assert as_csv(results).count("\n") == 1 + len(rows)
    assert json.loads(as_json(results)) == whole


def test_the_profile_is_one_that_the_cost_model_reads(results):
    scheme, found = from_file(profile(results), "speculation_profile.json")
    assert scheme == "ngram"
    assert found.how == "measured"


def test_passes_of_a_stopped_task_are_finished_later(loaded):
    plan, log = replace(PLAN, schemes=("ngram",), lengths=(1,)), Memory()
    for task in Sweep(loaded, plan, log):
        if isinstance(task, Passes):
            break
    log.results.passes.pop()
    todo = Sweep(loaded, plan, log).todo
    assert [t for t in todo if isinstance(t, Passes)]
