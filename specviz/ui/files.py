"""Links and files: share what is on screen, save it, open somebody else's."""

import streamlit as st

from specviz.errors import TraceError
from specviz.traces import store
from specviz.ui import links
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.words import _


def show(state: State) -> None:
    """Draw the menu; a file is only written when somebody asks for it."""
    with st.popover(_("Share and files"), icon=":material/share:", key="share-files"):
        if state.linkable:
            st.caption(_("A link to these settings and this place"))
        else:
            st.caption(_("This run cannot be linked, only saved. A link to these settings"))
        st.code(links.share_url(st.context.url or "", state.link), language=None, wrap_lines=True)
        trace = state.run.trace()
        if trace is not None:
            st.download_button(
                _("Save this run as a trace file"),
                data=lambda: store.to_json(trace),
                file_name=f"specviz-{trace.run_id[:8]}.json",
                mime="application/json",
                key="save",
                icon=":material/download:",
                on_click="ignore",
            )
        st.file_uploader(
            _("Open a trace file"),
            type=["json", "gz"],
            key="open",
            on_change=_open,
            args=(state,),
        )


def _open(state: State) -> None:
    file = st.session_state["open"]
    if not state.news("open", file and file.file_id) or file is None:
        return
    state.notes.clear()
    try:
        trace = store.load(file.getvalue())
    except TraceError as error:
        text = _("{name} was not opened: {why}. Choose another file that specviz saved.")
        state.notes.append(text.format(name=file.name, why=str(error).rstrip(".")))
        return
    state.show(Run.of_trace(trace, "opened"))
