"""The library: every run there is, and what can be done with one."""

import streamlit as st

from specviz.errors import TraceError
from specviz.traces.schema import Trace
from specviz.ui import traces_export
from specviz.ui.messages import literal
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.ui.traces_items import Item, choose, folder, items, keep, rename
from specviz.words import _


def show(state: State) -> None:
    """Draw the list and the run that is chosen."""
    found = items(state)
    columns = (_("Run"), _("Made on"), _("Date"), _("Drafter"), _("Length"))
    rows = [(i.name, i.where, i.made, i.scheme, i.size) for i in found]
    table(columns, rows, _("Runs that can be opened"))
    st.caption(literal(_("Kept runs are files in {folder}.").format(folder=folder())))
    item = choose(_("Chosen run"), found, "tr_item")
    if item.problem:
        st.error(literal(item.problem), icon=":material/error:")
        _buttons(state, item, None)
        return
    try:
        trace = item.load()
    except TraceError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    _buttons(state, item, trace)
    traces_export.show(trace, item.key)


def _buttons(state: State, item: Item, trace: Trace | None) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if trace is not None and st.button(
            _("Open in Step"), key="tr_open", type="primary", icon=":material/skip_next:"
        ):
            state.show(state.runs.get(item.key) or Run.of_trace(trace, "opened"))
            st.switch_page("pages/step.py")
        if item.path is None:
            st.button(
                _("Keep in the library"),
                key="tr_keep",
                icon=":material/bookmark_add:",
                on_click=_keep,
                args=(trace,),
            )
            return
        if trace is not None:
            _rename(item, trace)
        with st.popover(_("Delete"), icon=":material/delete:", key="tr_ask"):
            st.markdown(literal(_("The file {name} is deleted.").format(name=item.path.name)))
            st.button(_("Delete it"), key="tr_delete", on_click=_delete, args=(item,))


def _rename(item: Item, trace: Trace) -> None:
    with st.popover(_("Rename"), icon=":material/edit:", key="tr_rename"):
        key = f"tr_title_{item.key}"
        st.text_input(_("Title"), trace.title, key=key, max_chars=120)
        st.button(_("Rename it"), key="tr_renamed", on_click=_renamed, args=(item, key))


def say(text: str) -> None:
    """Say this once, above the sections."""
    st.session_state.setdefault("tr_notes", []).append(text)


def _keep(trace: Trace) -> None:
    try:
        path = keep(trace)
    except TraceError as error:
        say(str(error))
        return
    st.session_state["tr_item"] = path.name
    say(_("Kept as {name}.").format(name=path.name))


def _renamed(item: Item, key: str) -> None:
    assert item.path is not None
    try:
        rename(item.path, str(st.session_state[key]))
    except TraceError as error:
        say(str(error))


def _delete(item: Item) -> None:
    assert item.path is not None
    try:
        item.path.unlink(missing_ok=True)
    except OSError as error:
        text = _("{name} cannot be deleted: {why}. Delete it in the folder itself.")
        say(text.format(name=item.path.name, why=error.strerror))
        return
    say(_("{name} is deleted.").format(name=item.path.name))
