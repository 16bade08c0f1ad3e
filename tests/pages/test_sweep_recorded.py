"""The Sweep page opens with the recorded sweep that comes with the program, if one does."""

import gzip

import pytest

from specviz import recordings
from specviz.bench.record import record_sweep
from specviz.bench.sweep import sweep
from specviz.bench.sweep_log import Folder, read
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.bench.sweep_report import as_json
from specviz.errors import ConfigError
from specviz.models.load import load
from tests.pages.conftest import until
from tests.pages.test_sweep import Page

MOST_BYTES = 60_000


@pytest.fixture(scope="module")
def log(model, tmp_path_factory):
    """A finished sweep of two schemes, two lengths and two classes."""
    loaded = load(str(model), device="cpu", dtype="float32")
    prompts = (Prompt("a", "copy", "abab"), Prompt("b", "chat", "hello"))
    plan = Plan(prompts=prompts, schemes=("ngram", "suffix"), lengths=(1, 2), tokens=16,
                repeats=1, rows=3)  # fmt: skip
    folder = Folder(tmp_path_factory.mktemp("sweeps"))
    return sweep(loaded, plan, folder).path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of recorded sweeps without one, and an empty cache."""
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(recordings, "SWEEPS", tmp_path / "sweeps")
    return tmp_path / "sweeps"


def test_a_recording_holds_everything_but_the_names_of_traces(log, folder):
    file = record_sweep(log, "tiny", folder)
    assert recordings.sweeps() == (file,)
    whole = (log / "sweep.jsonl").read_text()
    kept = gzip.decompress(file.read_bytes()).decode()
    assert kept.count("\n") == whole.count("\n")
    assert ".json.gz" in whole
    assert ".json.gz" not in kept
    assert as_json(read(file)) == as_json(read(log / "sweep.jsonl"))
    assert file.read_bytes() == record_sweep(log, "again", folder).read_bytes()


def test_a_log_without_a_point_is_not_recorded(log, folder, tmp_path):
    head = (log / "sweep.jsonl").read_text().splitlines()[0]
    (tmp_path / "sweep.jsonl").write_text(head + "\n")
    with pytest.raises(ConfigError, match="no point"):
        record_sweep(tmp_path, "empty", folder)


def test_the_page_opens_with_the_recording_and_says_that_it_is_one(log, folder):
    record_sweep(log, "tiny", folder)
    head = read(log / "sweep.jsonl").head
    page = Page()
    assert "Recording: a sweep that comes with the program" in page.text
    where = f"recorded on {head.environment.device_name}, float32"
    label = next(line for line in page.text.splitlines() if line.startswith(where))
    assert label.endswith(head.created[:10])
    # Speedup and E[L] over D, classes, v(rows), prediction.
    assert len(page.charts) == 5
    files = {"Sweep as JSON", "Points as CSV", "Speculation profile"}
    assert files <= {button.label for button in page.test.get("download_button")}
    assert page.test.button(key="sweep-start").label == "Start"
    assert page.test.button(key="sweep-anew").disabled
    # Its traces are not shipped, so no point offers one.
    assert not any(item.label == "Open a point in Step" for item in page.test.expander)


def test_without_a_recording_the_page_says_that_nothing_is_measured(folder):
    page = Page()
    assert "Nothing is measured for these settings yet. Start shows" in page.text
    assert "Recording" not in page.text
    assert not page.charts


def test_a_damaged_recording_is_named(log, folder):
    file = record_sweep(log, "tiny", folder)
    file.write_bytes(file.read_bytes()[:-40])
    page = Page()
    assert "tiny.jsonl.gz is no file of a sweep" in page.text
    assert "Nothing is measured for these settings yet. Start shows" in page.text


def test_what_is_measured_takes_the_place_of_the_recording(log, folder, model):
    record_sweep(log, "tiny", folder)
    page = Page(model, D="1-1", per_class=1)
    assert "Recording: " in page.text
    page.press("sweep-start")
    until(lambda: not page.work.active)
    page.draw()
    assert "Recording: " not in page.text
    assert "measured on" in page.text
    page.test.number_input(key="sweep_max").set_value(16)
    page.draw()
    assert "Recording: " in page.text  # nothing is measured for 16 tokens
    page.test.number_input(key="sweep_max").set_value(8)
    page.draw()
    assert "measured on" in page.text


def test_what_comes_with_the_program_is_small_and_of_the_embedded_model():
    for file in recordings.sweeps():
        found = read(file)
        assert file.stat().st_size < MOST_BYTES
        assert found.head.model == "SmolLM2-135M-Instruct"
        assert not any(sample.trace for sample in found.samples)
