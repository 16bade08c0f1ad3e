"""Sweep: speedup against D and G, measured while the reader watches."""

from datetime import UTC, datetime
from pathlib import Path

import streamlit as st

from specviz.bench.sweep_log import FILE, Folder, default_folder
from specviz.errors import SpecvizError
from specviz.ui import address, opening, sweep_recorded, sweep_results
from specviz.ui.messages import literal
from specviz.ui.state import State, current
from specviz.ui.sweep_inputs import LINK, Asked, sidebar
from specviz.ui.sweep_job import Work, start
from specviz.ui.weights import DEFAULT, EMBEDDED
from specviz.words import _, ngettext

KEY, POLL, EAGER = "sweep_work", 2.0, 1.0  # seconds between looks; before the first point


def show() -> None:
    """Draw the page."""
    state = current({})
    asked = sidebar(state.engine.weights)
    st.markdown(f"## {_('Sweep')}")
    for note in LINK.notes():
        st.warning(literal(note), icon=":material/info:")
    address.show(LINK.query())
    if asked.problem:
        st.error(literal(asked.problem), icon=":material/error:")
    work = _work(state, asked)
    interval = pace(work)  # before the buttons: what ends in between is seen below
    _buttons(state, asked, work)
    st.fragment(_live, run_every=interval)(state, asked, interval)
    if asked.spec == DEFAULT:
        opening.greet(state)


def pace(work: Work | None) -> float | None:
    """Return the seconds until the next look; None if nothing changes by itself."""
    if work is None or not work.active:
        return None
    return EAGER if work.first is None else POLL


def _live(state: State, asked: Asked, interval: float | None) -> None:
    """Draw what was measured so far; the buttons are outside.

    A press of one in here would end in the `st.rerun` below, and that takes back a change of page
    that was clicked meanwhile.
    """
    work = _work(state, asked)
    shown = work or sweep_recorded.recorded()
    if work is None:
        sweep_recorded.say(shown)
    if shown is not None:
        progress(shown)
        sweep_results.show(state, shown)
    if pace(work) != interval:
        st.rerun()


def folder_of(asked: Asked) -> Path | None:
    """Return where a sweep with these settings is kept."""
    if asked.plan is None:
        return None
    return default_folder(asked.plan, EMBEDDED if asked.spec == DEFAULT else asked.spec)


def _work(state: State, asked: Asked) -> Work | None:
    """Return the sweep at work, else the one these settings have left in a file."""
    known: Work | None = st.session_state.get(KEY)
    folder = folder_of(asked)
    if known is not None and (known.active or folder is None):
        return known
    assert folder is not None or known is None
    if folder is None:
        return None
    if known is not None and isinstance(known.log, Folder) and known.log.path == folder:
        return known
    if not (folder / FILE).exists() or asked.plan is None:
        return None
    try:
        saved = Work(plan=asked.plan, log=Folder(folder), spec=asked.spec, status="stopped")
    except SpecvizError:
        return None
    st.session_state[KEY] = saved
    return saved


def _buttons(state: State, asked: Asked, work: Work | None) -> None:
    active = work is not None and work.active
    some = work is not None and work.log.results.length > 0
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="sweep-head"):
        st.button(
            _("Resume") if some else _("Start"),
            key="sweep-start",
            type="primary",
            icon=":material/play_circle:",
            disabled=asked.plan is None or active,
            help=_("Measures what is missing; what is in the file is not measured again."),
            on_click=_start,
            args=(state, asked),
        )
        st.button(
            _("Stop"),
            key="sweep-stop",
            icon=":material/stop_circle:",
            disabled=not active,
            on_click=state.engine.stop,
        )
        st.button(
            _("Measure anew"),
            key="sweep-anew",
            icon=":material/restart_alt:",
            disabled=not some or active or asked.plan is None,
            help=_("Puts what was measured aside and begins again."),
            on_click=_anew,
            args=(state, asked),
        )


def _start(state: State, asked: Asked) -> None:
    folder = folder_of(asked)
    if folder is None or asked.plan is None:
        return
    try:
        log = Folder(folder)
    except SpecvizError as error:
        state.notes.append(str(error))
        return
    work = Work(plan=asked.plan, log=log, spec=asked.spec)
    st.session_state[KEY] = start(state.engine, work)


def _anew(state: State, asked: Asked) -> None:
    folder = folder_of(asked)
    if folder is not None and folder.exists():
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        folder.rename(folder.with_name(f"{folder.name}-{stamp}"))
    st.session_state.pop(KEY, None)
    _start(state, asked)


def progress(work: Work) -> None:
    """Say how far it is, how long it will take, and why it ended."""
    if work.failure:
        st.error(literal(work.failure), icon=":material/error:")
    for scheme, reason in work.log.results.unavailable.items():
        st.caption(literal(f"{scheme}: {reason}"))
    if not work.active:
        if work.status == "stopped" and work.total:
            text = _("Stopped at {n} of {all}. Resume goes on there.")
            st.caption(text.format(n=work.done, all=work.total))
        return
    if not work.total:
        st.progress(0.0, text=literal(work.doing or _("waiting for its turn")))
        return
    left = work.left
    eta = _("working out how long") if left is None else duration(left)
    text = _("{n} of {all} measured · {eta} · {doing}")
    said = text.format(n=work.done, all=work.total, eta=eta, doing=work.doing)
    st.progress(min(1.0, work.fraction), text=literal(said))


def duration(seconds: float) -> str:
    """Return a time that is left in words."""
    if seconds < 90:
        n = max(1, round(seconds))
        return ngettext("{n} second left", "{n} seconds left", n).format(n=n)
    n = round(seconds / 60)
    return ngettext("{n} minute left", "{n} minutes left", n).format(n=n)
