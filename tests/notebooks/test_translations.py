"""Translated notebooks: the same cells and the same code, other words."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "notebooks"
TRANSLATED = sorted(FOLDER.glob("[a-z][a-z]*_[A-Z][A-Z]/*.ipynb"))
WORDS = re.compile(r"[^\W\d_]{2,}")


def pairs(path):
    """Yield (English cell, translated cell)."""
    there = nbformat.read(path, as_version=4).cells
    here = nbformat.read(FOLDER / path.name, as_version=4).cells
    yield from zip(here, there, strict=True)


class Blank(ast.NodeTransformer):
    """Take the text out of code and keep it in order."""

    def __init__(self):
        self.texts = []

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.texts.append(node.value)
            return ast.Constant("")
        return node


def blank(source):
    taker = Blank()
    return ast.unparse(taker.visit(ast.parse(source))), taker.texts


def test_the_first_three_are_there_in_portuguese():
    found = {path.name[:2] for path in TRANSLATED if path.parent.name == "pt_BR"}
    assert {"01", "02", "03"} <= found


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_only_words_differ(path):
    meanings = {}
    for here, there in pairs(path):
        assert (here.id, here.cell_type, here.metadata) == (
            there.id,
            there.cell_type,
            there.metadata,
        )
        if here.cell_type == "code":
            (code, texts), (other, others) = blank(here.source), blank(there.source)
            assert code == other, here.id
            assert len(texts) == len(others), here.id
            for text, said in zip(texts, others, strict=True):
                # a field that is named twice must keep one name, or a figure would be empty
                assert meanings.setdefault(text, said) == said, here.id


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_text_is_translated(path):
    language = path.parent.name
    for here, there in pairs(path):
        if here.cell_type == "markdown":
            assert here.source != there.source, here.id
            for mark in ("## ", "```", "<details>"):
                assert here.source.count(mark) == there.source.count(mark), here.id
            code = [re.findall(r"`([^`\n]+)`", cell.source) for cell in (here, there)]
            assert code[0] == code[1], here.id
        if "set_language" in here.source and "import" not in here.source.splitlines()[-1]:
            assert f'set_language("{language}")' in there.source


@pytest.mark.parametrize("path", TRANSLATED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_comments_are_translated_too(path):
    for here, there in pairs(path):
        if here.cell_type == "code":
            comments = [re.findall(r"#.*", cell.source) for cell in (here, there)]
            assert len(comments[0]) == len(comments[1]), here.id
            for said, other in zip(*comments, strict=True):
                assert said != other or not WORDS.search(said), said
