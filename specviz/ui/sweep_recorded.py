"""The recorded sweep that the page opens with, until something is measured."""

import streamlit as st

from specviz import recordings
from specviz.bench.sweep_log import Memory, read
from specviz.errors import SpecvizError
from specviz.ui.messages import literal
from specviz.ui.sweep_job import Work
from specviz.words import _

KEY = "sweep_recorded"


def recorded() -> Work | None:
    """Return the first recorded sweep, read once for each tab; None if there is none to show.

    A damaged one is said on the page.
    """
    if KEY in st.session_state:
        known: Work | None = st.session_state[KEY]
        return known
    found = None
    for file in recordings.sweeps()[:1]:
        log = Memory()
        try:
            log.results = read(file)
        except SpecvizError as error:
            st.warning(literal(str(error)), icon=":material/warning:")
            return None
        found = Work(plan=None, log=log, status="recorded")
    st.session_state[KEY] = found
    return found


def say(shown: Work | None) -> None:
    """Say that nothing is measured yet, and what is on screen instead."""
    if shown is None:
        st.info(_("Nothing is measured for these settings yet. Start shows points as they come."))
        return
    text = _(
        "Recording: a sweep that comes with the program. Nothing is measured for these settings "
        "yet; Start shows points as they come."
    )
    st.info(text, icon=":material/history:")
