"""Branching: keep the rounds up to the cursor and go on with other settings or another token."""

from dataclasses import replace

import streamlit as st

from specviz.config import SamplingParams, SessionConfig
from specviz.drafters import describe
from specviz.events import Candidate
from specviz.traces.schema import Trace
from specviz.ui.controls import Ordered
from specviz.ui.messages import literal
from specviz.ui.run import Order
from specviz.ui.state import State
from specviz.views.cards import number
from specviz.views.spelling import quote
from specviz.words import _, ngettext


def show(state: State, ordered: Ordered, trace: Trace) -> None:
    """Draw the menu that starts a branch at the cursor."""
    with st.popover(_("Branch here"), icon=":material/alt_route:"):
        order, kept = ordered.order, state.cursor.clamp(trace.rounds).rounds
        if order is None or trace.prompt_text is None:
            st.markdown(_("The settings at the left must be valid, and the prompt known."))
            return
        st.markdown(literal(summary(kept, order.params, order.config)))
        forced = _forced(trace, kept)
        st.button(
            _("Start the branch"),
            key="branch",
            type="primary",
            on_click=state.branch,
            args=(branch_order(state, order, trace), kept, forced),
        )


def summary(kept: int, params: SamplingParams, config: SessionConfig) -> str:
    """Say what a branch keeps and how it goes on."""
    start = ngettext(
        "Keeps the first round and goes on with the settings at the left: {how}.",
        "Keeps the first {n} rounds and goes on with the settings at the left: {how}.",
        kept,
    )
    how = [describe(config.scheme).title, _("D = {d}").format(d=config.draft_length)]
    how.append(_("temperature {t:g}").format(t=params.temperature))
    if params.temperature:
        how.append(_("seed {n}").format(n=params.seed))
    return start.format(n=kept, how=", ".join(how))


def _forced(trace: Trace, kept: int) -> int | None:
    candidates = first_candidates(trace, kept)
    names = {c.token: f"{quote(trace.pieces, c.token)}, p = {number(c.p)}" for c in candidates}
    chosen: int | None = st.selectbox(
        _("First token"),
        (None, *names),
        format_func=lambda token: _("as it comes") if token is None else names[token],
        key=f"forced-{kept}",
        help=_("Put a token in by hand. Needs a run with full detail."),
        disabled=not names,
    )
    return chosen


def first_candidates(trace: Trace, kept: int) -> tuple[Candidate, ...]:
    """Return the likeliest tokens at the place where the branch starts, if they were kept."""
    if kept >= len(trace.rounds) or not trace.rounds[kept].rows:
        return ()
    return tuple(sorted(trace.rounds[kept].rows[0].top, key=lambda c: -c.logprob))


def branch_order(state: State, order: Order, trace: Trace) -> Order:
    """Return the settings at the left for the prompt and target of the run on screen."""
    parent = state.run.order
    return replace(
        order,
        prompt=trace.prompt_text or "",
        chat=trace.chat,
        title=trace.title,
        spec=parent.spec if parent else order.spec,
    )
