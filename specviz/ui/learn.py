"""Learn: a tour, the words, a clinic for symptoms, myths with their numbers, the notebooks."""

from collections.abc import Callable

import streamlit as st

from specviz.traces.schema import Trace
from specviz.ui import address, learn_cards, learn_notebooks, learn_tour
from specviz.ui.messages import literal
from specviz.ui.state import State, current
from specviz.words import _

SECTIONS = ("tour", "glossary", "clinic", "myths", "notebooks")


def show() -> None:
    """Draw the page."""
    state = current()
    address.show("")
    st.markdown(f"## {_('Learn')}")
    names = {
        "tour": _("Tour"),
        "glossary": _("Glossary"),
        "clinic": _("Clinic"),
        "myths": _("Myth and measurement"),
        "notebooks": _("Notebooks"),
    }
    chosen = st.segmented_control(
        _("Section"),
        SECTIONS,
        format_func=names.__getitem__,
        default=SECTIONS[0],
        required=True,
        key="ln_section",
        label_visibility="collapsed",
        persist_state="session",
    )
    sections: dict[str, Callable[[State], None]] = {
        "tour": learn_tour.show,
        "glossary": lambda state: _on_open(state, learn_cards.glossary),
        "clinic": lambda state: _on_open(state, learn_cards.clinic),
        "myths": learn_cards.myths,
        "notebooks": learn_notebooks.show,
    }
    sections[chosen or SECTIONS[0]](state)


def _on_open(state: State, draw: Callable[[Trace], None]) -> None:
    """Draw what is computed on the run that is on screen on the Step page."""
    trace = state.run.trace()
    if trace is None or not trace.rounds:
        st.info(_("The run on screen has no rounds yet: choose one on the Traces page."))
        return
    text = _("Computed on the run that is open on the Step page: {title}, {scheme}, D = {d}.")
    st.caption(
        literal(
            text.format(
                title=_(trace.title) or _("untitled"),
                scheme=trace.config.scheme,
                d=trace.config.draft_length,
            )
        )
    )
    draw(trace)
