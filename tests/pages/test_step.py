"""The Step page, driven as a reader would, without a browser."""

import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from streamlit.testing.v1 import AppTest

from specviz.cancel import check_cancelled
from specviz.models import llama
from specviz.traces import store
from specviz.traces.timeline import Cursor
from specviz.ui import state as ui_state
from specviz.ui.messages import literal
from specviz.ui.state import KEY, State
from specviz.ui.token_pane import payload
from tests.cli.folders import write_model
from tests.pages.conftest import PATIENCE, settled, until
from tests.traces.samples import trace_of
from tests.views.stories import HOSTILE

ROOT = Path(__file__).parents[2]


class Page:
    """One browser tab."""

    def __init__(self, **query: object) -> None:
        self.test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for key, value in query.items():
            self.test.query_params[key] = str(value)
        self.draw()

    @property
    def state(self) -> State:
        return self.test.session_state[KEY]

    def draw(self) -> "Page":
        self.test.run()
        assert not self.test.exception, self.test.exception
        return self

    def click(self, key: str) -> "Page":
        self.test.button(key=key).click()
        return self.draw()

    def set(self, kind: str, key: str, value: object) -> "Page":
        getattr(self.test, kind)(key=key).set_value(value)
        return self.draw()

    def run(self) -> "Page":
        """Click Run live and wait for the end of the run."""
        self.click("run")
        settled(self.state.run)
        return self.draw()

    def says(self, text: str) -> bool:
        shown = "\n".join(item.value for item in (*self.test.markdown, *self.test.caption))
        return literal(text) in shown

    @property
    def link(self) -> dict[str, str]:
        """Settings and place in the link the page offers."""
        return dict(parse_qsl(self.test.code[0].value.partition("?")[2]))

    @property
    def errors(self) -> str:
        return "\n".join(item.value for item in self.test.error).replace("\\", "")

    @property
    def warnings(self) -> str:
        return "\n".join(item.value for item in self.test.warning).replace("\\", "")

    def close(self) -> None:
        self.state.engine.close()


Open = Callable[..., Page]


@pytest.fixture
def open_page(model: Path):
    """Open tabs on the tiny model; with another target named, nothing loads by itself."""
    pages = []

    def make(**query: object) -> Page:
        pages.append(Page(**{"target": model, "max": 24, "prompt": "copy-hello"} | query))
        return pages[-1]

    yield make
    for page in pages:
        page.close()


def test_the_first_screen_is_a_recording_and_says_so(open_page: Open):
    page = open_page()
    trace = page.state.run.trace()
    assert page.says(f"Recorded on {trace.environment.device_name}")
    assert page.state.run.origin == "recorded"
    assert page.says(trace.target.name)
    assert page.test.get("bidi_component")


def test_the_first_screen_shows_a_refusal_and_its_link_is_the_bare_address(open_page: Open):
    page = open_page()
    event = page.state.run.rounds[page.state.cursor.rounds - 1]
    assert page.state.cursor.micro == 0
    assert {"accepted", "rejected"} <= set(event.fates)
    assert not event.past_end
    decision = next(box for box in page.test.selectbox if str(box.key).startswith("decision-"))
    assert decision.value == event.fates.index("rejected")
    assert "at" not in page.link
    page.click("last")
    assert page.link["at"] == str(len(page.state.run.rounds))


def test_round_numbers_count_from_1_as_the_slider_does(open_page: Open):
    page = open_page(at=1)
    assert page.says("Round 1: drafted")
    page.click("step")
    assert page.says("Round 2: the drafter proposes")


def test_numbers_cover_the_complete_rounds_and_say_which(open_page: Open):
    page = open_page(at="9.3")
    done = page.state.run.rounds[:9]
    mean = sum(event.acceptance_length for event in done) / 9
    page.set("segmented_control", "panel", "speed")
    said = [item.value for item in page.test.caption if literal("rounds 1-9 of 16") in item.value]
    assert len(said) == 2
    assert page.test.metric[0].value == f"{mean:.2f}"
    page.set("segmented_control", "panel", "table")
    rounds = next(data.value for data in page.test.dataframe if "Committed" in data.value)
    assert list(rounds["Round"]) == [str(n) for n in range(1, 10)]
    page.click("last")
    assert any("all 16 rounds" in item.value for item in page.test.caption)


