"""Stepping: every move has a button, and every button a key."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor
from specviz.ui import branching, wording
from specviz.ui.controls import Ordered
from specviz.ui.playback import SPEEDS, Playback, elapsed
from specviz.ui.state import State
from specviz.words import _

KEYS = ("arrows", "letters", "off")


@dataclass(frozen=True, slots=True)
class Move:
    """One button: where it leads, and its key in either set."""

    name: str
    label: str
    icon: str
    arrows: str
    letters: str
    act: Callable[[State], None]

    def shortcut(self) -> str | None:
        chosen = st.session_state.get("keys", KEYS[0])
        return {"arrows": self.arrows, "letters": self.letters}.get(chosen)


def moves(state: State) -> tuple[Move, ...]:
    """Return the buttons from left to right."""
    growing = state.run.status == "paused"
    return (
        Move("first", _("First"), "first_page", "Home", "G", lambda s: s.move(Cursor())),
        Move("round-back", _("Round"), "fast_rewind", "B", "B", _round_back),
        Move("step-back", _("Step"), "chevron_left", "Left", "H", _step_back),
        Move("step", _("Step"), "chevron_right", "Right", "L", _step),
        Move("round", _("Round"), "fast_forward", "N", "N", _round),
        Move("last", _("Run to end") if growing else _("Last"), "last_page", "End", "E", _last),
    )


def show(state: State, ordered: Ordered, trace: Trace) -> None:
    """Draw the row of buttons, the place in the run, the speed and the branch menu."""
    back, forward = moves(state)[:3], moves(state)[3:]
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key="row-moves"):
        for move in back:
            _button(state, move, "left")
        _play_button(state)
        for move in forward:
            _button(state, move, "right")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="row-place"):
        _place(state, len(trace.rounds))
        branching.show(state, ordered, trace)
        _keys_and_speed()


def _button(state: State, move: Move, side: Literal["left", "right"]) -> None:
    st.button(
        move.label,
        key=move.name,
        icon=f":material/{move.icon}:",
        icon_position=side,
        shortcut=move.shortcut(),
        on_click=move.act,
        args=(state,),
    )


def _play_button(state: State) -> None:
    playing = state.playback is not None
    st.button(
        _("Pause") if playing else _("Play"),
        key="play",
        icon=":material/pause:" if playing else ":material/play_arrow:",
        shortcut=None if st.session_state.get("keys") == "off" else "P",
        on_click=_toggle_play,
        args=(state,),
    )


def _place(state: State, total: int) -> None:
    """Draw the slider. It gets a new key whenever the run grew or something moved the cursor.

    With one key, a click that the browser sends before it has drawn the last step would carry the
    slider's old value along, and undo that step. Streamlit also reports a change that was none
    when a redraw was interrupted, so the value that was drawn goes along.
    """
    if state.slid != state.cursor.rounds:
        state.slid, state.slider = state.cursor.rounds, state.slider + 1
    key = f"jump-{state.slider}-{total}"
    st.slider(
        _("Whole rounds shown"),
        0,
        max(1, total),
        min(state.slid, max(1, total)),
        key=key,
        disabled=total == 0,
        label_visibility="collapsed",
        on_change=_jump,
        args=(state, key, state.slid),
    )


def _jump(state: State, key: str, drawn: int) -> None:
    chosen: int = st.session_state[key]
    if chosen != drawn:
        state.slid = chosen
        state.move(Cursor(chosen))


def _keys_and_speed() -> None:
    with st.popover(_("Speed and keys"), icon=":material/tune:"):
        st.selectbox(
            _("Playing speed"),
            tuple(SPEEDS),
            format_func=wording.speed,
            index=1,
            key="speed",
            persist_state="session",
        )
        st.segmented_control(
            _("Keys"),
            KEYS,
            format_func=wording.keys,
            default=KEYS[0],
            key="keys",
            help=_("Keys of the buttons above. Switch them off if a screen reader needs them."),
            persist_state="session",
        )


def _round_back(state: State) -> None:
    state.move(state.cursor.back())


def _step_back(state: State) -> None:
    state.move(state.cursor.micro_back(state.run.rounds))


def _step(state: State) -> None:
    at = Cursor(state.cursor.rounds, 1)
    if _compute(state):
        state.follow, state.awaited = False, at
    else:
        state.move(state.cursor.micro_forward(state.run.rounds))


def _round(state: State) -> None:
    if not _compute(state):
        state.move(state.cursor.forward(state.run.rounds))


def _last(state: State) -> None:
    state.move(Cursor.end(state.run.rounds))
    state.engine.advance(state.run)
    state.follow = state.run.active


def _compute(state: State) -> bool:
    """At the end of a paused run, going forward means computing one more round."""
    run = state.run
    if run.status != "paused" or state.cursor.rounds < len(run.rounds):
        return False
    state.engine.advance(run, 1)
    state.follow = True
    return True


def _toggle_play(state: State) -> None:
    if state.playback is not None:
        state.playback = None
        return
    rounds = state.run.rounds
    if state.cursor.rounds >= len(rounds):
        state.move(Cursor())
    speed = SPEEDS[st.session_state.get("speed", "teach")]
    state.follow = False
    state.playback = Playback(speed, time.monotonic(), elapsed(state.cursor, rounds))
