"""The HTML replay, opened from disk."""

import pytest
from playwright.sync_api import expect

from specviz import recordings
from specviz.traces.html_replay import replay
from specviz.traces.store import load
from tests.views.stories import HOSTILE, Story

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def opened(tab, tmp_path):
    """Open a trace as a file; what it asked for and complained about is kept."""

    def open_(trace, **options):
        file = tmp_path / "run.html"
        file.write_text(replay(trace), "utf-8")
        one = tab(**options)
        one.requests = []
        one.page.on("request", lambda request: one.requests.append(request.url))
        one.page.goto(file.as_uri())
        one.pane.wait_for()
        return one

    return open_


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def quiet(one):
    assert one.complaints == []
    assert len(one.requests) == 1
    assert one.requests[0].startswith("file://")


def test_it_steps_by_keyboard_and_asks_for_nothing(opened):
    trace = load(recordings.path("ngram-edit"))
    one = opened(trace)
    page = one.page
    assert page.locator(".sv-round").count() == len(trace.rounds)
    press(page, "Home")
    assert page.locator(".sv-round").count() == 0
    assert "nothing is drafted yet" in page.locator(".rp-says").inner_text()
    press(page, "ArrowRight")
    assert page.locator(".sv-p").count() >= 1  # one draft, not decided
    assert page.locator(".sv-round .sv-tok").count() == 1
    press(page, "n")
    assert "drafted 5, accepted 0" in page.locator(".rp-says").inner_text()
    assert page.locator(".rp-bars tbody tr").count() == 9
    press(page, "ArrowLeft")
    assert page.locator(".sv-round .sv-r").count() == 1  # the refusal stands, its reason too
    assert page.locator(".sv-round .sv-c").count() == 0
    press(page, "PageDown", "PageDown", "b")
    assert page.locator(".sv-round").count() == 1
    press(page, "End", " ")  # playing from the end begins again
    assert page.locator("[data-move=play]").inner_text() == "Pause"
    expect(page.locator(".sv-round .sv-tok").first).to_be_visible()
    press(page, " ", "End")
    page.locator(".sv-round").nth(2).locator(".sv-tok").first.click()
    assert page.locator(".sv-round").count() == 3
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light or dark").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    quiet(one)


def test_hostile_text_is_shown_and_does_nothing(opened):
    story = Story(*HOSTILE)
    for text in HOSTILE:
        story.add([text, "</script><img src=x onerror=alert(1)>"], 1, text)
    one = opened(story.trace(), width=420)
    page = one.page
    page.on("dialog", lambda dialog: one.complaints.append(dialog.message))
    assert page.locator("#replay img, #replay script, #replay iframe").count() == 0
    assert "<img src=x onerror=alert(1)>" in one.pane.inner_text()
    press(page, "Home", "n", "n", "ArrowRight", "ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    quiet(one)
