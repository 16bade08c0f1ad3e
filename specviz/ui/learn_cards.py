"""Glossary, clinic and myths."""

import streamlit as st

from specviz.traces.schema import Trace
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.views.glossary import peers, spread, words
from specviz.views.learn_clinic import Finding, symptoms
from specviz.views.learn_myths import cards, how
from specviz.words import _


def glossary(trace: Trace) -> None:
    """Draw the peers' definitions with their values, and the words."""
    st.markdown(f"##### {_('What each of them calls acceptance')}")
    st.markdown(literal(spread(trace.rounds)))
    columns, rows = peers(trace.rounds)
    table(columns, rows, _("Definitions of acceptance, computed on the open run"))
    st.markdown(f"##### {_('Words')}")
    table((_("Word"), _("Meaning"), _("Also called")), words(), _("The glossary"))


def clinic(trace: Trace) -> None:
    """Draw a choice of symptoms and the checks of the chosen one."""
    known = {symptom.key: symptom for symptom in symptoms()}
    chosen = st.selectbox(
        _("Symptom"),
        tuple(known),
        format_func=lambda key: known[key].title,
        key="ln_symptom",
        persist_state="session",
    )
    symptom = known[chosen]
    for check in symptom.checks:
        _finding(check(trace))
    text = _("A report like this: {thread}")
    st.caption(literal(text.format(thread=symptom.thread)))


def _finding(found: Finding) -> None:
    icon, word = {
        "fine": ("check_circle", _("fine")),
        "look": ("search", _("look here")),
        "unknown": ("help", _("cannot be told")),
    }[found.state]
    draw = st.warning if found.state == "look" else st.info
    draw(
        f"**{word}** · {literal(found.found)}  \n{literal(found.advice)}", icon=f":material/{icon}:"
    )


def myths(state: State) -> None:
    """Draw the cards, two in a row."""
    traces = {name: run.trace() for name, run in state.recordings.items()}
    known = {name: trace for name, trace in traces.items() if trace is not None}
    columns = st.columns(2)
    for number, card in enumerate(cards(known)):
        with columns[number % 2], st.container(border=True, key=f"ln_card_{number}"):
            st.markdown(f"**{_('Myth')}**: {literal(card.myth)}")
            st.markdown(literal(card.fact))
            st.markdown(f"**{literal(card.number)}**")
            st.caption(literal(f"{how(card.how)}: {card.source}"))
