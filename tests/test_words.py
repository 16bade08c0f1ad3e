"""Every word on the page comes from the catalogue, so another language is a file."""

import ast
from pathlib import Path

import pytest

from specviz import errors, words
from specviz.config import SamplingParams
from specviz.errors import ConfigError
from specviz.ui.runner import Engine, Job
from specviz.ui.weights import Weights
from tests.words import ROOT, TEMPLATE, sources, template

PAGE = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "specviz" / "ui").glob("*.py")]
SHOWN = {"label", "help", "placeholder", "alt", "text", "title", "delta", "value", "body"}


def literals(tree):
    """Yield (line, text) of strings that look like words and are not looked up."""
    quiet = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in ("_", "ngettext", "Thread", "cast"):
                quiet.update(id(leaf) for leaf in ast.walk(node))
        for part in ("annotation", "returns"):
            quiet.update(id(leaf) for leaf in ast.walk(getattr(node, part, None) or ast.Pass()))
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            quiet.add(id(body[0].value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            yield node.lineno, node.value


def bare_labels(tree):
    """Yield (line, text) of literals handed straight to a Streamlit call where it shows text."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) not in ("st", "st.sidebar", "left", "right"):
            continue
        shown = [node.args[0]] if node.args else []
        shown += [word.value for word in node.keywords if word.arg in SHOWN]
        for arg in shown:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str) and arg.value:
                yield node.lineno, arg.value


@pytest.mark.parametrize("path", PAGE, ids=lambda path: path.name)
def test_no_widget_has_a_label_outside_the_catalogue(path):
    allowed = {"specviz_address", *(f"pages/{file.name}" for file in (ROOT / "pages").glob("*.py"))}
    found = bare_labels(ast.parse(path.read_text("utf-8")))
    assert [text for text in found if text[1] not in allowed] == []


@pytest.mark.parametrize("path", PAGE, ids=lambda path: path.name)
def test_no_sentence_is_written_outside_the_catalogue(path):
    sentences = [
        (line, text)
        for line, text in literals(ast.parse(path.read_text("utf-8")))
        if " " in text.strip() and text[:1].isupper()
    ]
    assert sentences == []


def test_the_catalogue_holds_every_text():
    written = TEMPLATE.read_text("utf-8")
    assert written == template(), "run: python -m tests.words"


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Return a function that makes a language "xx" of some texts, and speaks it."""

    def speak(pairs):
        folder = tmp_path / "xx" / "LC_MESSAGES"
        folder.mkdir(parents=True, exist_ok=True)
        head = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n'
        said = (f'\nmsgid "{text}"\nmsgstr "{to}"\n' for text, to in pairs.items())
        (folder / "specviz.po").write_text(head + "".join(said), "utf-8")
        monkeypatch.setattr(words, "LOCALE", tmp_path)
        for kept in (words._said, words._catalogue, words._pieces):
            kept.cache_clear()
        words.set_language("xx")

    yield speak
    words.set_language("en")
    for kept in (words._said, words._catalogue, words._pieces):
        kept.cache_clear()


def test_a_second_language_is_one_file(other):
    other({"Run live": "Vivu"})
    assert words._("Run live") == "Vivu"
    assert words._("Stop") == "Stop"
    assert words.languages() == ("en", "xx")


def test_pages_stay_thin():
    for path in (ROOT / "pages").glob("*.py"):
        assert len(path.read_text("utf-8").splitlines()) <= 60, path


def test_words_are_looked_up_not_formatted_first():
    """An f-string inside `_` could never be found in a catalogue."""
    for path in PAGE:
        for node in ast.walk(ast.parse(Path(path).read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("_", "ngettext"):
                assert not any(isinstance(arg, ast.JoinedStr) for arg in node.args), path


ERRORS = {name for name, kind in vars(errors).items() if isinstance(kind, type)} | {"Damaged"}


def bare_messages(tree):
    """Yield (line, code) of errors of ours whose message is written down, not looked up."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        message = node.args[0] if name in ERRORS and node.args else None
        if name in ("require", "_require"):
            message = node.args[-1]
        parts = message.values if isinstance(message, ast.JoinedStr) else [message]
        text = "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
        if any(map(str.isalpha, text)) or isinstance(message, ast.BinOp):
            yield node.lineno, ast.unparse(message)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_error_has_a_message_outside_the_catalogue(path):
    """Errors appear on the page; the few words of code that `allowed` lists are no English."""
    code = {"'True, False'", "'off, light, full'", "'decay, pace'", "'1 <= min <= max <= 64'"}
    found = bare_messages(ast.parse(path.read_text("utf-8")))
    assert [each for each in found if each[1] not in code] == []


def test_a_message_outside_the_catalogue_is_found():
    code = (
        "raise ConfigError(f'{x} is wrong')\nrequire(x, 'x', x, 'one or two')\nraise Busy(_('a'))"
    )
    assert [line for line, _code in bare_messages(ast.parse(code))] == [1, 2]


def test_errors_speak_the_language_of_the_page(other):
    """In the engine's thread too: a thread starts without the language of its page."""
    other({"0 or more": "0 aŭ pli"})
    said = []
    engine = Engine(Weights())
    engine._submit(Job(lambda job: said.append(words._("0 or more"))))
    engine.close()
    engine._thread.join(10)
    with pytest.raises(ConfigError, match="allowed: 0 aŭ pli"):
        SamplingParams(top_k=-1)
    assert said == ["0 aŭ pli"]


@pytest.mark.parametrize("name", ["../../etc", "", "x" * 99, "en\0"])
def test_a_strange_language_is_english(name):
    words.set_language(name)
    assert words._("Stop") == "Stop"
