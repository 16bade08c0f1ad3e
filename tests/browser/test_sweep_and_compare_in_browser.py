"""The Sweep and Compare pages in a real browser, measuring a tiny model."""

import shutil

import pytest
from playwright.sync_api import expect

from specviz.bench.sweep_log import default_folder
from specviz.bench.sweep_plan import Plan, Prompt
from tests.browser.test_hardware_in_browser import charts_fit, complaints, fits
from tests.cli.folders import write_model

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def tiny(tmp_path):
    """A model that decodes in no time; its sweep is not left in the user's cache."""
    model = write_model(tmp_path / "tiny", context=1024)
    yield model
    plan = Plan(prompts=(Prompt("a", "chat", "a"),), tokens=8)
    shutil.rmtree(default_folder(plan, str(model)), ignore_errors=True)


def opened(one, server, page, query):
    one.page.goto(f"{server}/{page}?schemes=ngram&max=8&repeats=1&{query}")
    expect(one.page.get_by_role("heading", name=page.capitalize(), exact=True)).to_be_visible()
    return one


def test_a_sweep_grows_survives_a_page_change_and_opens_a_point(server, tab, tiny):
    one = opened(tab(), server, "sweep", f"D=1-2&classes=copy&target={tiny}")
    page = one.page
    page.get_by_role("button", name="Start").click()
    page.get_by_role("link", name="Hardware fit").click()  # at once: no press may take it back
    expect(page.get_by_role("heading", name="Hardware fit")).to_be_visible()
    page.get_by_role("link", name="Sweep").click()
    expect(page.get_by_text("Speculation profile")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_enabled()
    assert fits(page)
    charts_fit(page)
    page.get_by_text("Open a point in Step").click()
    page.get_by_role("button", name="Open its trace").click()
    expect(page.locator(".sv-flow")).to_be_visible()
    assert complaints(one) == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 420)])
def test_runs_are_replayed_side_by_side_on_one_clock(server, tab, tiny, scheme, width):
    one = opened(tab(scheme, width), server, "compare", f"prompts=copy-letter&target={tiny}")
    page = one.page
    page.get_by_role("button", name="Compare").first.click()
    lanes = page.locator(".svr-lane")
    expect(lanes).to_have_count(2)
    expect(lanes.first.locator(".svr-later")).to_have_count(0)
    page.get_by_label("Time", exact=True).fill("0")
    expect(lanes.first.locator(".svr-later")).to_have_count(8)
    page.get_by_label("Speed", exact=True).select_option("0.25")
    page.get_by_role("button", name="Play").click()
    expect(lanes.first.locator(".svr-later")).to_have_count(0)
    assert lanes.first.locator(".svr-flow").inner_text().strip()
    assert fits(page)
    charts_fit(page)
    assert complaints(one) == []