def test_before_the_first_complete_round_there_are_no_numbers(open_page: Open):
    page = open_page(at="0.7")
    for panel in ("speed", "table"):
        page.set("segmented_control", "panel", panel)
        assert page.test.metric[0].value == "n/a"
        assert page.says("Numbers start with the first complete round.")


def test_the_first_screen_needs_no_torch():
    code = (
        "import sys; from specviz.ui import stage, controls, opening, status;"
        "heavy = {'torch', 'transformers'} & set(sys.modules); sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_ship_recording_can_be_put_on_screen(open_page: Open):
    page = open_page()
    for run in list(page.state.runs.values()):
        box = next(box for box in page.test.selectbox if str(box.key).startswith("shown-"))
        box.set_value(run.id)
        page.draw()
        assert page.state.shown == run.id
        assert page.says(f"{len(run.rounds)} rounds")


def test_stepping_moves_the_cursor_and_computes_nothing(open_page: Open):
    page = open_page().click("last")
    rounds = page.state.run.rounds
    end = Cursor.end(rounds)
    for key, place in (
        ("round-back", end.back()),
        ("step-back", end.back().micro_back(rounds)),
        ("step", end.back()),
        ("round", end),
        ("first", Cursor()),
        ("step", Cursor(0, 1)),
        ("round", Cursor(1)),
        ("last", end),
        ("round", end),
    ):
        page.click(key)
        assert page.state.cursor == place, key
    assert not page.state.engine.busy


def test_every_place_of_a_recording_can_be_drawn(open_page: Open):
    page = open_page(run="ngram-chat", at=0)
    for _ in range(12):
        page.click("step")
        assert payload(page.state, page.state.run.trace())["now"]


def test_playing_moves_on_by_itself_and_stops_at_the_end(open_page: Open):
    page = open_page()
    page.click("play")
    assert page.state.playback is not None
    first = page.state.cursor
    page.draw().draw()
    assert page.state.cursor > first
    page.click("play")
    assert page.state.playback is None
    page.click("last").click("round-back").click("step-back").click("play")
    for _ in range(20):
        page.draw()
    assert page.state.playback is None
    assert page.state.cursor == Cursor.end(page.state.run.rounds)


def slider_key(page: Page) -> str:
    return f"jump-{page.state.slider}-{len(page.state.run.rounds)}"


def test_the_slider_jumps_to_a_round(open_page: Open):
    page = open_page()
    page.test.slider(key=slider_key(page)).set_value(3)
    page.draw()
    assert page.state.cursor == Cursor(3)


def test_a_stale_slider_does_not_undo_a_step(open_page: Open):
    """The browser may send the slider's old value along with the next click."""
    page = open_page(at=5)
    old = slider_key(page)
    page.click("round")
    assert page.state.cursor == Cursor(6)
    assert slider_key(page) != old


def test_run_live_is_one_click(open_page: Open):
    page = open_page()
    page.click("run")
    assert page.state.run.origin == "live"
    settled(page.state.run)
    page.draw().draw()
    assert page.says("Live on")
    assert page.state.run.status == "done"
    assert page.state.cursor == Cursor.end(page.state.run.rounds)
    assert not page.errors


def test_a_long_prompt_runs_and_is_checked(open_page: Open):
    page = open_page(prompt="copy-letter").run()
    assert not page.errors
    assert page.state.run.trace().lossless.kind == "identical"


def test_one_round_at_a_time(open_page: Open):
    page = open_page()
    for count, key in enumerate(("run-one", "round", "round"), start=1):
        page.click(key)
        settled(page.state.run)
        page.draw()
        assert len(page.state.run.rounds) == count
        assert page.state.cursor == Cursor(count)
    page.click("step")
    settled(page.state.run)
    assert page.draw().state.cursor == Cursor(3, 1)
    page.click("last")
    settled(page.state.run)
    assert page.draw().state.run.status == "done"
    assert page.state.cursor == Cursor.end(page.state.run.rounds)


def test_g8_a_click_during_a_run_breaks_nothing(open_page: Open):
    page = open_page(scheme="none", max=3000)
    page.click("run")
    run = page.state.run
    until(lambda: len(run.rounds) > 0)  # there is nothing to step through before
    page.set("number_input", "max", 90)
    page.click("round-back")
    page.set("slider", "T", 0.5)
    page.click("stop")
    settled(run)
    page.draw()
    assert run.status == "paused"
    positions = [event.start for event in run.rounds]
    assert positions == list(range(positions[0], positions[0] + len(positions)))
    assert not page.errors
    page.click("run")
    assert page.state.run is not run
    page.click("stop")
    settled(page.state.run)


def test_stop_while_the_prompt_is_read_says_so_and_the_next_run_works(
    open_page: Open, monkeypatch: pytest.MonkeyPatch
):
    page = open_page(max=8)
    reading, pressed = threading.Event(), threading.Event()
    monkeypatch.setattr(llama, "PIECE", 4)

    def slowly() -> None:
        reading.set()
        pressed.wait(PATIENCE)
        check_cancelled()

    with monkeypatch.context() as patch:
        patch.setattr(llama, "check_cancelled", slowly)
        page.click("run")
        assert reading.wait(PATIENCE)
        page.click("stop")
        pressed.set()
        settled(page.state.run)
    page.draw()
    assert "Stopped before the prompt was read" in page.test.info[0].value
    assert not page.errors
    assert page.run().state.run.status == "done"
    assert not page.test.info


def test_a_logit_bias_is_set_in_the_advanced_settings_and_travels_in_the_link(open_page: Open):
    page = open_page(max=6)
    page.set("text_input", "logit_bias", "5=-inf, 7=10000").run()
    assert page.state.run.order.params.logit_bias == ((5, -math.inf), (7, 10_000.0))
    assert {token for event in page.state.run.rounds for token in event.committed} == {7}
    assert page.link["logit_bias"] == "5=-inf, 7=10000"
    page.set("text_input", "logit_bias", "seven")
    assert "logit_bias is 'seven'" in page.errors


def test_two_tabs_do_not_share_runs(open_page: Open):
    one, two = open_page(max=60, scheme="none"), open_page(max=60, prompt="chat-sky")
    one.click("run")
    two.click("run")
    settled(one.state.run)
    settled(two.state.run)
    assert one.state.engine is not two.state.engine
    assert one.state.run.status == two.state.run.status == "done"
    assert one.state.run.id not in two.state.runs
    assert {event.scheme for event in one.state.run.rounds} == {"none"}
    assert {event.scheme for event in two.state.run.rounds} == {"ngram"}


def test_a_branch_starts_at_the_cursor_with_other_settings(open_page: Open):
    page = open_page().run()
    trunk = page.state.run
    page.click("first").click("round").click("round")
    page.set("selectbox", "scheme", "none")
    page.click("branch")
    branch = settled(page.state.run)
    page.draw()
    assert branch is not trunk
    assert branch.rounds[:2] == trunk.rounds[:2]
    assert branch.rounds[2].scheme == "none"
    assert page.says("branched after 2 rounds")


def test_a_branch_can_be_given_its_first_token(open_page: Open):
    page = open_page().run()
    page.click("first").click("round")
    box = page.test.selectbox(key="forced-1")
    choice = page.state.run.rounds[1].rows[0].top[-1].token
    box.set_value(choice)
    page.draw().click("branch")
    assert settled(page.state.run).rounds[1].committed == (choice,)


def test_c14_the_seed_is_off_at_temperature_0_and_says_why(open_page: Open):
    page = open_page()
    seed = page.test.number_input(key="seed")
    assert seed.disabled
    assert "temperature 0" in seed.help
    page.set("slider", "T", 0.7)
    assert not page.test.number_input(key="seed").disabled


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"scheme": "draft_model"}, "needs a draft model"),
        ({"scheme": "eagle3"}, "needs a head that was trained for this target"),
        ({"scheme": "dspark", "head": "x", "layer_ids": "1,b"}, "layer_ids is '1,b'"),
        ({"prompt": "own"}, "prompt is empty"),
        ({"ngram_min": 5, "ngram_max": 2}, "1 <= min <= max"),
        ({"T": 1, "verifier": "greedy"}, "temperature 0"),
    ],
)
def test_h16_impossible_settings_are_explained_and_nothing_runs(open_page: Open, query, said):
    page = open_page(**query)
    assert said in page.errors
    assert page.test.button(key="run").disabled
    assert page.test.button(key="run-one").disabled


