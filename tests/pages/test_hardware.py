"""The Hardware fit page, driven as a reader would, without a browser."""

import json
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz import recordings

ROOT = Path(__file__).parents[2]
SECTIONS = ("fit", "tiles", "operating", "buys", "serve", "mechanisms")


class Page:
    """One browser tab on the page."""

    def __init__(self, **query: object) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        self.test.switch_page("pages/hardware.py")
        for key, value in query.items():
            self.test.query_params[key] = str(value)
        self.draw()

    def draw(self) -> "Page":
        self.test.run()
        assert not self.test.exception, self.test.exception
        return self

    def set(self, kind: str, key: str, value: object) -> "Page":
        getattr(self.test, kind)(key=key).set_value(value)
        return self.draw()

    def section(self, name: str) -> "Page":
        return self.set("segmented_control", "hw_section", name)

    @property
    def text(self) -> str:
        parts = (*self.test.markdown, *self.test.caption, *self.test.info, *self.test.warning)
        return "\n".join(item.value for item in (*parts, *self.test.error)).replace("\\", "")

    def metric(self, label: str) -> str:
        return next(item.value for item in self.test.metric if item.label == label)

    @property
    def charts(self) -> list[object]:
        return [*self.test.get("vega_lite_chart"), *self.test.get("arrow_vega_lite_chart"),
                *self.test.get("plotly_chart")]  # fmt: skip


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    return Page()


def test_the_first_screen_answers_for_an_example(page: Page):
    assert page.metric("G") == "4"
    assert page.metric("D* = 128/G - 1") == "31"
    assert page.metric("Speedup").endswith("x")
    assert "The rule D = 128/G - 1 says 31" in page.text
    assert "modelled" in page.text


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_every_kind_of_model_draws(page: Page, section: str):
    page.section(section)
    for model in ("DeepSeek-V3", "Qwen3.5-27B"):
        page.test.number_input(key="hw_tp").set_value(8)
        page.set("selectbox", "hw_model", model)
        assert not page.test.error


def test_every_chart_has_alt_text_a_reading_a_table_and_a_file(page: Page):
    for section, charts in (("fit", 2), ("tiles", 4), ("operating", 1), ("buys", 1)):
        page.section(section)
        assert len(page.charts) == charts
        for chart in page.charts:
            assert len(chart.proto.alt) > 30
        tables = [item for item in page.test.expander if item.label == "Numbers"]
        assert len(tables) == charts
        assert len(page.test.get("download_button")) == charts


def test_a_pasted_config_is_read_and_a_wrong_one_is_explained(page: Page):
    page.set("selectbox", "hw_model", "pasted")
    assert "Paste the config.json" in page.text
    page.set("text_area", "hw_config", "{broken")
    assert "not JSON" in page.text
    page.set("text_area", "hw_config", '{"model_type": "llama"}')
    assert "no num_hidden_layers" in page.text
    config = json.loads((ROOT / "specviz" / "cost" / "models.json").read_text())["Kimi-K2"]
    page.set("text_area", "hw_config", json.dumps(config))
    assert page.metric("G") == "64"
    assert "MLA" in page.text


def test_hostile_names_in_a_config_stay_text(page: Page):
    page.set("selectbox", "hw_model", "pasted")
    config = json.loads((ROOT / "specviz" / "cost" / "models.json").read_text())["Qwen3-8B"]
    config["model_type"] = "<script>alert(1)</script> **bold** $x$"
    page.set("text_area", "hw_config", json.dumps(config))
    assert page.metric("G") == "4"
    for item in page.test.markdown:
        assert "<script>" not in item.value


def test_an_answer_takes_less_than_a_second_of_this_machine(page: Page):
    for model in ("Kimi-K2", "Nemotron-3-Ultra-550B-A55B", "gpt-oss-120b"):
        page.test.selectbox(key="hw_model").set_value(model)
        began = time.process_time()
        page.draw()
        assert time.process_time() - began < 1.0, model


def test_a_link_restores_model_gpu_and_load(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    page = Page(model="Qwen3-32B", gpu="b200", batch=16, section="serve")
    assert page.metric("G") == "8"
    assert "Qwen3-32B on B200 SXM · batch 16" in page.text
    assert len(page.test.code) == 4


def test_what_a_link_cannot_mean_is_said_and_the_default_used(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    page = Page(model="nobody", batch=-3, context="9" * 40, unknown=1)
    for words in ("model = 'nobody'", "batch = '-3'; allowed: 1 to 4096", "context = '999"):
        assert words in page.text
    assert page.metric("G") == "4"


def test_what_does_not_fit_is_said_and_nothing_breaks(page: Page):
    page.set("selectbox", "hw_gpu", "rtx4090").set("selectbox", "hw_model", "Llama-3.1-70B")
    assert "Does not fit" in page.text
    for section in ("operating", "buys"):
        page.section(section)
        assert "weights do not fit" in page.text


def test_one_rate_replaces_the_published_profiles(page: Page):
    page.set("selectbox", "hw_source", "rate").set("selectbox", "hw_rated", "mtp")
    page.set("slider", "hw_rate", 0.9)
    assert page.metric("Advised") == "MTP"
    assert "special case" in page.text


def test_without_a_run_the_page_says_where_to_make_one(page: Page):
    page.set("selectbox", "hw_source", "run")
    assert "make one on the Step page" in page.text


def test_measured_rounds_come_from_a_file_too(page: Page):
    page.set("selectbox", "hw_source", "file")
    assert "Give a trace" in page.text
    name = "ngram-chat"
    page.test.file_uploader(key="hw_file").upload(
        f"{name}.json.gz", recordings.path(name).read_bytes(), "application/gzip"
    )
    page.draw()
    assert page.metric("Advised") in ("n-gram", "plain decoding")


def test_this_machine_must_be_measured_first(page: Page):
    page.set("selectbox", "hw_gpu", "this")
    assert "Press Measure this machine" in page.text
    assert page.test.button(key="hw_measure").label == "Measure this machine"


def test_serving_shows_every_engine_and_what_one_lacks(page: Page):
    page.section("serve")
    page.set("selectbox", next(b.key for b in page.test.selectbox if "hw_serve" in b.key), "ngram")
    assert [item.language for item in page.test.code] == ["bash", "bash", "yaml", "bash"]
    assert "num_speculative_tokens" in page.test.code[0].value
    assert "--speculative-num-draft-tokens" in page.test.code[1].value


def test_both_ratios_stand_side_by_side(page: Page):
    page.section("operating")
    page.set("slider", "hw_speed", 95)
    assert page.metric("At the same concurrency").endswith("x")
    assert page.metric("At the same speed per user").endswith("x")
    page.set("slider", "hw_speed", 150)
    assert page.metric("At the same speed per user") == "no limit"
    assert "Both are true" in page.text
