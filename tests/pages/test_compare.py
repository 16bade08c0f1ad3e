"""The Compare page, driven as a reader would, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.bench.sweep import Sweep
from specviz.bench.sweep_log import Memory
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.models.load import load
from specviz.ui.sweep_job import Work
from specviz.views.compare_charts import race_reading
from specviz.views.compare_replay import replay
from tests.pages.conftest import until

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def work(model):
    """A finished comparison of a tiny model."""
    loaded = load(str(model), device="cpu", dtype="float32")
    plan = Plan(prompts=(Prompt("a", "copy", "abab"),), schemes=("ngram",), lengths=(2,),
                tokens=8, repeats=1, rows=0)  # fmt: skip
    work = Work(plan=plan, log=Memory(), status="done")
    list(Sweep(loaded, plan, work.log))
    return work


def page(**query: object) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    test.switch_page("pages/compare.py")
    for key, value in query.items():
        test.query_params[key] = str(value)
    test.run()
    assert not test.exception, test.exception
    return test


def text(test: AppTest) -> str:
    parts = (*test.markdown, *test.caption, *test.info, *test.warning, *test.error)
    return "\n".join(item.value for item in parts).replace("\\", "")


def test_a_comparison_runs_and_every_run_can_be_looked_into(model, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    test = page(target=model, prompts="own", text="abab", schemes="ngram", max=8, repeats=1)
    assert "Nothing was compared yet" in text(test)
    test.button(key="compare-start").click().run()
    work = test.session_state["compare_work"]
    until(lambda: not work.active)
    assert (work.status, work.failure) == ("done", "")
    test.run()
    assert not test.exception
    said = text(test)  # by how much of this machine others use
    assert "too few prompts for a verdict" in said or "the machine was busy" in said
    assert "is done first" in text(test)
    assert len(test.get("bidi_component")) >= 1
    charts = [*test.get("vega_lite_chart"), *test.get("arrow_vega_lite_chart")]
    assert [len(c.proto.alt) > 30 for c in charts] == [True]
    test.button(key="compare-open").click().run()
    assert test.session_state["specviz"].run.origin == "opened"


def test_the_replay_holds_every_token_at_the_time_its_round_ended(work):
    traces = {scheme: trace for (scheme, _prompt), trace in work.log.traces.items()}
    data = replay(traces)
    assert [lane["scheme"] for lane in data["lanes"]] == ["none", "ngram"]
    for lane, trace in zip(data["lanes"], traces.values(), strict=True):
        cells = [cell for each in lane["rounds"] for cell in each["cells"]]
        assert [at for _text, _code, at in cells] == list(range(len(trace.output)))
        ends = [each["end"] for each in lane["rounds"]]
        assert ends == sorted(ends)
        assert ends[-1] == pytest.approx(sum(r.timing.total for r in trace.rounds))
        assert lane["seconds"] <= data["duration"]


def test_the_reading_names_who_is_done_first(work):
    runs = {scheme: trace.rounds for (scheme, _prompt), trace in work.log.traces.items()}
    first = min(runs, key=lambda s: sum(r.timing.total for r in runs[s]))
    wanted = {"none": "plain decoding", "ngram": "n-gram"}[first]
    assert race_reading(runs).startswith(f"On this prompt {wanted} is done first")


def test_an_empty_own_prompt_is_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    test = page(prompts="own")
    assert "The prompt is empty" in text(test)
    assert test.button(key="compare-start").disabled
