"""Two panels of numbers: the speed formula up to the cursor, the lossless report of the run."""

import streamlit as st

from specviz.events import LosslessReport
from specviz.traces.schema import Trace
from specviz.ui.figures import figures, scope, verdict
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.views.cards import number
from specviz.views.charts import lengths_chart, time_chart
from specviz.views.speed import speed_view
from specviz.views.spelling import quote
from specviz.words import _

NO_BAR = {"displayModeBar": False}


def show(state: State, trace: Trace, index: int) -> None:
    """Draw the formula with the numbers of the complete rounds before the cursor."""
    shown = state.cursor.clamp(trace.rounds).rounds
    plain = figures(trace, shown).plain_tpot
    view = speed_view(trace, shown, plain, live=state.run.origin == "live")
    st.caption(literal(f"{scope(shown, len(trace.rounds))} · {view.label}"))
    for line in view.formula:
        st.markdown(literal(line))
    left, right = st.columns(2)
    left.metric(_("Predicted"), view.predicted or _("n/a"))
    right.metric(
        _("Measured"),
        view.measured or _("n/a"),
        delta=view.unsure or None,
        delta_arrow="off",
        delta_color="off",
    )
    st.plotly_chart(
        time_chart(view.parts, view.labels), key="time-chart", config=NO_BAR, alt=view.reading
    )
    st.plotly_chart(
        lengths_chart(view.lengths, view.mean_length, view.first),
        key="lengths-chart",
        config=NO_BAR,
        alt=view.reading,
    )
    table(view.columns, view.rows, view.reading)


def show_check(state: State, trace: Trace, index: int) -> None:
    """Draw the lossless report, and offer it where it was not made."""
    word, note = verdict(trace.lossless, state.run)
    st.markdown(f"**{literal(word)}** · {literal(note)}")
    run, report = state.run, trace.lossless
    if report is None or report.kind == "not-run":
        st.markdown(_("Replays the output one token at a time and compares every choice."))
        if run.session is not None:
            st.button(
                _("Check now"),
                key="check-now",
                disabled=run.active,
                on_click=state.engine.check,
                args=(run,),
            )
        return
    lines = report_lines(report, trace)
    table((_("What"), _("Value")), lines, _("The lossless report"))


def report_lines(report: LosslessReport, trace: Trace) -> list[tuple[str, str]]:
    """Return the report as rows of a table."""
    rows = [(_("Output tokens compared"), str(report.compared))]
    if report.first_divergence is not None:
        rows.append((_("First difference at output token"), str(report.first_divergence)))
    for name, token, logit in (
        (_("Plain decoding writes"), report.plain_token, report.plain_logit),
        (_("This run wrote"), report.token, report.token_logit),
    ):
        if token is not None:
            spelled = quote(trace.pieces, token)
            rows.append((name, spelled if logit is None else f"{spelled}, logit {logit:.4f}"))
    for name, value in (
        (_("Margin between the two logits"), report.margin),
        (_("Near tie below"), report.tolerance),
        (_("Worst gap to the favourite"), report.worst_gap),
    ):
        if value is not None:
            rows.append((name, number(value)))
    if report.plain_tpot is not None:
        rows.append((_("Plain decoding, per token"), f"{1000 * report.plain_tpot:.2f} ms"))
    return rows