def test_h9_the_size_of_a_tree_is_said_as_it_is_chosen(open_page: Open):
    page = open_page(scheme="eagle3", head="somewhere", D=6)
    assert page.test.number_input(key="tree_top_k").disabled
    page.set("number_input", "tree_depth", 3).set("number_input", "tree_top_k", 2)
    assert page.says("Grows up to 10 nodes in 3 levels and drafts the best 6.")


def test_b10_a_head_that_is_not_there_is_red_and_the_run_is_plain(open_page: Open):
    page = open_page(scheme="mtp", head="/nowhere/head").run()
    assert "/nowhere/head" in page.errors
    assert page.state.run.trace().config.scheme == "none"


def test_a_missing_model_is_said_and_the_recordings_stay(open_page: Open, tmp_path: Path):
    page = open_page(target=tmp_path / "nowhere").run()
    assert page.errors.count("nowhere") == 1
    assert page.state.run.status == "failed"
    assert not page.test.info
    assert page.says("could not be loaded")
    recording = next(iter(page.state.recordings.values()))
    page.state.show(recording)
    assert page.draw().says("Recorded on")


def test_b10_a_broken_draft_model_is_red_and_the_run_is_plain(open_page: Open, tmp_path: Path):
    draft = write_model(tmp_path / "draft")
    (draft / "model.safetensors").write_bytes(b"no")
    page = open_page(scheme="draft_model", draft=draft).run()
    assert "D = 0" in page.errors
    assert page.state.run.status == "done"
    trace = page.state.run.trace()
    assert (trace.config.scheme, trace.config.draft_length) == ("none", 0)
    box = next(box for box in page.test.selectbox if str(box.key).startswith("shown-"))
    assert "none, D = 0" in box.options[box.index]


