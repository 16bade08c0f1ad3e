"""Compare: the same prompts through several schemes, one after another, then side by side."""

from functools import cache
from importlib import resources

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from specviz.bench import sweep_report as report
from specviz.bench.sweep_log import Memory
from specviz.cost.reasons import title
from specviz.cost.verdict import judge, rank
from specviz.metrics.sweep import ALL
from specviz.ui import address, opening
from specviz.ui.compare_inputs import LINK, name_of, sidebar
from specviz.ui.hardware_charts import draw, lines
from specviz.ui.messages import literal
from specviz.ui.run import Run
from specviz.ui.state import State, current
from specviz.ui.sweep import pace, progress
from specviz.ui.sweep_inputs import Asked
from specviz.ui.sweep_job import Work, start
from specviz.ui.table import table
from specviz.ui.weights import DEFAULT
from specviz.views import compare_table
from specviz.views.compare_charts import race_chart
from specviz.views.compare_replay import replay
from specviz.views.theme import css_variables
from specviz.words import _

KEY, NAME = "compare_work", "specviz_compare_replay"


def show() -> None:
    """Draw the page."""
    state = current({})
    asked = sidebar(state.engine.weights)
    st.markdown(f"## {_('Compare')}")
    for note in LINK.notes():
        st.warning(literal(note), icon=":material/info:")
    address.show(LINK.query())
    if asked.problem:
        st.error(literal(asked.problem), icon=":material/error:")
    work: Work | None = st.session_state.get(KEY)
    interval = pace(work)  # before the buttons: what ends in between is seen below
    _buttons(state, asked, active=work is not None and work.active)
    st.fragment(_live, run_every=interval)(state, interval)
    if asked.spec == DEFAULT:
        opening.greet(state)


def _buttons(state: State, asked: Asked, *, active: bool) -> None:
    with st.container(horizontal=True, gap="small", key="compare-head"):
        st.button(
            _("Compare"),
            key="compare-start",
            type="primary",
            icon=":material/play_circle:",
            disabled=asked.plan is None or active,
            help=_("Runs every scheme on every prompt, plain decoding before and after."),
            on_click=_start,
            args=(state, asked),
        )
        st.button(
            _("Stop"),
            key="compare-stop",
            icon=":material/stop_circle:",
            disabled=not active,
            on_click=state.engine.stop,
        )


def _live(state: State, interval: float | None) -> None:
    """Draw what was decoded so far; the buttons are outside, as on Sweep."""
    work: Work | None = st.session_state.get(KEY)
    if work is None:
        text = _(
            "Nothing was compared yet. Compare runs every scheme on the prompts at the left, one "
            "after another, and then shows them side by side."
        )
        st.info(text)
        return
    progress(work)
    _results(state, work)
    if pace(work) != interval:
        st.rerun()


def _start(state: State, asked: Asked) -> None:
    if asked.plan is not None:
        work = Work(plan=asked.plan, log=Memory(), spec=asked.spec)
        st.session_state[KEY] = start(state.engine, work)


def _results(state: State, work: Work) -> None:
    points = [p for p in work.points() if p.prompt_class == ALL]
    head = work.log.results.head
    if not points or head is None:
        return
    where = _("{how} on {device}, {dtype} · {model} · D = {d} · batch 1, prefill excluded")
    st.caption(
        literal(
            where.format(
                how=_("live") if work.active else _("measured"),
                device=head.environment.device_name,
                dtype=head.environment.dtype,
                model=head.model,
                d=points[0].cell.draft_length,
            )
        )
    )
    measured = [report.measured(p) for p in points]
    st.info(literal(rank(measured).text), icon=":material/gavel:")
    reading = _("Each scheme against plain decoding of the same prompts, medians over prompts.")
    assert isinstance(work.log, Memory)
    samples, traces = list(work.log.results.samples), dict(work.log.traces)
    table(compare_table.columns(), compare_table.rows(points, samples, traces), reading)
    st.caption(literal(reading))
    told = [*compare_table.departures(points, traces), *compare_table.alarms(points, traces)]
    if told:
        lines(told)
    with st.expander(_("Why, scheme by scheme"), icon=":material/balance:", expanded=True):
        lines([judge(each).text for each in measured])
    _side_by_side(state, work)


def _side_by_side(state: State, work: Work) -> None:
    assert isinstance(work.log, Memory)
    known = dict(work.log.traces)
    prompts = list(dict.fromkeys(p for scheme, p in known if scheme != compare_table.PLAIN))
    assert work.plan is not None  # only Sweep shows recordings
    titles = {prompt.id: _(prompt.title) for prompt in work.plan.prompts}
    if not prompts:
        return
    st.markdown(f"##### {_('Side by side')}")
    prompt = st.selectbox(
        _("Prompt shown"),
        prompts,
        format_func=lambda name: name_of(name) if name in LINK.settings["prompts"].choices
        else titles.get(name, name),
        key=f"compare-prompt-{len(prompts)}",
    )  # fmt: skip
    traces = {scheme: trace for (scheme, at), trace in known.items() if at == prompt}
    if not work.active:
        _component()(key="compare-replay", data=replay(traces))
        st.caption(_("Text appears when its round was finished, on one clock of measured times."))
    draw(race_chart({scheme: trace.rounds for scheme, trace in traces.items()}))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        chosen = st.selectbox(
            _("Run to look into"),
            list(traces),
            format_func=title,
            key=f"compare-open-{len(traces)}",
        )
        if st.button(_("Open in Step"), key="compare-open", icon=":material/skip_next:"):
            state.show(Run.of_trace(traces[str(chosen)], "opened"))
            st.switch_page("pages/step.py")


@cache
def _component() -> ComponentRenderer:
    css, js = _asset("compare_replay.css"), _asset("compare_replay.js")
    return st.components.v2.component(NAME, css=css_variables() + css, js=js)


def _asset(name: str) -> str:
    return (resources.files("specviz.ui") / "components" / name).read_text("utf-8")
