"""What explains the round at the cursor: a sentence, the decision and the panels."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from specviz.traces.schema import Trace
from specviz.traces.timeline import Cursor, micro_steps
from specviz.ui import decision_panel, speed_panel
from specviz.ui.figures import scope
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.views.schemes import scheme_view
from specviz.views.sentences import sentence, text_twin
from specviz.views.tiles import tiles_view
from specviz.words import _

Panel = Callable[[State, Trace, int], None]


def narrate(state: State, trace: Trace) -> None:
    """Say in one sentence what the round at the cursor did, or does."""
    at = state.cursor.clamp(trace.rounds)
    if at.shown < 0:
        text = _("The prompt is read; nothing is drafted yet. Step forward to begin.")
    elif at.micro:
        text = decision_panel.under_way(trace.rounds[at.shown], at, trace.pieces)
    else:
        text = sentence(trace.rounds[at.shown], trace.pieces)
    st.markdown(literal(text))


def show(state: State, trace: Trace) -> None:
    """Draw the panels; of the ones at the right only the chosen one is made."""
    at = state.cursor.clamp(trace.rounds)
    if at.shown < 0:
        return
    left, right = st.columns(2, gap="medium")
    with left, st.container(border=True):
        decision_panel.show(state, trace)
    with right, st.container(border=True):
        panels = _panels()
        chosen = st.segmented_control(
            _("Panel"),
            tuple(panels),
            format_func=lambda name: panels[name][0],
            default="scheme",
            required=True,
            key="panel",
            label_visibility="collapsed",
            persist_state="session",
        )
        panels[chosen or "scheme"][1](state, trace, at.shown)


def _panels() -> dict[str, tuple[str, Panel]]:
    return {
        "scheme": (_("Drafter"), _scheme),
        "tiles": (_("Tiles"), _tiles),
        "speed": (_("Speed"), speed_panel.show),
        "check": (_("Check"), speed_panel.show_check),
        "table": (_("All rounds"), _table),
    }


def _scheme(state: State, trace: Trace, index: int) -> None:
    at = state.cursor.clamp(trace.rounds)
    view = scheme_view(so_far(trace, at) if at.micro else trace, index)
    st.markdown(f"**{literal(view.title)}**")
    for line in view.lines:
        st.markdown(literal(line))
    if view.excerpt:
        st.html(view.page)
    if view.rows:
        table(view.columns, view.rows, view.title)


def so_far(trace: Trace, at: Cursor) -> Trace:
    """Return the run as it was at a place inside a round: later decisions are not in it."""
    event = trace.rounds[at.rounds]
    taken = micro_steps(event)[: at.micro]
    checks = event.checks[: sum(step.kind == "check" for step in taken)]
    kept = {check.node for check in checks}
    partial = replace(
        event,
        checks=checks,
        path=tuple(node for node in event.path if node in kept),
        past_end=tuple(node for node in event.past_end if node in kept),
    )
    return replace(trace, rounds=(*trace.rounds[: at.rounds], partial))


def _tiles(state: State, trace: Trace, index: int) -> None:
    at = state.cursor.clamp(trace.rounds)
    view = tiles_view(so_far(trace, at) if at.micro else trace, index)
    for line in view.lines:
        st.markdown(literal(line))
    st.html(view.page)
    with st.expander(_("As a table")):
        table(view.columns, view.rows, view.alt)


def _table(state: State, trace: Trace, index: int) -> None:
    """Draw the complete rounds before the cursor; a row that is picked becomes its round."""
    shown = state.cursor.clamp(trace.rounds).rounds
    if not shown:
        st.markdown(_("No round is complete yet."))
        return
    twin = text_twin(trace.rounds[:shown], trace.pieces)
    st.caption(literal(scope(shown, len(trace.rounds))))
    st.dataframe(
        dict(zip(twin.columns, zip(*twin.rows, strict=True), strict=True)),
        key="rounds-table",
        hide_index=True,
        height=360,
        on_select=lambda: _pick(state),
        selection_mode="single-row",
        alt=_("Rounds in words: drafted, accepted and committed tokens"),
    )
    st.markdown(literal(twin.sentences[-1]))


def _pick(state: State) -> None:
    rows = st.session_state["rounds-table"].selection.rows
    if state.news("rounds-table", rows) and rows:
        state.move(Cursor(rows[0] + 1))
