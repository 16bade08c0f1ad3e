"""A link straight to a page of a server that served nobody yet: the same app as later."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import serving
from tests.browser.test_hardware_in_browser import complaints
from tests.cli.folders import write_model

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    with serving(tmp_path / "log") as url:
        yield url


@pytest.fixture
def tiny(tmp_path):
    return write_model(tmp_path / "tiny", context=1024)


def arrived(one, url, heading):
    """Open a link and look at what only app.py draws: the navigation and the wide layout."""
    one.page.goto(url)
    expect(one.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    expect(one.page.get_by_role("link", name="Hardware fit")).to_be_visible()
    assert one.page.locator("[data-testid=stSidebarNav]").count() == 0
    return one.page


def in_step(page, scheme):
    """The run that was chosen is on screen, and no recording."""
    expect(page.locator(".sv-flow")).to_be_visible()
    shown = page.get_by_role("combobox", name="On screen")
    expect(shown).to_have_value(re.compile(f"File: .* · {scheme}, D = "))


def test_a_comparison_opens_in_step(fresh, tab, tiny):
    one = tab()
    query = f"prompts=copy-letter&schemes=ngram&max=8&repeats=1&D=3&target={tiny}"
    page = arrived(one, f"{fresh}/compare?{query}", "Compare")
    expect(page.get_by_label("D, drafted tokens per round")).to_have_value("3")
    page.get_by_role("button", name="Compare").first.click()
    page.get_by_role("button", name="Open in Step").click()
    in_step(page, "none")
    assert complaints(one) == []


def test_a_sweep_opens_a_point_in_step(fresh, tab, tiny):
    one = tab()
    query = f"schemes=ngram&classes=copy&max=8&repeats=1&D=2-3&target={tiny}"
    page = arrived(one, f"{fresh}/sweep?{query}", "Sweep")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("Open a point in Step").click()
    page.get_by_role("button", name="Open its trace").click()
    in_step(page, "ngram")
    assert complaints(one) == []


def test_a_run_of_the_library_opens_in_step(fresh, tab):
    one = tab()
    page = arrived(one, f"{fresh}/traces", "Traces")
    page.get_by_role("button", name="Open in Step").first.click()
    expect(page.locator(".sv-flow")).to_be_visible()
    assert complaints(one) == []
