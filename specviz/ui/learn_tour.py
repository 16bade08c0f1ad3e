"""The guided tour: one screen, twelve stops, the part each speaks about has a frame."""

import streamlit as st

from specviz.events import Round
from specviz.traces.schema import Trace
from specviz.traces.timeline import micro_steps
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.ui.token_pane import component, revealed
from specviz.views.charts import decision_chart, time_chart
from specviz.views.decision import Settings, decision
from specviz.views.diff import numbers_table
from specviz.views.learn_tour import Stop, stops
from specviz.views.schemes import scheme_view
from specviz.views.speed import speed_view
from specviz.views.tiles import tiles_view
from specviz.views.tokens import PaneOptions, pane
from specviz.words import _

RECORDING = "ngram-edit"
NO_BAR = {"displayModeBar": False}


def show(state: State) -> None:
    """Draw the stop at which the reader is."""
    run = state.recordings.get(RECORDING) or next(iter(state.recordings.values()), None)
    trace = run.trace() if run is not None else None
    if trace is None or not trace.rounds:
        st.info(_("The recordings of this installation are missing, so there is no tour."))
        return
    st.fragment(_stage)(trace)


def _stage(trace: Trace) -> None:
    tour = stops(trace)
    at = min(int(st.session_state.setdefault("ln_stop", 0)), len(tour) - 1)
    stop = tour[at]
    _words(stop, at, len(tour))
    _frame(stop)
    with st.container(border=True, key="tour-head"):
        env = trace.environment
        where = f"{env.device_name}, {env.dtype}, {trace.created[:10]}"
        drafter = f"{trace.config.scheme}, D = {trace.config.draft_length}"
        st.caption(literal(f"{_(trace.title)} · {where} · {trace.target.name} · {drafter}"))
    left, right = st.columns([3, 2], gap="small")
    with left, st.container(border=True, key="tour-text"):
        _text(trace, stop)
    with right:
        _side(trace, stop)


def _words(stop: Stop, at: int, total: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            _("Back"),
            key="ln_back",
            icon=":material/chevron_left:",
            disabled=at == 0,
            on_click=_go,
            args=(at - 1,),
        )
        st.button(
            _("Next"),
            key="ln_next",
            type="primary",
            icon=":material/chevron_right:",
            disabled=at == total - 1,
            on_click=_go,
            args=(at + 1,),
        )
        st.markdown(_("Stop {n} of {all}").format(n=at + 1, all=total))
    st.markdown(f"#### {literal(stop.title)}")
    st.markdown(literal(stop.text))


def _go(at: int) -> None:
    st.session_state["ln_stop"] = at


def _frame(stop: Stop) -> None:
    """Frame the part the stop speaks about; the words above name it too."""
    rule = "outline:3px solid var(--st-primary-color,#0072b2);outline-offset:2px"
    st.html(f"<style>.st-key-tour-{stop.part}{{{rule};border-radius:0.5rem}}</style>")


def _text(trace: Trace, stop: Stop) -> None:
    at = stop.cursor.clamp(trace.rounds)
    reveal = revealed(trace.rounds[at.rounds], at.micro) if at.micro else None
    chosen = None
    if stop.node is not None and at.shown >= 0 and not at.micro:
        chosen = (trace.rounds[at.shown].index, stop.node)
    data = pane(trace, at.shown + 1, reveal, PaneOptions(height="22rem", selected=chosen))
    component()(key="tour-pane", data=data)


def _side(trace: Trace, stop: Stop) -> None:
    at = stop.cursor.clamp(trace.rounds)
    if at.shown < 0:
        return
    event = trace.rounds[at.shown]
    if stop.part == "figures":
        with st.container(border=True, key="tour-figures"):
            st.markdown(f"**{_('The run in numbers')}**")
            columns, rows = numbers_table((trace,))
            table((columns[0], _("Value")), rows, _("The run in numbers"))
    elif stop.part == "panel":
        with st.container(border=True, key="tour-panel"):
            _panel(trace, stop, event)
    elif not at.micro:
        with st.container(border=True, key="tour-decision"):
            _decision(trace, event, stop)
    else:
        steps = len(micro_steps(event))
        st.caption(_("Step {n} of {all} of this round.").format(n=at.micro, all=steps))


def _decision(trace: Trace, event: Round, stop: Stop) -> None:
    node = "last" if stop.node is None else stop.node
    shown = decision(event, node, Settings(trace.pieces, trace.params, trace.config))
    st.markdown(f"**{literal(shown.title)}**")
    for line in shown.lines:
        st.markdown(literal(line))
    if shown.bars:
        st.plotly_chart(
            decision_chart(shown), key="tour-decision-chart", config=NO_BAR, alt=shown.reading
        )


def _panel(trace: Trace, stop: Stop, event: Round) -> None:
    if stop.panel == "tiles":
        tiles = tiles_view(trace, event.index)
        for line in tiles.lines:
            st.markdown(literal(line))
        st.html(tiles.page)
        return
    if stop.panel == "speed":
        plain = trace.lossless.plain_tpot if trace.lossless else None
        speed = speed_view(trace, len(trace.rounds), plain, live=False)
        for line in speed.formula:
            st.markdown(literal(line))
        chart = time_chart(speed.parts, speed.labels)
        st.plotly_chart(chart, key="tour-time-chart", config=NO_BAR, alt=speed.reading)
        return
    view = scheme_view(trace, event.index)
    st.markdown(f"**{literal(view.title)}**")
    for line in view.lines:
        st.markdown(literal(line))
    if view.excerpt:
        st.html(view.page)
