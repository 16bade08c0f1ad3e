"""Every language says everything that English says, with the same placeholders and markup."""

import re
import string

import pytest

from specviz import words
from specviz.cli import main
from tests.words import ROOT, collected, languages, missing, updated

PO = languages()
SPOKEN = pytest.mark.parametrize("path", PO, ids=lambda path: path.parts[-3])
MARKUP = re.compile(r"`[^`]*`|</?\w[^>]*>|\*\*|:material/\w+:|--[a-z-]+|\n|https?://\S+|@\w+")
KEYS = {"Home", "End", "Enter", "Escape", "PageUp", "PageDown", "Tab", "Delete"}  # of a keyboard


def forms(path):
    """Yield (English, translation) of every form of every text that has one."""
    for key, said in words.entries(path.read_text("utf-8")).items():
        if key:
            pairs = zip(key.split("\0"), said.split("\0"), strict=True)
            yield from (pair for pair in pairs if pair[1])


def placeholders(text):
    """Return the placeholders with how they are written: {n}, {p:.2f}, {name!r}."""
    return sorted((name, spec, how) for _said, name, spec, how in string.Formatter().parse(text)
                  if name is not None)  # fmt: skip


def test_there_is_brazilian_portuguese():
    assert words.languages() == ("en", "pt_BR")


@SPOKEN
def test_no_text_lacks_a_translation(path):
    assert missing(path.read_text("utf-8")) == [], (
        "translate them; python -m tests.words lists them"
    )


@SPOKEN
def test_the_file_is_in_step_with_the_code(path):
    written = path.read_text("utf-8")
    assert written == updated(written), "run: python -m tests.words"


@SPOKEN
def test_placeholders_are_those_of_the_english_text(path):
    """A sentence may use one twice; what it does not know would break the page."""
    wrong = [(english, said) for english, said in forms(path)
             if set(placeholders(english)) != set(placeholders(said))]  # fmt: skip
    assert wrong == []


@SPOKEN
def test_markup_and_edges_are_those_of_the_english_text(path):
    """Texts are put together, so a space or a colon at an end is part of the text."""

    def shape(text):
        start, end = text[:1].isspace(), re.search(r"[.:?!…]?\s*$", text)[0]
        return sorted(MARKUP.findall(text)), start, end

    wrong = [(english, said) for english, said in forms(path) if shape(english) != shape(said)]
    assert wrong == []


@SPOKEN
def test_a_translation_is_another_text(path):
    """What stays as it is in English is a term or a formula, never a sentence."""
    words_of = re.compile(r"(?<!\{)\b[a-z]{2,}\b(?![}!:.])")
    same = [english for english, said in forms(path)
            if english == said and len(words_of.findall(english)) > 3]  # fmt: skip
    assert same == []


def test_what_lacks_a_translation_is_found():
    """The eye of these tests is open."""
    text = next(iter(collected()))
    assert text in missing('msgid ""\nmsgstr "Language: xx\\n"\n')
    assert placeholders("{n} of {all:.1f}") != placeholders("{n} de {all}")


def test_a_po_file_is_read_as_gettext_writes_it():
    """Long texts go on in the next line, forms of a number are numbered, notes are skipped."""
    found = words.entries(
        '# a note\nmsgid ""\nmsgstr "Language: xx\\n"\n\n#: some.py:3\nmsgid "a \\"b\\"\\n"\n'
        'msgstr ""\n"uno "\n"due"\n\nmsgid "{n} day"\nmsgid_plural "{n} days"\n'
        'msgstr[0] "{n} dia"\nmsgstr[1] "{n} dias"\n'
    )
    assert found == {"": "Language: xx\n", 'a "b"\n': "uno due",
                     "{n} day\0{n} days": "{n} dia\0{n} dias"}  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [("pt-BR", "pt_BR"), ("pt_BR.UTF-8", "pt_BR"), ("pt", "pt_BR"), ("PT-pt", "pt_BR"),
     ("en-GB", "en"), ("de", "en"), ("", "en"), ("C", "en")],
)  # fmt: skip
def test_the_nearest_language_is_spoken(asked, spoken):
    assert words.nearest(asked) == spoken


@pytest.fixture
def portuguese():
    words.set_language("pt_BR")
    yield
    words.set_language("en")


@pytest.mark.parametrize(
    ("held", "told"),
    [
        ("There is no room for a draft.", "Não há espaço para um draft."),
        ("120 tokens asked for", "120 tokens pedidos"),
        ("Stopped: the best next token has probability 0.02, below 0.1.",
         "Parou: o melhor próximo token tem probabilidade 0.02, abaixo de 0.1."),
        ("what nobody translated", "what nobody translated"),
        ("", ""),
    ],
)  # fmt: skip
def test_what_a_trace_holds_in_english_is_retold(portuguese, held, told):
    assert words.retold(held) == told


def test_forms_of_a_number_follow_the_number(portuguese):
    assert words.ngettext("{n} round", "{n} rounds", 1).format(n=1) == "1 rodada"
    assert words.ngettext("{n} round", "{n} rounds", 2).format(n=2) == "2 rodadas"


@pytest.mark.parametrize(
    ("system", "said"), [("pt_BR.UTF-8", "nenhum prompt foi dado"), ("C", "no prompt was given")]
)
def test_the_command_line_speaks_the_language_of_the_system(capsys, monkeypatch, system, said):
    monkeypatch.setenv("LC_ALL", system)
    monkeypatch.delenv("LANGUAGE")
    try:
        assert main(["run"]) == 2
    finally:
        words.set_language("en")
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted((ROOT / "specviz").rglob("*.js")), ids=lambda p: p.name)
def test_scripts_hold_no_words_of_their_own(path):
    """What a script shows is handed to it; only names of keys look like words."""
    code = re.sub(r"(^|\s)//[^\n]*|/\*.*?\*/", "", path.read_text("utf-8"), flags=re.S)
    texts = [a or b or c for a, b, c in re.findall(r'"([^"\n]*)"|\'([^\'\n]*)\'|`([^`]*)`', code)]
    plain = [re.sub(r"\$\{.*?\}", "", text) for text in texts]
    english = re.compile(r"(?<![\w.#-])[A-Z][a-z]{2,}|(?<![\w.#=-])[a-z]{2,} [a-z]{2,}(?![\w-])")
    assert [text for text in plain if english.search(text) and text not in KEYS] == []
