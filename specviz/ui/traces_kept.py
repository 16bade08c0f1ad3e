"""What other engines said of runs, kept in the library beside the traces."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from specviz.errors import SpecvizError, TraceError
from specviz.models.store import write_atomically
from specviz.traces import imports
from specviz.traces.imports import EngineRun
from specviz.ui.messages import literal
from specviz.ui.traces_items import folder
from specviz.ui.traces_library import say
from specviz.words import _


def place() -> Path:
    """Return the folder of kept imports."""
    return folder() / "engines"


def show() -> None:
    """Draw the choice among kept imports, where there are any."""
    names = sorted(path.stem for path in place().glob("*.json"))
    if not names:
        return
    if st.session_state.get("tr_kept") not in names:
        st.session_state["tr_kept"] = names[0]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.selectbox(_("Kept imports"), names, key="tr_kept", persist_state="session")
        st.button(_("Open"), key="tr_kept_open", on_click=_open, args=(name,))
        with st.popover(_("Delete"), icon=":material/delete:", key="tr_kept_ask"):
            st.markdown(literal(_("The file {name} is deleted.").format(name=f"{name}.json")))
            st.button(_("Delete it"), key="tr_kept_delete", on_click=_delete, args=(name,))


def offer(runs: tuple[EngineRun, ...]) -> None:
    """Draw the name under which `runs` are kept, and the button."""
    proposed = f"{runs[0].engine} {datetime.now(UTC):%Y-%m-%d %H%M}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(_("Name"), proposed, key="tr_keep_name", max_chars=60)
        st.button(
            _("Keep in the library"),
            key="tr_keep_import",
            icon=":material/bookmark_add:",
            on_click=_keep,
            args=(runs, name),
        )


def as_text(runs: tuple[EngineRun, ...]) -> str:
    """Return runs as JSON that the import reads again."""
    return json.dumps([imports.as_json(run) for run in runs], indent=1)


def _keep(runs: tuple[EngineRun, ...], name: str) -> None:
    stem = re.sub(r"[^\w. -]", "", name).strip(" .") or "import"
    number, path = 1, place() / f"{stem}.json"
    while path.exists():
        number += 1
        path = place() / f"{stem}-{number}.json"
    try:
        write_atomically(path, as_text(runs))
    except SpecvizError as error:
        say(str(error))
        return
    st.session_state["tr_kept"] = path.stem
    say(_("Kept as {name}.").format(name=path.name))


def _open(name: str) -> None:
    try:
        text = (place() / f"{name}.json").read_text("utf-8")
        st.session_state["tr_runs"] = imports.read(text)
    except (OSError, UnicodeDecodeError, TraceError) as error:
        st.session_state["tr_problem"] = str(error)


def _delete(name: str) -> None:
    path = place() / f"{name}.json"
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        text = _("{name} cannot be deleted: {why}. Delete it in the folder itself.")
        say(text.format(name=path.name, why=error.strerror))
        return
    say(_("{name} is deleted.").format(name=path.name))
