"""The answers folded away in a notebook are right by its own checks."""

import ast
import re
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"<details>.*?```python\n(.*?)```.*?</details>", re.DOTALL)


def answers(notebook):
    """Return the Python code that is folded away in a notebook, "" if there is none."""
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return "\n".join(FENCED.findall(text))


NOTEBOOKS = {  # from 7 on every answer is folded as whole functions
    path.stem: nbformat.read(path, as_version=4)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
    if path.stem >= "07"
}


def checks(notebook):
    return next(
        import_module(f"specviz.notebook.exercises.{name}")
        for cell in notebook.cells
        for name in re.findall(
            r"from specviz.notebook.exercises import (\w+) as check", cell.source
        )
    )


def imports(notebook):
    """Return what the cells import from the package, as one module to run."""
    code = [ast.parse(cell.source) for cell in notebook.cells if cell.cell_type == "code"]
    found = [each for tree in code for each in tree.body if isinstance(each, ast.ImportFrom)]
    return ast.Module([each for each in found if each.module.startswith("specviz")], [])


def exercises(notebook):
    for cell in notebook.cells:
        if "exercise" in cell.metadata.get("tags", ()):
            yield ast.parse(cell.source)


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_folded_answer_is_right(name):
    notebook = NOTEBOOKS[name]
    names = {"check": checks(notebook)}
    exec(compile(imports(notebook), name, "exec"), names)
    exec(answers(notebook), names)
    for tree in exercises(notebook):
        verdict = eval(compile(ast.Expression(tree.body[-1].value), name, "eval"), names)
        assert verdict, f"{ast.unparse(tree.body[-1])}: {verdict}"


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_exercise_has_a_folded_answer(name):
    defined = ast.parse(answers(NOTEBOOKS[name])).body
    assert len(defined) == len(list(exercises(NOTEBOOKS[name])))
