"""The token pane: mounts the component and turns a click on a token into a cursor move."""

from functools import cache
from importlib import resources

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor
from specviz.ui.state import State
from specviz.views.theme import css_variables
from specviz.views.tokens import PaneOptions, Reveal, pane

NAME, KEY = "specviz_token_pane", "pane"


def show(state: State, trace: Trace) -> None:
    """Draw the text up to the cursor."""
    component()(
        key=KEY,
        data=payload(state, trace),
        on_select_change=lambda: _select(state),
    )


@cache
def component() -> ComponentRenderer:
    """Return the component, to be mounted with a key and a payload of `views.tokens`."""
    css, js = _asset("token_pane.css"), _asset("token_pane.js")
    return st.components.v2.component(NAME, css=css_variables() + css, js=js)


def payload(state: State, trace: Trace) -> dict[str, object]:
    """Return what the component is given."""
    cursor = state.cursor.clamp(trace.rounds)
    reveal = revealed(trace.rounds[cursor.rounds], cursor.micro) if cursor.micro else None
    options = PaneOptions(selected=state.chosen)
    return pane(trace, cursor.shown + 1, reveal, options)


def revealed(event: Round, micro: int) -> Reveal:
    """How much of a round `micro` small steps show."""
    drafted = len(event.draft)
    if micro <= drafted:
        return Reveal(drafted=micro, active=micro - 1)
    checked = micro - drafted - 1
    active = event.checks[checked - 1].node if checked else None
    return Reveal(drafted=drafted, checked=checked, active=active)


def _select(state: State) -> None:
    """Go to the end of the round of the token that was clicked."""
    event = st.session_state[KEY].get("select")
    if not event:
        return
    at, node = int(event["round"]), event["node"]
    state.move(Cursor(at + 1))
    state.chosen = (at, node if node == "last" else int(node))


def _asset(name: str) -> str:
    return (resources.files("specviz.ui") / "components" / name).read_text("utf-8")
