"""Traces: the runs there are, two of them side by side, files in and out."""

from collections.abc import Callable

import streamlit as st

from specviz.ui import address, traces_diff, traces_import, traces_library
from specviz.ui.messages import literal
from specviz.ui.state import State, current
from specviz.words import _

SECTIONS = ("library", "diff", "import")


def show() -> None:
    """Draw the page."""
    state = current()
    address.show("")
    st.markdown(f"## {_('Traces')}")
    names = {"library": _("Library"), "diff": _("Side by side"), "import": _("Import")}
    chosen = st.segmented_control(
        _("Section"),
        SECTIONS,
        format_func=names.__getitem__,
        default=SECTIONS[0],
        required=True,
        key="tr_section",
        label_visibility="collapsed",
        persist_state="session",
    )
    notes = st.session_state.pop("tr_notes", [])
    for note in notes:
        st.info(literal(note), icon=":material/info:")
    sections: dict[str, Callable[[State], None]] = {
        "library": traces_library.show,
        "diff": traces_diff.show,
        "import": traces_import.show,
    }
    sections[chosen or SECTIONS[0]](state)
