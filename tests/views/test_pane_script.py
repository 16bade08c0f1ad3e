"""token_pane.js in a real browser: text stays text, steps touch the tail only, keys work."""

import json
import shutil
from pathlib import Path

import pytest

import specviz.ui
from specviz.views import theme
from specviz.views.sentences import sentence
from specviz.views.tokens import PaneOptions, Reveal, pane
from tests.views.stories import HOSTILE, Story, long_story

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FOLDER = Path(specviz.ui.__file__).parent / "components"
PAGE = """<!doctype html><meta charset="utf-8"><body><div id="host"></div>
<script type="module">
%s
const root = document.getElementById("host").attachShadow({mode: "open"});
const style = document.createElement("style");
style.textContent = %s;
root.append(style);
window.events = [];
window.draw = (data) => render(root, data, (name, value) => window.events.push([name, value]));
window.pane = root;
</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH"),
]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def page(browser, tmp_path):
    script = (FOLDER / "token_pane.js").read_text("utf-8")
    sheet = theme.css_variables() + (FOLDER / "token_pane.css").read_text("utf-8")
    file = tmp_path / "pane.html"
    file.write_text(PAGE % (script, json.dumps(sheet)), "utf-8")
    opened = browser.new_page(viewport={"width": 900, "height": 600})
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda message: problems.append(message.text))
    opened.on("dialog", lambda dialog: (problems.append("dialog"), dialog.dismiss()))
    opened.goto(file.as_uri())
    yield opened
    opened.close()
    assert problems == []


def draw(page, *arguments, **options):
    page.evaluate("(data) => { draw(data) }", json.loads(json.dumps(pane(*arguments, **options))))


def hostile_story():
    story = Story(*HOSTILE)
    for text in HOSTILE:
        story.add([text, "no" + text], 1, "own" + text)
    return story


def test_i3_hostile_tokens_are_shown_as_the_text_they_are(page):
    story = hostile_story()
    draw(page, story.trace(), len(story.rounds))
    shown = page.evaluate("[...pane.querySelectorAll('.sv-a')].slice(1).map((e) => e.textContent)")
    assert shown == list(HOSTILE)
    names = page.evaluate(
        "[...new Set([...pane.querySelectorAll('.sv-flow *')].map(e=>e.tagName))]"
    )
    assert sorted(names) == ["SPAN", "WBR"]


def test_i2_selected_text_is_the_committed_text_without_refused_drafts(page):
    story = (
        Story("x").add([" the", " red"], 1, "  the").add([" the"], 0, "\n- the\n").add((), 0, "end")
    )
    draw(page, story.trace(), 3)
    script = "getSelection().selectAllChildren(pane.querySelector('.sv-flow'))"
    page.evaluate(script)
    assert page.evaluate("getSelection().toString()") == " the  the\n- the\nend"


def test_the_pane_has_room_for_the_whole_run_from_the_start(page):
    trace = long_story(8).trace()
    heights = []
    for shown in (0, 1, 4, 8):
        draw(page, trace, shown)
        heights.append(page.evaluate("pane.querySelector('.sv-scroll').offsetHeight"))
    assert heights == [heights[0]] * 4
    assert heights[0] > 150
    long = long_story(200).trace()
    draw(page, long, 1)
    first = page.evaluate("pane.querySelector('.sv-scroll').offsetHeight")
    draw(page, long, 200)
    assert abs(page.evaluate("pane.querySelector('.sv-scroll').offsetHeight") - first) < 40


def test_a_step_leaves_the_elements_of_earlier_rounds_alone(page):
    trace = long_story(40).trace()
    draw(page, trace, 30)
    page.evaluate("pane.querySelectorAll('.sv-round').forEach((e) => { e.old = true })")
    draw(page, trace, 32, Reveal(2))
    old = page.evaluate("[...pane.querySelectorAll('.sv-round')].map((e) => e.old === true)")
    assert old == [True] * 30 + [False] * 2
    draw(page, trace, 10)
    assert page.evaluate("pane.querySelectorAll('.sv-round').length") == 10


def test_keys_walk_tokens_and_rounds_and_choose_one(page):
    story = Story("x").add([" a", " b"], 1, " c").add([" d"], 1, " e").add((), 0, " f")
    draw(page, story.trace(), 3)
    page.evaluate("pane.querySelector('.sv-flow [tabindex=\"0\"]').focus()")
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowRight", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("events") == [["select", {"round": 1, "node": "last"}]]
    assert page.evaluate("pane.querySelectorAll('.sv-flow [tabindex=\"0\"]').length") == 1
    page.keyboard.press("End")
    assert page.evaluate("pane.activeElement.textContent") == " f"


def test_keys_skip_drafts_that_are_hidden(page):
    story = Story("x").add([" a", " b"], 1, " c")
    draw(page, story.trace(), 1, options=PaneOptions(rejected=False))
    page.evaluate("pane.querySelector('.sv-flow .sv-tok').focus()")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("pane.activeElement.textContent") == " c"


def test_focus_survives_a_redraw_of_its_round(page):
    story = Story("x").add([" a", " b"], 1, " c")
    draw(page, story.trace(), 1, Reveal(2))
    page.evaluate("pane.querySelectorAll('.sv-flow .sv-tok')[1].focus()")
    draw(page, story.trace(), 1)
    assert page.evaluate("pane.activeElement.textContent") == " b"


def test_the_card_opens_on_focus_and_closes_on_escape(page):
    story = Story("x").add([" a", " b"], 1, " c", u=0.4, q=0.8)
    draw(page, story.trace(), 1)
    page.evaluate("pane.querySelectorAll('.sv-flow .sv-tok')[1].focus()")
    card = page.locator(".sv-card")
    assert "0.4 ≥ 0 → rejected" in card.inner_text()
    page.keyboard.press("Escape")
    assert not card.is_visible()


def test_rounds_count_from_1_where_they_are_read(page):
    draw(page, Story("x").add([" a"], 1, " b").trace(), 1)
    page.evaluate("pane.querySelector('.sv-flow .sv-tok').focus()")
    assert page.locator(".sv-card-round").inner_text() == "Round 1"
    assert page.locator(".sv-round").get_attribute("aria-label") == "Round 1"
    assert page.locator(".sv-number").inner_text().strip("\u2060") == "1"


# Elements that a line end cuts in two, and round numbers on another line than their first token.
BROKEN = """() => {
  const lines = (e) => e.getClientRects();
  const cut = [...pane.querySelectorAll(".sv-flow .sv-tok")].filter((e) => lines(e).length > 1);
  const lost = [...pane.querySelectorAll(".sv-number")].filter(
    (e) => Math.abs(lines(e)[0].right - lines(e.nextElementSibling)[0].left) > 12);
  return [...cut, ...lost].map((e) => e.textContent);
}"""


@pytest.mark.parametrize("width", [320, 341, 500, 777, 1000])
def test_a_line_end_never_parts_a_token_from_its_space_its_mark_or_its_round(page, width):
    words = (" cat", "viz", " (", "foo-", "日本", "。", "  ", "—", " a-b", " two words", "==", "_x")
    story = Story("x")
    for at in range(60):
        drafts = [words[(at * 7 + j * 5) % len(words)] for j in range(4)]
        story.add(drafts, at % 5, words[at % len(words)])
    page.set_viewport_size({"width": width, "height": 600})
    draw(page, story.trace(), 60)
    assert page.evaluate(BROKEN) == []
    box = "(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)"
    assert page.evaluate(f"{box}(pane.querySelector('.sv-scroll'))") == 0


def test_text_behind_the_stop_string_is_set_apart(page):
    from specviz.events import Finish

    story = Story("x").add([" one", " two##"], 2, " three")
    draw(page, story.trace(Finish("stop_string", "##", text_bytes=8)), 1)
    cut = page.evaluate("[...pane.querySelectorAll('.sv-cut')].map((e) => e.textContent)")
    assert cut == ["##", " three"]


def test_reduced_motion_and_narrow_pages_are_respected(page):
    trace = long_story(5).trace()
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 320, "height": 500})
    draw(page, trace, 5)
    style = "getComputedStyle(pane.querySelector('.sv-flow .sv-tok')).transitionDuration"
    assert page.evaluate(style) == "0s"
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_the_page_is_told_about_a_round_once_and_politely(page):
    story = Story("x").add([" a"], 1, " b")
    draw(page, story.trace(), 1)
    live = page.locator("[aria-live=polite]")
    assert live.count() == 1
    assert live.text_content() == sentence(story.rounds[0], story.spell.pieces)
