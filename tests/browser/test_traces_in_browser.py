"""Traces and Learn in a real browser: both panes move together, frames show, pages fit."""

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]
WIDE = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def site(server, browser):
    """The server once its entry was seen: only there Streamlit learns which pages there are."""
    page = browser.new_page()
    page.goto(server)
    page.get_by_role("link", name="Traces").first.wait_for(state="attached")
    page.close()
    return server


def go(one, site, place):
    one.page.goto(f"{site}/{place}")
    one.page.get_by_role("heading", name="Traces" if place == "traces" else "Learn").wait_for()
    return one.page


@pytest.mark.parametrize(
    ("name", "scheme", "width"),
    [("light", "light", 1440), ("dark", "dark", 1440), ("narrow", "light", 420)],
)
def test_traces_and_learn_fit_and_are_photographed(site, tab, name, scheme, width):
    one = tab(scheme, width, 1300)
    page = go(one, site, "traces")
    expect(page.get_by_role("button", name="Save the file")).to_be_visible()
    one.shoot(f"traces-{name}")
    page.get_by_text("Side by side").click()
    panes = page.locator(".sv-flow")
    expect(panes).to_have_count(2)
    expect(page.get_by_text("The texts part at byte")).to_be_visible()
    expect(page.locator(".sv-flow .sv-selected")).to_have_count(2)
    before = panes.nth(0).inner_text(), panes.nth(1).inner_text()
    page.get_by_role("button", name="Forward").click()
    expect(page.get_by_role("button", name="First difference")).to_be_enabled()
    texts = "[...document.querySelectorAll('.sv-flow')].map((e) => e.innerText).join()"
    page.wait_for_function(f"(old) => {texts} !== old", arg=",".join(before))
    one.shoot(f"diff-{name}")
    assert page.evaluate(WIDE)
    page = go(one, site, "learn")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Stop 2 of 12")).to_be_visible()
    outline = "getComputedStyle(document.querySelector('.st-key-tour-text')).outlineStyle"
    page.wait_for_function(f"{outline} === 'solid'")
    for _more in range(3):
        page.get_by_role("button", name="Next").click()
        page.wait_for_timeout(1500)
    expect(page.get_by_text("Stop 5 of 12")).to_be_visible()
    one.shoot(f"learn-{name}")
    assert page.evaluate(WIDE)
    page.get_by_text("Myth and measurement").click()
    expect(page.get_by_text("measured: recording").first).to_be_visible()
    one.shoot(f"myths-{name}")
    assert page.evaluate(WIDE)
    # Streamlit itself tries where its server lies, relative to the page.
    assert [said for said in one.complaints if "404" not in said] == []
