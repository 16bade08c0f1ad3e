"""The Learn page, driven as a reader would, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.ui.learn_notebooks import lessons
from specviz.views.learn_clinic import symptoms
from specviz.words import set_language

ROOT = Path(__file__).parents[2]


class Page:
    """One browser tab on the page."""

    def __init__(self) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        self.test.switch_page("pages/learn.py")
        self.draw()

    def draw(self) -> "Page":
        self.test.run()
        assert not self.test.exception, self.test.exception
        return self

    def section(self, name: str) -> "Page":
        self.test.segmented_control(key="ln_section").set_value(name)
        return self.draw()

    @property
    def text(self) -> str:
        kinds = ("markdown", "caption", "info", "warning")
        found = [item.value for kind in kinds for item in getattr(self.test, kind)]
        return "\n".join(found).replace("\\", "")


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    return Page()


def test_the_tour_goes_through_all_stops_and_frames_the_part(page):
    framed = []
    for number in range(1, 13):
        assert f"Stop {number} of 12" in page.text
        styles = [item.proto.body for item in page.test.get("html")]
        framed.append(next(s for s in styles if ".st-key-tour-" in s))
        if number < 12:
            page.test.button(key="ln_next").click()
            page.draw()
    assert page.test.button(key="ln_next").disabled
    assert len(set(framed)) == 5


def test_the_glossary_is_computed_on_the_open_run(page):
    page.section("glossary")
    assert "Computed on the run that is open" in page.text
    peers, words = page.test.dataframe[0].value, page.test.dataframe[1].value
    assert len(peers) >= 12
    assert len(words) >= 15


def test_every_symptom_has_findings(page):
    page.section("clinic")
    for symptom in symptoms():
        page.test.selectbox(key="ln_symptom").set_value(symptom.key)
        page.draw()
        assert len(page.test.info) + len(page.test.warning) == len(symptom.checks)
        assert symptom.thread in page.text


def test_myths_have_numbers_and_sources(page):
    page.section("myths")
    assert "measured: recording" in page.text
    assert "published: DFlash, arXiv:2602.06036" in page.text


def test_every_notebook_is_listed_with_its_title_and_a_link(page):
    page.section("notebooks")
    found = lessons()
    assert len(found) == 12
    for lesson in found:
        assert lesson.title in page.text
        assert f"](http://localhost:8888/lab/tree/{lesson.file})" in page.text
        assert lesson.exercises >= 2
    assert found[0].title == "1. Plain decoding and what it costs"
    assert "make notebooks" in page.text


def test_a_reader_gets_the_notebooks_of_the_own_language_where_there_are_some():
    set_language("pt_BR")
    try:
        files = [lesson.file for lesson in lessons()]
    finally:
        set_language("en")
    assert files[:3] == [
        "pt_BR/01_plain_decoding.ipynb",
        "pt_BR/02_accept_and_reject.ipynb",
        "pt_BR/03_why_lossless.ipynb",
    ]
    assert files[3] == "04_choosing_d.ipynb"


def test_an_installation_without_notebooks_says_so(page, tmp_path, monkeypatch):
    monkeypatch.setattr("specviz.ui.learn_notebooks.lessons", lambda: lessons(tmp_path))
    page.section("notebooks")
    assert "not part of this installation" in page.text
