"""The language is chosen or asked for, and every word on a page comes from the catalogue."""

from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from specviz import recordings, words
from specviz.bench.sweep import sweep
from specviz.bench.sweep_log import Folder, default_folder
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.models.device import device_name
from specviz.models.load import load
from specviz.models.store import cache_dir
from specviz.traces.schema import Trace
from specviz.ui import drafters_found, learn, traces
from specviz.ui.hardware_link import SECTIONS
from specviz.ui.learn_notebooks import SERVER, lessons
from tests import pseudo
from tests.pages.conftest import until

ROOT = Path(__file__).parents[2]


def page(name: str, **query: object) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if name != "step":
        test.switch_page(f"pages/{name}.py")
    for key, value in query.items():
        test.query_params[key] = str(value)
    test.run()
    assert not test.exception, test.exception
    return test


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def locale(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locale")
    pseudo.write(folder)
    return folder


@pytest.fixture
def widened(locale, monkeypatch, cache):
    """Speak the language that nobody speaks; here too, as AppTest asks for labels of choices."""
    monkeypatch.setattr(words, "LOCALE", locale)
    words.set_language(pseudo.NAME)
    yield
    words.set_language("en")


@pytest.fixture(scope="module")
def known():
    return pseudo.names()


@pytest.fixture(scope="module")
def quoted():
    return pseudo.quoted()


def section(test: AppTest, key: str, name: str) -> AppTest:
    test.segmented_control(key=key).set_value(name).run()
    assert not test.exception, test.exception
    return test


@pytest.mark.parametrize("name", SECTIONS)
def test_every_word_of_hardware_fit_is_in_the_catalogue(widened, known, quoted, name):
    assert pseudo.plain(page("hardware", lang=pseudo.NAME, section=name), known, quoted) == []


def test_every_word_of_traces_is_in_the_catalogue(widened, known, quoted, tmp_path):
    test = page("traces", lang=pseudo.NAME)
    here = known | set(pseudo.WORD.findall(f"{tmp_path}/cache/traces"))  # the folder of kept runs
    for name in traces.SECTIONS:
        assert pseudo.plain(section(test, "tr_section", name), here, quoted) == [], name


def test_every_word_of_learn_is_in_the_catalogue(widened, known, quoted):
    titles = " ".join(f"{each.title} {each.file} {SERVER}" for each in lessons())
    here = known | set(pseudo.WORD.findall(titles))  # a notebook is called what it calls itself
    test = page("learn", lang=pseudo.NAME)
    for name in learn.SECTIONS:
        words_of = here if name == "notebooks" else known
        assert pseudo.plain(section(test, "ln_section", name), words_of, quoted) == [], name
    section(test, "ln_section", "tour")
    while not test.button(key="ln_next").disabled:
        test.button(key="ln_next").click().run()
        assert pseudo.plain(test, known, quoted) == [], test.session_state["ln_stop"]


def test_every_word_of_step_is_in_the_catalogue(widened, known, quoted, model):
    # "CPU", and the folder that is looked into, stand there once the model is loaded
    here = known | set(pseudo.WORD.findall(f"{model} CPU {cache_dir()}/heads"))
    for name in recordings.names():
        test = page("step", lang=pseudo.NAME, run=name, target=model)
        assert pseudo.plain(test, here, quoted) == [], name
    for panel in ("tiles", "speed", "check", "table"):
        assert pseudo.plain(section(test, "panel", panel), here, quoted) == [], panel


def test_reasons_against_drafters_are_told_anew_in_another_language(widened, model):
    loaded = load(str(model), device="cpu", dtype="float32")
    words.set_language("en")
    english = [each.problem for each in drafters_found._found(loaded)]
    words.set_language(pseudo.NAME)
    told = [each.problem for each in drafters_found._found(loaded)]
    assert any(english)
    assert all(one != other for one, other in zip(english, told, strict=True) if one)


def test_every_word_of_a_comparison_is_in_the_catalogue(widened, known, quoted, model):
    about = {"target": model, "prompts": "own", "text": "abab", "schemes": "ngram", "max": 8}
    test = page("compare", lang=pseudo.NAME, repeats=1, **about)
    work = compared(test)
    assert pseudo.plain(test.run(), known | data(model, work.log.traces.values()), quoted) == []


def test_every_word_of_a_sweep_is_in_the_catalogue(widened, known, quoted, model):
    loaded = load(str(model), device="cpu", dtype="float32")
    plan = Plan(prompts=(Prompt("a", "copy", "abab"),), schemes=("ngram",), lengths=(1, 2),
                tokens=8, repeats=1, rows=3, groups=("exact", "twin", "kernel"))  # fmt: skip
    folder = Folder(default_folder(plan, str(model)))
    sweep(loaded, plan, folder)
    about = {"target": model, "schemes": "ngram", "D": "1-2", "classes": "copy", "max": 8}
    test = page("sweep", lang=pseudo.NAME, repeats=1, **about)
    assert test.session_state["sweep_work"].status == "stopped"
    assert pseudo.plain(test, known | data(model, ()), quoted) == []


def compared(test: AppTest):
    test.button(key="compare-start").click().run()
    work = test.session_state["compare_work"]
    until(lambda: not work.active)
    return work


def data(model: Path, traces: Iterable[Trace]) -> set[str]:
    """Return the words of a page that this machine, the model's folder and its texts bring."""
    texts = {piece for trace in traces for piece in trace.pieces.values()}
    said = " ".join(text.decode("utf-8", "ignore") for text in texts)
    return set(
        pseudo.WORD.findall(f"abab json gz {model} {device_name(torch.device('cpu'))} {said}")
    )


def test_words_outside_the_catalogue_are_found(widened, known, quoted, monkeypatch):
    """The eye of these tests is open: it sees labels, columns and cells that were forgotten."""
    monkeypatch.setattr("specviz.ui.hardware._", lambda text: text)
    found = {
        text for _kind, text in pseudo.plain(page("hardware", lang=pseudo.NAME), known, quoted)
    }
    assert {"Value", "Advised", "Plain pass"} <= found
