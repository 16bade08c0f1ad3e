"""The Sweep page, driven as a reader would, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.bench.sweep import sweep
from specviz.bench.sweep_log import FILE, Folder, default_folder
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.bench.sweep_prompts import own_prompt
from specviz.models.load import load
from tests.pages.conftest import until

ROOT = Path(__file__).parents[2]
WORK = "sweep_work"


class Page:
    """One browser tab on the page, with a small sweep of a tiny model set up."""

    def __init__(self, target: object = "", **query: object) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
        self.test.switch_page("pages/sweep.py")
        small = {"schemes": "ngram", "D": "1-2", "classes": "copy", "max": "8", "repeats": "1"}
        for key, value in ({**small, "target": target} | query).items():
            self.test.query_params[key] = str(value)
        self.draw()

    def draw(self) -> "Page":
        self.test.run()
        assert not self.test.exception, self.test.exception
        return self

    def press(self, key: str) -> "Page":
        self.test.button(key=key).click()
        return self.draw()

    @property
    def work(self):
        return self.test.session_state[WORK]

    @property
    def text(self) -> str:
        parts = (*self.test.markdown, *self.test.caption, *self.test.info, *self.test.warning)
        return "\n".join(item.value for item in (*parts, *self.test.error)).replace("\\", "")

    @property
    def charts(self) -> list[object]:
        return [*self.test.get("vega_lite_chart"), *self.test.get("arrow_vega_lite_chart"),
                *self.test.get("plotly_chart")]  # fmt: skip


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def measured(cache, model):
    """A finished sweep with every way to turn G, made without the page."""
    loaded = load(str(model), device="cpu", dtype="float32")
    prompts = (Prompt("a", "copy", "abab"), own_prompt("hello", "b", "chat"))
    plan = Plan(prompts=prompts, schemes=("ngram",), lengths=(1, 2), tokens=8, repeats=1, rows=3,
                groups=("exact", "twin", "kernel"))  # fmt: skip
    folder = default_folder(plan, str(model))
    sweep(loaded, plan, Folder(folder))
    return folder


def test_a_sweep_runs_beside_the_page_and_its_points_appear(cache, model):
    page = Page(model, D="1-1", per_class=1)
    assert "Nothing is measured" in page.text
    page.press("sweep-start")
    until(lambda: not page.work.active)
    assert (page.work.status, page.work.failure) == ("done", "")
    page.draw()
    # by how much of this machine others use
    assert "too few prompts for a verdict" in page.text or "the machine was busy" in page.text
    assert len(page.charts) >= 2
    assert page.test.button(key="sweep-start").label == "Resume"


def test_what_a_kill_left_is_shown_and_gone_on_with(measured, model):
    page = Page(model)
    assert page.work.status == "stopped"
    assert "measured on" in page.text
    names = [item.label for item in page.test.expander]
    charts = ("speedup", "length", "classes", "verify", "prediction", "groups", "map", "kernel")
    assert names.count("Numbers") == len(charts)
    assert len(page.charts) == len(charts)
    for chart in page.charts:
        assert len(chart.proto.alt) > 30
    assert "Filled marks are exact" in page.text
    assert "G (1 + D) = 128" in page.text


def test_a_point_opens_its_trace_in_step(measured, model):
    page = Page(model)
    page.press("sweep-open")
    state = page.test.session_state["specviz"]
    assert state.run.origin == "opened"
    assert state.run.trace().config.scheme == "ngram"


def test_measuring_anew_keeps_what_was_measured_aside(measured, model):
    page = Page(model, classes="copy", D="1-1")
    page.press("sweep-anew")
    until(lambda: not page.work.active)
    assert len(list(measured.parent.glob("*/" + FILE))) == 2


def test_settings_that_make_no_plan_are_explained(cache):
    page = Page(schemes="")
    assert "at least one" in page.text
    assert page.test.button(key="sweep-start").disabled


def test_schemes_without_a_head_come_with_the_reason(cache, monkeypatch, tmp_path):
    monkeypatch.setattr("specviz.checkpoints.SHIPPED", tmp_path)
    page = Page(schemes="ngram,dflash")
    assert "no head for SmolLM2-135M-Instruct is shipped" in page.text
    assert page.test.multiselect(key="sweep_schemes").value == ["ngram"]


def test_what_a_link_cannot_mean_is_said(cache):
    page = Page(D="0-900", T="hot", nobody="1")
    assert "D = '0-900'; allowed: 1 to 32" in page.text
    assert "T = 'hot'; allowed: 0 to 2" in page.text
