"""What explains the round at the cursor: sentence, decision, drafter, tiles, speed, table."""

import streamlit as st

from specviz.traces.schema import Trace
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.views.sentences import sentence
from specviz.words import _


def narrate(state: State, trace: Trace) -> None:
    """Say in one sentence what the round at the cursor did."""
    at = state.cursor.clamp(trace.rounds)
    if at.shown < 0:
        st.markdown(_("The prompt is read; nothing is drafted yet."))
    else:
        st.markdown(literal(sentence(trace.rounds[at.shown], trace.pieces)))


def show(state: State, trace: Trace) -> None:
    pass
