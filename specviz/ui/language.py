"""The language of a tab: chosen in the app, else by its link, else as the browser asks for."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from specviz import words
from specviz.words import _

NAMES = {"en": "English", "pt_BR": "Português"}  # each in its own language, for who reads no other
T = TypeVar("T")
PARAMETER = "lang"  # in the address
_CHOSEN, _WIDGET = "specviz_language", "language"


def of_tab() -> str | None:
    """Return what to speak in this tab; None outside of any."""
    if get_script_run_ctx(suppress_warning=True) is None:
        return None
    if _CHOSEN not in st.session_state:
        linked = st.query_params.get(PARAMETER, "")
        known = words.nearest(linked)
        english = linked.casefold().startswith(words.SOURCE)  # what is none of ours means it too
        st.session_state[_CHOSEN] = known if english or known != words.SOURCE else ""
    chosen: str = st.session_state[_CHOSEN]
    return chosen or st.context.locale or words.SOURCE


# Fragments and callbacks run in threads of their own, before or without app.py.
words.ask(of_tab)


def settle() -> None:
    """Speak the language of this tab from here on."""
    words.set_language(of_tab() or words.SOURCE)


def spoken(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work` so that it speaks this tab's language in whatever thread it is done."""
    now = words.language()

    def done() -> T:
        words.set_language(now)
        return work()

    return done


def linked(query: str) -> str:
    """Return the query string of a page with the language in it, if somebody chose one."""
    chosen = st.session_state.get(_CHOSEN)
    return "&".join(filter(None, (query, chosen and f"{PARAMETER}={chosen}")))


def show() -> None:
    """Draw the choice, in the bar at the top of every page."""
    now, names = words.language(), [*NAMES, *(x for x in words.languages() if x not in NAMES)]
    st.session_state[_WIDGET] = now
    with st.container(key="language-choice"):
        st.selectbox(
            _("Language"),
            names,
            format_func=lambda name: NAMES.get(name, name),
            key=_WIDGET,
            label_visibility="collapsed",
            on_change=_choose,
        )


def _choose() -> None:
    st.session_state[_CHOSEN] = st.session_state[_WIDGET]
    settle()
    # A browser names a choice by its words, which it cannot find again among the new ones.
    for key, value in st.session_state.items():
        if isinstance(value, str | list | tuple):
            st.session_state[key] = value
