"""The Traces page, driven as a reader would, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz import recordings
from specviz.traces.store import library, load
from specviz.ui.state import KEY
from tests.views.stories import HOSTILE, Story

ROOT = Path(__file__).parents[2]


class Page:
    """One browser tab on the page."""

    def __init__(self) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        self.test.switch_page("pages/traces.py")
        self.draw()

    def draw(self) -> "Page":
        self.test.run()
        assert not self.test.exception, self.test.exception
        return self

    def set(self, kind: str, key: str, value: object) -> "Page":
        getattr(self.test, kind)(key=key).set_value(value)
        return self.draw()

    def click(self, key: str) -> "Page":
        self.test.button(key=key).click()
        return self.draw()

    def section(self, name: str) -> "Page":
        return self.set("segmented_control", "tr_section", name)

    def upload(self, name: str, data: bytes) -> "Page":
        self.test.file_uploader(key="tr_file").upload(name, data, "application/octet-stream")
        return self.draw()

    @property
    def text(self) -> str:
        kinds = ("markdown", "caption", "info", "warning", "success", "error")
        found = [item.value for kind in kinds for item in getattr(self.test, kind)]
        return "\n".join(found).replace("\\", "")


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    return Page()


def kept(tmp_path) -> list[Path]:
    return [entry.path for entry in library(tmp_path / "traces")]


def test_a_run_is_kept_renamed_and_deleted(page, tmp_path):
    assert kept(tmp_path) == []
    page.click("tr_keep")
    (path,) = kept(tmp_path)
    assert path.name in page.text
    title = next(t.key for t in page.test.text_input if t.key.startswith("tr_title_"))
    page.test.text_input(key=title).set_value("**another** name")
    page.click("tr_renamed")
    assert load(path).title == "**another** name"
    page.click("tr_delete")
    assert kept(tmp_path) == []


def test_a_chosen_run_opens_on_the_step_page(page):
    state = page.test.session_state[KEY]
    other = next(key for key in state.runs if key != state.shown)
    page.set("selectbox", "tr_item", other)
    page.click("tr_open")
    assert page.test.session_state[KEY].shown == other


def test_every_kind_of_file_can_be_saved_and_markdown_is_shown(page):
    for form in ("html", "md", "json", "profile", "csv"):
        page.set("segmented_control", "tr_form", form)
        assert page.test.get("download_button")
    page.set("segmented_control", "tr_form", "md")
    assert "#### First divergence" in page.test.code[0].value
    page.set("toggle", "tr_redact", True)
    assert "#### Prompt\n\nleft out" in page.test.code[0].value
    assert "a draft copied from the prompt is still there" in page.text


def test_two_runs_follow_one_slider_from_their_first_difference(page):
    page.section("diff")
    assert "The texts part at byte" in page.text
    assert "The prompts differ" in page.text
    before = page.test.select_slider[0].value
    page.click("tr_forward")
    assert page.test.select_slider[0].value != before
    page.click("tr_home")
    assert page.test.select_slider[0].value == before


def test_a_run_beside_itself_has_no_difference(page):
    page.section("diff")
    page.set("selectbox", "tr_right", page.test.selectbox(key="tr_left").value)
    assert "the same text" in page.text
    assert "None." in page.text


def test_a_log_of_an_engine_is_shown_with_what_it_said_alone(page):
    page.section("import")
    page.test.text_area(key="tr_paste").set_value(
        "draft acceptance = 0.64479 (167 accepted / 259 generated), mean acceptance length = 2.92"
    )
    page.click("tr_read")
    assert "llama.cpp" in page.text
    assert "nothing of that is shown" in page.text
    values = {row for frame in page.test.dataframe for row in frame.value.iloc[:, 1]}
    assert {"167", "259", "2.92"} <= values


def test_what_an_engine_said_is_kept_opened_and_deleted(page, tmp_path):
    page.section("import")
    page.test.text_area(key="tr_paste").set_value("acc per pos = (0.696, 0.445)")
    page.click("tr_read")
    page.test.text_input(key="tr_keep_name").set_value("../../a <b>name</b>")
    page.click("tr_keep_import")
    (path,) = (tmp_path / "traces").rglob("*.json")
    assert path.parent == tmp_path / "traces" / "engines"
    assert page.section("library").test.selectbox(key="tr_item")  # it is no trace
    fresh = Page().section("import")
    assert "0.696" not in str([frame.value for frame in fresh.test.dataframe])
    fresh.click("tr_kept_open")
    assert "0.696, 0.445" in str([frame.value.to_csv() for frame in fresh.test.dataframe])
    fresh.click("tr_kept_delete")
    assert not path.exists()


def test_text_about_nothing_is_refused_with_what_is_allowed(page):
    page.section("import")
    page.test.text_area(key="tr_paste").set_value("<script>alert(1)</script> **x**")
    page.click("tr_read")
    assert "TensorRT-LLM" in page.text


def test_a_trace_file_is_opened_into_the_library(page):
    page.section("import")
    name = recordings.names()[0]
    page.upload(f"{name}.json.gz", recordings.path(name).read_bytes())
    assert f"{name}.json.gz is open" in page.text
    assert page.test.segmented_control(key="tr_section").value == "library"


def test_a_damaged_file_says_so_and_can_be_deleted(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "bad.json").write_text("{")
    page = Page().set("selectbox", "tr_item", "bad.json")
    assert page.test.error
    page.click("tr_delete")
    assert not (tmp_path / "traces" / "bad.json").exists()


def test_hostile_titles_and_tokens_stay_text(page, tmp_path):
    from dataclasses import replace

    from specviz.traces.store import to_json

    story = Story("p")
    for text in HOSTILE:
        story.add([text], 1, text)
    trace = story.trace()
    card = replace(trace.target, vocab=4096)
    trace = replace(trace, title=HOSTILE[1], target=card)
    page.section("import").upload("x.json", to_json(trace).encode())
    page.section("diff")
    for item in (*page.test.markdown, *page.test.warning, *page.test.caption):
        assert "<script>" not in item.value
