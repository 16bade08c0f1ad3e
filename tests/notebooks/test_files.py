"""Every notebook file: stripped, short, with exercises, and with the package instead of copies."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
ENGLISH = sorted((ROOT / "notebooks").glob("*.ipynb"))
TRANSLATED = sorted((ROOT / "notebooks" / "pt_BR").glob("*.ipynb"))
STRIP = "jupyter nbconvert --clear-output --inplace"


@pytest.fixture(params=[*ENGLISH, *TRANSLATED], ids=lambda path: str(path.relative_to(ROOT)))
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    found = nbformat.read(path, as_version=4)
    nbformat.validate(found)
    return found


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tagged(notebook, name):
    return [cell for cell in code(notebook) if name in cell.metadata.get("tags", ())]


def test_outputs_and_counts_are_not_in_git(path, notebook):
    for cell in code(notebook):
        assert cell.outputs == [], f"{STRIP} {path.name}"
        assert cell.execution_count is None, f"{STRIP} {path.name}"
    assert "widgets" not in notebook.metadata


def test_the_file_is_as_jupyter_writes_it(path, notebook):
    """So that a saved notebook differs in what was changed, and in nothing else."""
    assert path.read_text("utf-8") == nbformat.writes(notebook) + "\n"
    assert notebook.nbformat_minor == 5
    assert notebook.metadata.kernelspec.name == "python3"


def test_it_is_short_and_has_its_own_time_limit(notebook):
    assert len(notebook.cells) <= 25
    assert 0 < notebook.metadata.execution.timeout <= 60


def test_ids_of_cells_say_what_they_are(notebook):
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each) for each in ids), ids


def test_it_begins_with_one_title_and_ends_with_what_was_taught(notebook):
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    last = notebook.cells[-1]
    assert last.cell_type == "code"
    asserts = [n for n in ast.walk(ast.parse(last.source)) if isinstance(n, ast.Assert)]
    assert len(asserts) >= 2


def test_there_are_at_least_two_exercises_with_checks(notebook):
    exercises = tagged(notebook, "exercise")
    assert len(exercises) >= 2
    for cell in exercises:
        tree = ast.parse(cell.source)
        placeholders = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and n.value is ...]
        assert placeholders, f"{cell.id}: no `...` for the answer"
        last = tree.body[-1]
        assert isinstance(last, ast.Expr), cell.id
        assert ast.unparse(last).startswith("check."), cell.id


def test_nothing_is_installed_or_fetched_by_a_cell(notebook):
    for cell in code(notebook):
        assert not re.search(r"^\s*[!%]|https?://", cell.source, re.MULTILINE), cell.id


def test_notebooks_are_numbered_without_a_gap():
    numbers = [int(path.name[:2]) for path in ENGLISH]
    assert numbers == list(range(1, len(numbers) + 1))


def test_markdown_holds_no_html_but_folded_answers(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            bare = re.sub(r"```.*?```|`[^`]*`", "", cell.source, flags=re.DOTALL)
            found = set(re.findall(r"</?([a-z]+)[ >]", bare))
            assert found <= {"details", "summary"}, cell.id


def test_no_notebook_is_of_another_schema_of_language(path):
    raw = json.loads(path.read_text("utf-8"))
    assert set(raw["metadata"]) <= {"execution", "kernelspec", "language_info"}
