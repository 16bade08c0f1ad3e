"""The main area: one fragment, redrawn on every step and, while something moves, by itself."""

import time
from collections.abc import Sequence

import streamlit as st

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor
from specviz.ui import address, figures, header, messages, panels, token_pane, transport
from specviz.ui.controls import Ordered
from specviz.ui.state import State
from specviz.words import _

POLL = 0.6  # seconds between looks at a running engine: each look costs the engine time


def show(state: State, ordered: Ordered) -> None:
    """Draw everything that depends on the run or the cursor."""
    interval = pace(state)
    st.fragment(_stage, run_every=interval)(state, ordered, interval)


def pace(state: State) -> float | None:
    """Seconds until the next redraw by itself, None while nothing moves."""
    if state.playback is not None:
        return state.playback.speed.interval
    return POLL if state.run.active or state.follow else None


def _stage(state: State, ordered: Ordered, interval: float | None) -> None:
    trace = state.run.trace()  # one look for the whole redraw: the engine goes on meanwhile
    rounds = trace.rounds if trace else ()
    state.keep_up(rounds)
    _play(state, rounds)
    header.show(state, ordered, trace)
    messages.show(state, ordered.problem)
    if trace is None and state.run.active:
        st.info(_("The rounds appear here as soon as the model has read the prompt."))
    elif trace is None and state.run.status == "paused":
        st.info(_("Stopped before the prompt was read, so there are no rounds. Run it again."))
    elif trace is not None:
        _explain(state, ordered, trace)
    address.show(state.link)
    if pace(state) != interval:
        st.rerun()


def _explain(state: State, ordered: Ordered, trace: Trace) -> None:
    transport.show(state, ordered, trace)
    panels.narrate(state, trace)
    token_pane.show(state, trace)
    figures.show(state, trace)
    if state.follow and state.run.active:
        st.caption(_("The panels open when the run pauses or you step: drawing would slow it."))
    else:
        panels.show(state, trace)


def _play(state: State, rounds: Sequence[Round]) -> None:
    if state.playback is None:
        return
    state.cursor = state.playback.at(time.monotonic(), state.cursor, rounds).clamp(rounds)
    if state.cursor == Cursor.end(rounds):
        state.playback = None
