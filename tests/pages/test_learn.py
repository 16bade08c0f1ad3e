"""The Learn page, driven as a reader would, without a browser."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from specviz.views.learn_clinic import symptoms

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
