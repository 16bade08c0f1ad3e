"""Two runs side by side, locked at the same place of the text."""

import streamlit as st

from specviz.errors import TraceError
from specviz.traces.diff import Diff, compare
from specviz.traces.markdown import issue
from specviz.traces.schema import Trace, redact
from specviz.traces.timeline import Cursor
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.ui.token_pane import component
from specviz.ui.traces_items import choose, items
from specviz.views.diff import headline, margins, numbers_table, settings_table, side_pane
from specviz.words import _


def show(state: State) -> None:
    """Draw two choices and the comparison."""
    found = items(state)
    columns = st.columns(2)
    with columns[0]:
        left = choose(_("Left"), found, "tr_left")
    with columns[1]:
        right = choose(_("Right"), found, "tr_right", at=1)
    try:
        difference = compare(left.load(), right.load())
    except TraceError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    _say(difference)
    st.fragment(_panes)(difference, f"{left.key}-{right.key}")
    _tables(difference)


def _say(found: Diff) -> None:
    draw = st.success if found.divergence is None else st.warning
    draw(literal(headline(found)), icon=":material/compare_arrows:")
    if found.divergence is not None:
        st.caption(literal(margins(found.divergence)))
    if not found.same_prompt:
        st.warning(
            _("The prompts differ, so other texts were to be expected."), icon=":material/info:"
        )


def _panes(found: Diff, key: str) -> None:
    byte = _place(found, f"tr_byte_{key}")
    cursors, at = found.at(byte), found.divergence
    sides = (at.left, at.right) if at is not None else (None, None)
    runs = (found.left, found.right)
    for n, (column, trace) in enumerate(zip(st.columns(2), runs, strict=True)):
        with column:
            st.caption(literal(_where(trace, cursors[n])))
            component()(key=f"tr_pane_{n}", data=side_pane(trace, cursors[n], sides[n]))


def _place(found: Diff, key: str) -> int:
    """Draw the slider that both runs follow, and the buttons beside it."""
    stops = found.stops
    home = found.stop_of(found.divergence.byte) if found.divergence else stops[-1]
    st.session_state.setdefault(key, home)
    byte = int(st.session_state[key])
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        at = stops.index(byte)
        for label, goal, name, icon in (
            (_("Back"), stops[max(0, at - 1)], "back", "chevron_left"),
            (_("Forward"), stops[min(len(stops) - 1, at + 1)], "forward", "chevron_right"),
            (_("First difference"), home, "home", "flag"),
        ):
            st.button(
                label,
                key=f"tr_{name}",
                icon=f":material/{icon}:",
                disabled=goal == byte,
                on_click=_go,
                args=(key, goal),
            )
    if len(stops) > 1:
        st.select_slider(_("Bytes of output shown, at most"), stops, key=key)
    return byte


def _go(key: str, goal: int) -> None:
    st.session_state[key] = goal


def _where(trace: Trace, cursor: Cursor) -> str:
    text = _("{scheme}, D = {d}: {n} of {all} rounds")
    return text.format(
        scheme=trace.config.scheme,
        d=trace.config.draft_length,
        n=cursor.rounds,
        all=len(trace.rounds),
    )


def _tables(found: Diff) -> None:
    left, right = st.columns(2)
    with left:
        st.markdown(f"##### {_('Numbers')}")
        table(*numbers_table((found.left, found.right)), _("Numbers of both runs"))
    with right:
        st.markdown(f"##### {_('Settings that differ')}")
        columns, rows = settings_table(found)
        if rows:
            table(columns, rows, _("Settings that differ"))
        else:
            st.markdown(_("None."))
    with st.expander(_("As Markdown for an issue, without prompts"), icon=":material/bug_report:"):
        st.code(issue(redact(found.left), redact(found.right)), language=None, wrap_lines=True)
