"""Collects every translatable text: `python -m tests.words`, after texts were added or changed.

It writes specviz/locale/specviz.pot and brings each language's .po up to date, then lists what is
left to translate there. A translation that lost its text is dropped; git still has it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from specviz.words import LOCALE, entries

ROOT = Path(__file__).parents[1]
TEMPLATE = LOCALE / "specviz.pot"
HEADER = """\
# Every text of specviz that a reader sees. To add a language, copy this file to
# specviz/locale/<language>/LC_MESSAGES/specviz.po and translate it; nothing has to be compiled.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"""

Text = tuple[str, str | None]  # the text, and its plural if it has one


def sources() -> list[Path]:
    """Files that may hold text for the reader."""
    code = [ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "specviz").rglob("*.py")]
    return sorted(code)


def languages() -> list[Path]:
    """Return the .po file of every language but English."""
    return sorted(LOCALE.glob("*/LC_MESSAGES/specviz.po"))


def texts(tree: ast.AST) -> Iterator[Text]:
    """Yield the literal texts handed to `_`, `later` and `ngettext`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        given = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        strings = [text for text in given if isinstance(text, str)]
        if node.func.id in ("_", "later") and strings:
            yield strings[0], None
        elif node.func.id == "ngettext" and len(strings) >= 2:
            yield strings[0], strings[1]


def titles() -> Iterator[Text]:
    """Yield the titles of the built-in prompts: they are looked up where they are shown."""
    from specviz.bench.prompts import BUILT_IN

    yield from ((prompt.title, None) for prompt in BUILT_IN)


def collected() -> dict[str, str | None]:
    """Return every text and its plural, sorted, so that files only change with the texts."""
    plurals: dict[str, str | None] = dict(titles())
    for path in sources():
        for text, plural in texts(ast.parse(path.read_text("utf-8"))):
            plurals[text] = plural or plurals.get(text)
    return dict(sorted(plurals.items()))


def template() -> str:
    """Return the catalogue without translations."""
    return HEADER + "".join(_entry(text, many, "") for text, many in collected().items())


def updated(po: str) -> str:
    """Return a language's file with an entry for every text, its translation where it has one."""
    head, known = po.partition("\n\n")[0], entries(po)
    keys = {text: text if many is None else f"{text}\0{many}" for text, many in collected().items()}
    return f"{head}\n" + "".join(_entry(*_split(key), known.get(key, "")) for key in keys.values())


def missing(po: str) -> list[str]:
    """Return the texts that a language's file does not translate, or only in some forms."""
    known = entries(po)
    keys = (text if many is None else f"{text}\0{many}" for text, many in collected().items())
    return [key for key in keys if not all(known.get(key, "").split("\0"))]


def _split(key: str) -> Text:
    text, gap, many = key.partition("\0")
    return text, many if gap else None


def _entry(text: str, plural: str | None, translation: str) -> str:
    if plural is None:
        return f"\nmsgid {_quote(text)}\nmsgstr {_quote(translation)}\n"
    forms = translation.split("\0") if translation else ["", ""]
    said = "".join(f"msgstr[{n}] {_quote(form)}\n" for n, form in enumerate(forms))
    return f"\nmsgid {_quote(text)}\nmsgid_plural {_quote(plural)}\n{said}"


def _quote(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    )
    return f'"{escaped}"'


if __name__ == "__main__":
    TEMPLATE.write_text(template(), "utf-8")
    for path in languages():
        path.write_text(updated(path.read_text("utf-8")), "utf-8")
        left = missing(path.read_text("utf-8"))
        print(f"{path.relative_to(ROOT)}: {len(left)} texts to translate")  # noqa: T201
        for key in left:
            print(f"  {key!r}")  # noqa: T201
