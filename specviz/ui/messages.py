"""Text from models, files and errors on the page: shown as it is, never read as Markdown."""

import re

import streamlit as st

from specviz.ui.run import Failure, Run
from specviz.ui.state import State
from specviz.words import _

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def literal(text: str) -> str:
    """Return `text` so that Streamlit's Markdown, LaTeX and directives leave it alone."""
    return _PUNCTUATION.sub(r"\\\1", text)


def show(state: State, problem: str) -> None:
    """Say what is wrong with the settings, the link and the run, each with a way out."""
    if problem:
        st.error(literal(problem), icon=":material/error:")
    if state.engine.failure is not None and state.engine.failure != state.run.failure:
        _failure(state.engine.failure)
    _run(state.run)
    _notes(state)


def _run(run: Run) -> None:
    if run.notice:
        text = _("Plain decoding, D = 0, because the draft model could not be used. {reason}")
        st.error(literal(text.format(reason=run.notice)), icon=":material/link_off:")
    if run.failure is not None:
        _failure(run.failure)


def _failure(failure: Failure) -> None:
    if failure.bug:
        text = _("This is a bug in specviz; please report it. {what} What was computed is kept.")
    else:
        text = _("This could not be done. {what} Change the settings and run again.")
    what = failure.message.replace("`", "'").rstrip(".") + "."
    st.error(literal(text.format(what=what)), icon=":material/error:")


def _notes(state: State) -> None:
    if not state.notes:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.warning(literal("\n\n".join(state.notes)), icon=":material/info:", width="stretch")
        st.button(_("Dismiss"), key="dismiss", on_click=state.notes.clear)
