"""The one catalogue of words on screen: `_("English text")` looks up the language in use.

English is the source text itself; another language is one gettext file in plain text,
`specviz/locale/<language>/LC_MESSAGES/specviz.po`, read as it is: nothing has to be compiled.
Placeholders are filled after the lookup: `_("{n} rounds").format(n=3)`. Never pass an f-string: it
could not be looked up.
"""

import ast
import gettext
import io
import re
import struct
from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from string import Formatter

LOCALE = Path(__file__).parent / "locale"
SOURCE = "en"  # the language the texts are written in
FIXED = 5  # more letters than this besides its placeholders tell a text from others
_language: ContextVar[str | None] = ContextVar("language", default=None)
_asked: list[Callable[[], str | None]] = []


def languages() -> tuple[str, ...]:
    """Return the languages there are, English first: "en", "pt_BR"."""
    return SOURCE, *sorted(path.parts[-3] for path in LOCALE.glob("*/LC_MESSAGES/specviz.po"))


def nearest(asked: str) -> str:
    """Return the language of ours that serves who asked for one, as browsers and systems say it.

    "pt-BR", "pt_BR.UTF-8", "pt" and "pt-PT" all mean "pt_BR"; what is none of ours means English.
    """
    name = asked.partition(".")[0].replace("-", "_").casefold()
    have = languages()
    whole = [each for each in have if each.casefold() == name]
    family = [each for each in have if each.casefold().split("_")[0] == name.split("_")[0]]
    return (whole or family or [SOURCE])[0]


def set_language(asked: str) -> None:
    """Choose the language of this thread (or task), the nearest of ours to what was asked for."""
    _language.set(nearest(asked))


def ask(reader: Callable[[], str | None]) -> None:
    """Let `reader` say what to speak where nobody chose: a new thread knows no language.

    None from it means that it cannot tell either, and English is spoken.
    """
    _asked[:] = [reader]


def language() -> str:
    """Return the language in use: "en", "pt_BR"."""
    if (chosen := _language.get()) is None:
        for told in filter(None, (reader() for reader in _asked)):
            set_language(told)
        chosen = _language.get()
    return chosen or SOURCE


def _(text: str) -> str:
    """Return `text` in the language in use; English where there is no translation."""
    return text and _catalogue(language()).gettext(text)  # "" is the header in gettext


def later(text: str) -> str:
    """Return `text` itself: it belongs to the catalogue, and is looked up where it is shown.

    For what tables and traces hold. A trace holds English, whoever recorded it.
    """
    return text


def ngettext(one: str, many: str, n: int) -> str:
    """Return the form of the sentence that fits the number `n`."""
    return _catalogue(language()).ngettext(one, many, n)


def retold(sentence: str) -> str:
    """Return an English sentence whose placeholders are filled already, in the language in use.

    Itself, if no text of the catalogue makes it.
    """
    spoken = language()
    if spoken == SOURCE or (whole := _(sentence)) != sentence:
        return sentence if spoken == SOURCE else whole
    for fixed, names, said in _pieces(spoken):
        if not sentence.startswith(fixed[0]) or not sentence.endswith(fixed[-1]):
            continue
        if found := re.fullmatch("(.*?)".join(map(re.escape, fixed)), sentence, re.S):
            values = dict(zip(names, map(retold, found.groups()), strict=True))
            parts = Formatter().parse(said)
            return "".join(text + values.get(name or "", "") for text, name, *_how in parts)
    return sentence


@lru_cache
def _pieces(language: str) -> list[tuple[list[str], list[str], str]]:
    """Return (what stands between placeholders, their names, translation) of texts with some.

    The most special first. Texts of placeholders alone are left out: anything would fit them.
    """
    found = []
    for key, translation in _said(language).items():
        for text, said in zip(key.split("\0"), translation.split("\0"), strict=False):
            parts = list(Formatter().parse(text)) if key and said else []
            names = [name for _fixed, name, *_how in parts if name is not None]
            fixed = [part[0] for part in parts]
            if names and len("".join(fixed)) > FIXED:
                last = [""] if parts[-1][1] is not None else []
                found.append((fixed + last, names, said))
    return sorted(found, key=lambda each: -len("".join(each[0])))


@lru_cache
def _catalogue(language: str) -> gettext.NullTranslations:
    if language == SOURCE:
        return gettext.NullTranslations()
    return gettext.GNUTranslations(io.BytesIO(compiled(_said(language))))


@lru_cache
def _said(language: str) -> dict[str, str]:
    return entries((LOCALE / language / "LC_MESSAGES" / "specviz.po").read_text("utf-8"))


def entries(po: str) -> dict[str, str]:
    r"""Return what a .po file says: translation by text, "" for its header.

    Forms of a number are one entry as gettext keeps them: "one\0many" -> "uma\0várias".
    """
    found: dict[str, str] = {}
    fields: dict[str, str] = {}
    field = ""
    for line in [*po.splitlines(), 'msgid ""']:
        if line.startswith("#") or not line.strip():
            continue
        word, _gap, quoted = line.partition(" ")
        if word == "msgid":
            if fields:
                key = "\0".join(fields[name] for name in fields if name.startswith("msgid"))
                found[key] = "\0".join(fields[name] for name in fields if name.startswith("msgstr"))
            fields = {}
        if not line.startswith('"'):  # otherwise the text of the line above goes on
            field = word
            fields[field] = ""
        fields[field] += ast.literal_eval(line if line.startswith('"') else quoted)
    return found


def compiled(pairs: dict[str, str]) -> bytes:
    """Return the binary form that `gettext` reads: sorted tables of lengths and offsets, strings.

    What has no translation is left out, so its English text is shown.
    """
    known = {key: text for key, text in sorted(pairs.items()) if text.strip("\0")}
    strings = [*(key.encode() for key in known), *(text.encode() for text in known.values())]
    place = 28 + 8 * len(strings)
    tables: list[int] = []
    for string in strings:
        tables += [len(string), place]
        place += len(string) + 1
    head = [0x950412DE, 0, len(known), 28, 28 + 8 * len(known), 0, 0]
    return struct.pack(f"<{7 + len(tables)}I", *head, *tables) + b"".join(
        string + b"\0" for string in strings
    )
