"""Widgets for the fields of the page: a key, a label, and limits from the one table."""

from collections.abc import Callable

import streamlit as st

from specviz.ui.fields import FIELDS


def number(
    key: str,
    label: str,
    *,
    step: float = 1,
    help: str | None = None,
    disabled: bool = False,
) -> None:
    """Draw a number within the limits of its field."""
    field = FIELDS[key]
    number = float if isinstance(field.default, float) else int
    st.number_input(
        label,
        min_value=number(field.low),
        max_value=number(field.high),
        step=number(step),
        key=key,
        help=help,
        disabled=disabled,
        persist_state="session",
    )


def choice(key: str, label: str, name: Callable[[str], str]) -> None:
    """Draw a choice among the words of its field; `name` says them for people."""
    st.selectbox(label, FIELDS[key].choices, format_func=name, key=key, persist_state="session")


def toggle(key: str, label: str, help: str | None = None) -> None:
    """Draw a switch."""
    st.toggle(label, key=key, help=help, persist_state="session")


def text(key: str, label: str, placeholder: str) -> None:
    """Draw a line of text."""
    st.text_input(label, key=key, placeholder=placeholder, persist_state="session")
