"""The pane in a notebook: the app's own script in a widget, and what is left without one."""

import json
import runpy
import shutil
import sys
import warnings
from pathlib import Path

import pytest

from specviz import recordings
from specviz.notebook.pane import Pane, payload
from specviz.traces.store import load
from tests.views.stories import HOSTILE, Story

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
WIDGET = "application/vnd.jupyter.widget-view+json"
PAGE = """<!doctype html><meta charset="utf-8"><body data-jp-theme-light="false">
<div class="jp-Cell"><div style="overflow:hidden"><div id="host"></div></div>
<details open class="nb-still">text</details></div>
<script type="module">
%s
const state = %s, heard = {};
const model = {
  get: (name) => state[name],
  set: (name, value) => {
    state[name] = value;
    for (const f of heard[`change:${name}`] ?? []) f();
  },
  on: (name, f) => (heard[name] ??= []).push(f),
  save_changes: () => (window.saved = (window.saved ?? 0) + 1),
};
window.state = state;
await WIDGET.render({ model, el: document.getElementById("host") });
window.ready = true;
</script>"""


@pytest.fixture(scope="module")
def trace():
    return load(recordings.path("ngram-edit"))


@pytest.fixture
def hostile():
    story = Story("prompt")
    for text in HOSTILE:
        story.add([text, "ok"], accepted=1, last=text)
    return story.trace()


def test_a_viewer_may_choose_widget_html_or_text(trace):
    live, twin = Pane(trace).outputs()
    assert set(live) == {WIDGET, "text/plain"}
    assert set(twin) == {"text/html", "text/plain"}
    assert twin["text/plain"].count("\n") == len(trace.rounds) - 1
    assert twin["text/html"].count("<li>") == len(trace.rounds)
    assert "<details open" in twin["text/html"]


def test_ipython_shows_the_widget_and_its_twin(trace, tmp_path, monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # a shell replaces it
    shell = InteractiveShell.instance()
    try:
        shell.push({"shown": Pane(trace)})
        with capture_output() as seen:
            shell.run_cell("shown")
    finally:
        shell.history_manager.end_session()
        InteractiveShell.clear_instance()
    assert [set(out.data) for out in seen.outputs] == [set(o) for o in Pane(trace).outputs()]


def test_without_anywidget_the_rest_is_there(trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    monkeypatch.delitem(sys.modules, "specviz.notebook.widget", raising=False)
    shown = Pane(trace)
    (twin,) = shown.outputs()
    assert set(twin) == {"text/html", "text/plain"}
    assert "<details" not in twin["text/html"]
    assert shown.rounds == len(trace.rounds)
    assert shown.selected is None


def test_the_script_is_the_file_of_the_app():
    from specviz.notebook.widget import script

    held = json.loads(script().removeprefix("const PANE = ").partition(";\n")[0])
    assert held["script"] == (ROOT / "specviz/ui/components/token_pane.js").read_text("utf-8")


def test_rounds_and_the_selected_token_come_back_to_the_kernel(trace):
    shown = Pane(trace, rounds=3)
    shown.outputs()
    assert shown.rounds == 3
    shown._widget.shown, shown._widget.selected = 2, {"round": 1, "node": "last"}
    assert (shown.rounds, shown.selected) == (2, (1, "last"))


def test_marks_stay_where_styles_are_taken_away(trace):
    html = Pane(trace).outputs()[-1]["text/html"]
    assert "<script" not in html
    for element in ("<del ", "<u ", "<ins ", "<sup>"):
        assert element in html


def test_token_text_is_data(hostile):
    html = Pane(hostile).outputs()[-1]["text/html"]
    assert "&lt;script&gt;" in html
    assert not any(bad in html for bad in ("<script", "<img", "<b>"))


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH")
def test_the_widget_in_a_browser(hostile, tmp_path):
    from playwright.sync_api import sync_playwright

    from specviz.notebook.widget import script

    state = {"run": payload(hostile), "shown": 2, "selected": None}
    module = script().replace("export default", "const WIDGET =")
    file = tmp_path / "widget.html"
    file.write_text(PAGE % (module, json.dumps(state).replace("<", "\\u003c")), "utf-8")
    problems = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(file.as_uri())
        page.wait_for_function("window.ready")
        assert page.evaluate("document.querySelector('.nb-still').open") is False
        assert page.locator(".sv-round").count() == 2
        assert f"2 of {len(HOSTILE)} rounds" in page.locator(".nb-bar").inner_text()
        page.get_by_role("button", name="Round", exact=True).click()
        assert page.evaluate("[state.shown, window.saved]") == [3, 1]
        assert page.locator(".sv-round").count() == 3
        assert "Round 3" in page.locator(".nb-says").inner_text()
        page.locator(".sv-flow .sv-tok").first.click()
        assert page.evaluate("state.selected") == {"round": 0, "node": 0}
        look = "getComputedStyle(document.getElementById('host'))"
        assert page.evaluate(f"{look}.colorScheme") == "dark"
        assert (
            page.evaluate("document.getElementById('host').parentNode.style.overflow") == "visible"
        )
        assert page.locator("[data-lm-suppress-shortcuts=true]").count() == 1
        browser.close()
    assert problems == []


def test_our_warnings_end_a_notebook_and_those_of_others_do_not():
    startup = runpy.run_path(str(ROOT / "notebooks" / "conftest.py"))["STARTUP"]
    with warnings.catch_warnings():
        warnings.resetwarnings()
        exec(startup)
        for module in ("__main__", "specviz.session", "kernels.registry"):
            with pytest.raises(UserWarning):
                warnings.warn_explicit("w", UserWarning, "file", 1, module=module)
        warnings.simplefilter("ignore", append=True)
        warnings.warn_explicit("w", UserWarning, "file", 1, module="zmq.asyncio")
