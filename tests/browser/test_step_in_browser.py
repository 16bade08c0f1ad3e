"""The Step page in a real browser, with the real model."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETTINGS = "prompt=chat-sky&max=12&D=3"


def url_has(tab, *parts):
    for part in parts:
        expect(tab.page).to_have_url(re.compile(re.escape(part)))


def current_is(page, number):
    """The marked round; a word joiner ties its number to the token after it."""
    shown = page.locator(".sv-round.sv-current .sv-number")
    expect(shown).to_have_text(re.compile(rf"^{number}\W*$"))


def test_run_step_back_branch_and_reload(server, tab):
    first = tab().open(f"{server}/?{SETTINGS}")
    page = first.page
    expect(page.get_by_text("Recorded on").first).to_be_visible()

    first.press("Run live")
    expect(page.get_by_text("Live on").first).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(1)  # Streamlit's is hidden
    expect(page.locator(".st-key-stop button")).to_be_disabled()
    expect(page.get_by_text("identical").first).to_be_visible()
    url_has(first, "run=live", "max=12")
    last = first.current

    page.keyboard.press("b")
    expect(page.locator(".sv-round.sv-current .sv-number")).not_to_have_text(last)
    url_has(first, "at=")
    page.keyboard.press("Home")
    expect(page.get_by_text("nothing is drafted yet")).to_be_visible()
    page.keyboard.press("ArrowRight")
    url_has(first, "at=0.1")
    page.keyboard.press("n")
    url_has(first, "at=1")
    page.keyboard.press("n")
    current_is(page, 2)
    url_has(first, "at=2")

    before = page.url
    text = first.pane.inner_text()
    page.reload()
    first.pane.wait_for()
    current_is(page, 2)
    assert page.url == before
    assert first.pane.inner_text() == text

    first.press("Branch here")
    first.press("Start the branch")
    expect(page.get_by_text("branched after 2 rounds").first).to_be_visible()
    expect(page.get_by_text("identical").first).to_be_visible()
    assert first.complaints == []


def test_a_click_on_a_token_goes_to_its_round(server, tab):
    one = tab().open(server)
    one.page.locator(".sv-round").nth(3).locator(".sv-tok").first.click()
    current_is(one.page, 4)
    url_has(one, "at=4")
    assert one.complaints == []


def test_playing_reaches_the_end_by_itself(server, tab):
    one = tab().open(f"{server}/?at=14")
    one.press("Play")
    expect(one.page.get_by_role("button", name="Pause")).to_be_visible()
    expect(one.page.get_by_role("button", name="Play")).to_be_visible()
    expect(one.page).to_have_url(re.compile("at=16"))
    assert one.complaints == []


def test_two_tabs_show_their_own_runs(server, tab):
    one, two = (tab().open(f"{server}/?{SETTINGS}&scheme={name}") for name in ("none", "suffix"))
    one.press("Run live")
    two.press("Run live")
    for each, scheme in ((one, "none, D = 0"), (two, "suffix, D = 3")):
        expect(each.page.get_by_text("identical").first).to_be_visible()
        shown = each.page.get_by_role("combobox", name="On screen")
        expect(shown).to_have_value(re.compile(scheme))
        assert each.complaints == []


@pytest.mark.parametrize(
    ("name", "scheme", "width", "height"),
    [
        ("light", "light", 1440, 1500),
        ("dark", "dark", 1440, 1500),
        ("narrow", "light", 420, 2000),
    ],
)
def test_the_page_fits_and_is_photographed(server, tab, name, scheme, width, height):
    one = tab(scheme, width, height).open(f"{server}/?at=9")
    one.shoot(name)
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert one.page.evaluate(wide)
    assert one.pane.bounding_box()["y"] < 480  # the text is on the first screen, also on a phone
    assert one.complaints == []
