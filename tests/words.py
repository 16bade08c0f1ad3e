"""Collects every translatable text; `python -m tests.words` writes specviz/locale/specviz.pot."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEMPLATE = ROOT / "specviz" / "locale" / "specviz.pot"
HEADER = """\
# Every text of specviz that a reader sees. To add a language, copy this file to
# specviz/locale/<language>/LC_MESSAGES/specviz.po, translate it, and compile it with msgfmt.
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


def texts(tree: ast.AST) -> Iterator[Text]:
    """Yield the literal texts handed to `_` and `ngettext`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        given = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        strings = [text for text in given if isinstance(text, str)]
        if node.func.id == "_" and strings:
            yield strings[0], None
        elif node.func.id == "ngettext" and len(strings) >= 2:
            yield strings[0], strings[1]


def titles() -> Iterator[Text]:
    """Yield the titles of the built-in prompts: they are looked up where they are shown."""
    from specviz.bench.prompts import BUILT_IN

    yield from ((prompt.title, None) for prompt in BUILT_IN)


def template() -> str:
    """Return the catalogue without translations, sorted, so that it only changes with its texts."""
    plurals: dict[str, str | None] = dict(titles())
    for path in sources():
        for text, plural in texts(ast.parse(path.read_text("utf-8"))):
            plurals[text] = plural or plurals.get(text)
    return HEADER + "".join(_entry(text, plurals[text]) for text in sorted(plurals))


def _entry(text: str, plural: str | None) -> str:
    if plural is None:
        return f'\nmsgid {_quote(text)}\nmsgstr ""\n'
    return f'\nmsgid {_quote(text)}\nmsgid_plural {_quote(plural)}\nmsgstr[0] ""\nmsgstr[1] ""\n'


def _quote(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    )
    return f'"{escaped}"'


if __name__ == "__main__":
    TEMPLATE.write_text(template(), "utf-8")
