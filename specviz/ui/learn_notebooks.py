"""The notebooks: what each of them teaches, and how to open it."""

import json
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.words import _, language, ngettext

FOLDER = Path(__file__).parents[2] / "notebooks"
SERVER = "http://localhost:8888/lab/tree/"  # where JupyterLab opens unless the port is taken


@dataclass(frozen=True, slots=True)
class Lesson:
    """One notebook."""

    file: str  # under the folder of notebooks
    title: str
    exercises: int


def lessons(folder: Path = FOLDER) -> tuple[Lesson, ...]:
    """Read the notebooks in their order, each in the reader's language where there is one."""
    own = folder / language()
    files = [own / path.name for path in sorted(folder.glob("[0-9]*.ipynb"))]
    return tuple(_lesson(path if path.exists() else folder / path.name, folder) for path in files)


def _lesson(path: Path, folder: Path) -> Lesson:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    title = "".join(cells[0]["source"]).splitlines()[0].lstrip("# ")
    exercises = sum("exercise" in cell["metadata"].get("tags", ()) for cell in cells)
    return Lesson(path.relative_to(folder).as_posix(), title, exercises)


def show(state: State) -> None:
    """Draw the list of notebooks."""
    found = lessons()
    if not found:
        st.info(_("The notebooks are not part of this installation; they are in its repository."))
        return
    st.markdown(
        _(
            "Twelve lessons to run: predict, measure, explain, with exercises that say why an "
            "answer is wrong. Start JupyterLab with `make notebooks`; while it runs on this "
            "computer, the links open it. Or open the folder `notebooks` in your editor."
        )
    )
    for lesson in found:
        count = ngettext("{n} exercise", "{n} exercises", lesson.exercises)
        st.markdown(
            f"[{literal(lesson.title)}]({SERVER}{lesson.file}) · "
            f"{count.format(n=lesson.exercises)} · `{lesson.file}`"
        )
