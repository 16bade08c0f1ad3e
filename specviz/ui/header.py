"""The top of the page: which run is on screen, where it was made, and Run and Stop."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import streamlit as st

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.ui import files
from specviz.ui.controls import Ordered
from specviz.ui.messages import literal
from specviz.ui.run import Order, Run
from specviz.ui.state import State
from specviz.words import _, ngettext

Color = Literal["blue", "gray", "red"]


def show(state: State, ordered: Ordered, trace: Trace | None) -> None:
    """Draw the header; the run on screen, Run and Stop, files, badges."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="row-head"):
        _choose(state)
        _run_buttons(state, ordered)
        files.show(state)
    with st.container(horizontal=True, gap="small", key="row-badges"):
        _badges(state.run, trace)


def _choose(state: State) -> None:
    names = list(state.runs)
    titles = {name: title(run, n) for n, (name, run) in enumerate(state.runs.items())}
    # The browser answers with a title, so new titles need a new key; see also transport._place.
    key = f"shown-{state.shown}-{' '.join(titles.values())}"
    st.selectbox(
        _("On screen"),
        names,
        index=names.index(state.shown),
        format_func=titles.__getitem__,
        key=key,
        label_visibility="collapsed",
        width=380,
        on_change=_show,
        args=(state, key, state.shown),
    )


def _show(state: State, key: str, drawn: str) -> None:
    chosen: str = st.session_state[key]
    if chosen != drawn:
        state.show(state.runs[chosen])


def title(run: Run, number: int) -> str:
    """Return the name of a run in the list."""
    trace = run.trace()
    config = trace.config if trace else run.order.config if run.order else None
    settings = f" · {config.scheme}, D = {config.draft_length}" if config else ""
    kind = {"recorded": _("Recording"), "opened": _("File"), "live": _("Live")}[run.origin]
    branch = _(" (branch)") if run.parent else ""
    return f"{number + 1}. {kind}{branch}: {_(run.title) or _('untitled')}{settings}"


def _run_buttons(state: State, ordered: Ordered) -> None:
    order, off = ordered.order, st.session_state.get("keys") == "off"
    st.button(
        _("Run live"),
        key="run",
        type="primary",
        icon=":material/play_circle:",
        shortcut=None if off else "Ctrl+Enter",
        disabled=order is None,
        help=_("Decode with the settings at the left, to the end."),
        on_click=_start,
        args=(state, order, None),
    )
    st.button(
        _("One round"),
        key="run-one",
        icon=":material/step_over:",
        disabled=order is None,
        help=_("Start with the settings at the left and pause after every round."),
        on_click=_start,
        args=(state, order, 1),
    )
    stopping = state.engine.stopping(state.run)
    st.button(
        _("Stopping…") if stopping else _("Stop"),
        key="stop",
        icon=":material/stop_circle:",
        shortcut=None if off else "Escape",
        disabled=not state.run.active or stopping,
        on_click=state.engine.stop,
    )


def _start(state: State, order: Order | None, rounds: int | None) -> None:
    if order is not None:
        state.start(order, rounds)


def _badges(run: Run, trace: Trace | None) -> None:
    icon, color, text = _origin(run, trace)
    st.badge(literal(text), icon=f":material/{icon}:", color=color)
    if trace is not None:
        st.badge(literal(trace.target.name), icon=":material/memory:", color="gray")
        template = _("chat template") if trace.chat else _("raw text")
        st.badge(literal(template), icon=":material/chat:", color="gray")
        if trace.parent is not None:
            text = ngettext(
                "branched after {n} round", "branched after {n} rounds", trace.parent.round
            )
            st.badge(text.format(n=trace.parent.round), icon=":material/alt_route:", color="gray")
    _progress(run, trace.rounds if trace else ())


def _origin(run: Run, trace: Trace | None) -> tuple[str, Color, str]:
    if run.status == "failed":
        return "error", "red", _("Failed")
    if trace is None:
        if run.active:
            return "hourglass_top", "gray", _("Starting")
        return "stop_circle", "gray", _("Stopped")
    where = f"{trace.environment.device_name}, {trace.environment.dtype}"
    if run.origin == "recorded":
        text = _("Recorded on {where}, {date}").format(where=where, date=date(trace.created))
        return "inventory_2", "gray", text
    if run.origin == "opened":
        text = _("From a file, made on {where}, {date}").format(
            where=where, date=date(trace.created)
        )
        return "folder_open", "gray", text
    return "bolt", "blue", _("Live on {where}").format(where=where)


def _progress(run: Run, done: Sequence[Round]) -> None:
    tokens = sum(event.acceptance_length for event in done)
    rounds = ngettext("{n} round", "{n} rounds", len(done)).format(n=len(done))
    words = ngettext("{n} token", "{n} tokens", tokens).format(n=tokens)
    state = {
        "queued": _("queued"),
        "running": _("running"),
        "checking": _("comparing with plain decoding"),
        "paused": _("paused"),
        "failed": _("stopped early"),
        "done": "",
    }[run.status]
    st.badge(" · ".join(filter(None, (rounds, words, state))), color="gray")


def date(created: str) -> str:
    """Return the day of an ISO date, or what was written if it is none."""
    try:
        return datetime.fromisoformat(created).date().isoformat()
    except ValueError:
        return created[:40]