def test_nan_weights_are_an_error_with_the_round_in_it(open_page: Open, tmp_path: Path):
    page = open_page(target=write_model(tmp_path / "nan", nan=True)).run()
    assert "NaN" in page.errors
    assert "bug" not in page.errors


def test_a_prompt_longer_than_the_context_is_refused(open_page: Open, tmp_path: Path):
    small = write_model(tmp_path / "small", context=32)
    page = open_page(target=small, prompt="own", text="x" * 100).run()
    assert "31" in page.errors


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording whose every token wants to be markup."""
    trace = trace_of(run_id="hostile")
    known = sorted(trace.pieces)
    pieces = {token: HOSTILE[n % len(HOSTILE)].encode() for n, token in enumerate(known)}
    store.save(replace(trace, pieces=pieces, title=HOSTILE[0]), tmp_path / "h.json.gz")
    monkeypatch.setattr(ui_state, "RECORDINGS", tmp_path)
    ui_state._recordings.clear()
    yield
    ui_state._recordings.clear()


def test_i3_token_text_is_never_markup(hostile: None, open_page: Open):
    page = open_page()
    for key in ("first", "step", "step", "round", "round", "round", "last"):
        page.click(key)
        for item in (*page.test.markdown, *page.test.caption, *page.test.error, *page.test.warning):
            for text in HOSTILE:
                assert not re.search(r"(?<!\\)" + re.escape(text), item.value) or not re.search(
                    r"[<\[:$|`*#]", text
                ), (item.value, text)
        for item in page.test.get("html"):
            assert "<script" not in item.proto.body
            assert "<img" not in item.proto.body


@pytest.mark.parametrize("text", HOSTILE)
def test_i3_literal_text_has_no_unescaped_punctuation(text: str):
    marked = re.sub(r"\\[!-/:-@\[-`{-~]", "", literal(text))
    assert not re.search(r"[!-/:-@\[-`{-~]", marked)


def test_a_link_restores_settings_and_place(open_page: Open):
    page = open_page(run="ngram-chat", at="3.2", D=7, T=0.5, seed=9, scheme="suffix", chat="false")
    assert page.state.cursor == Cursor(3, 2)
    assert page.state.run is page.state.recordings["ngram-chat"]
    assert page.test.number_input(key="D").value == 7
    assert page.test.slider(key="T").value == 0.5
    assert page.test.number_input(key="seed").value == 9
    assert page.test.selectbox(key="scheme").value == "suffix"
    assert page.test.toggle(key="chat").value is False
    assert "This link" not in page.warnings
    assert (page.link["at"], page.link["run"], page.link["D"]) == ("3.2", "ngram-chat", "7")


def test_an_impossible_link_falls_back_with_a_note(open_page: Open):
    page = open_page(D=9999, scheme="gram", at="x", run="nothing")
    for said in ("D = '9999'", "scheme = 'gram'", "at = 'x'", "'nothing'"):
        assert said in page.warnings
    assert page.test.number_input(key="D").value != 9999
    page.click("dismiss")
    assert "This link" not in page.warnings


def test_a_place_behind_the_end_is_the_end(open_page: Open):
    page = open_page(at=99999)
    assert page.state.cursor == Cursor.end(page.state.run.rounds)
    assert "place 99999" in page.warnings


def test_a_link_does_not_load_a_model_its_author_chose(open_page: Open):
    page = open_page(run="live")
    assert page.state.run.origin == "recorded"
    assert not page.state.engine.busy
    assert "Press Run live" in page.warnings


def test_a8_the_chat_template_is_in_the_header_and_in_the_link(open_page: Open):
    page = open_page(chat="false").run()
    assert page.says("raw text")
    assert page.link["chat"] == "false"


def test_a_trace_file_comes_back_as_it_was_saved(open_page: Open):
    page = open_page().run()
    trace = page.state.run.trace()
    data = store.to_json(trace).encode()
    other = open_page()
    other.test.file_uploader(key="open").upload("run.json", data)
    other.draw()
    assert other.state.run.origin == "opened"
    opened = other.state.run.trace()
    assert (opened.run_id, opened.tokens, opened.pieces) == (
        trace.run_id,
        trace.tokens,
        trace.pieces,
    )
    assert [event.draft for event in opened.rounds] == [event.draft for event in trace.rounds]
    assert other.says("From a file, made on")


def test_an_opened_file_replaces_no_recording_and_is_not_linked(open_page: Open):
    page = open_page()
    recording = page.state.run
    other = replace(recording.trace(), title="Somebody's own")
    page.test.file_uploader(key="open").upload("own.json", store.to_json(other).encode())
    page.draw().click("round-back")
    assert page.state.run.title == "Somebody's own"
    assert recording in page.state.runs.values()
    assert page.says("cannot be linked")
    assert not {"at", "run"} & set(page.link)


def test_a_note_on_a_file_goes_with_the_next_file(open_page: Open):
    page = open_page()
    for name in ("bad1.json", "bad2.json"):
        page.test.file_uploader(key="open").upload(name, b'{"format": 1')
        page.draw()
    assert "bad2.json" in page.warnings
    assert "Choose another file" in page.warnings
    assert "bad1.json" not in page.warnings


def test_a_damaged_trace_file_is_refused_and_nothing_is_lost(open_page: Open):
    page = open_page()
    before = page.state.shown
    page.test.file_uploader(key="open").upload("bad.json", b'{"format": 1')
    page.draw()
    assert "bad.json" in page.warnings
    assert page.state.shown == before


def test_every_shortcut_is_used_once_and_all_can_be_switched_off(open_page: Open):
    page = open_page()
    for chosen in ("arrows", "letters", "off"):
        page.set("segmented_control", "keys", chosen)
        keys = [button.proto.shortcut for button in page.test.button if button.proto.shortcut]
        assert len(keys) == len(set(keys))
        assert bool(keys) == (chosen != "off")


def test_every_panel_can_be_opened(open_page: Open):
    page = open_page()
    for panel in ("tiles", "speed", "check", "table", "scheme"):
        page.set("segmented_control", "panel", panel)


def test_why_a_run_was_not_compared_is_said(open_page: Open):
    def note(page: Page) -> str:
        return next(m.delta for m in page.test.metric if m.label == "Against plain decoding")

    assert note(open_page(check="false").run()) == "switched off"
    page = open_page(check_limit=8).run()
    assert note(page) == "longer than 8"
    page.click("run-one")
    settled(page.state.run)
    assert note(page.draw()) == "after the run"


def test_the_lossless_check_can_be_asked_for_later(open_page: Open):
    page = open_page(check="false").run()
    assert page.state.run.trace().lossless.kind == "not-run"
    page.set("segmented_control", "panel", "check").click("check-now")
    settled(page.state.run)
    assert page.draw().state.run.trace().lossless.kind == "identical"


@pytest.mark.slow
def test_the_embedded_model_loads_in_the_background_and_repeats_a_linked_run(embedded_model: Path):
    page = Page(run="live", max=8, at=2, prompt="chat-sky")
    assert page.state.run.origin == "live"
    settled(page.state.run)
    page.draw()
    assert page.state.run.status == "done"
    assert page.state.cursor == Cursor(2)
    assert page.says("is ready")
    page.close()
