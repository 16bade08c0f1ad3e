"""Widgets of single settings, tied to the table of fields by their key."""

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
    kind = float if isinstance(field.default, float) else int
    st.number_input(
        label,
        min_value=kind(field.low),
        max_value=kind(field.high),
        step=kind(step),
        key=key,
        help=help,
        disabled=disabled,
        persist_state="session",
    )


def choice(key: str, label: str, name: Callable[[str], str]) -> None:
    """Draw a list of the words a field allows, each as `name` says it."""
    st.selectbox(label, FIELDS[key].choices, format_func=name, key=key, persist_state="session")


def text(key: str, label: str, placeholder: str) -> None:
    """Draw a line of text."""
    st.text_input(label, key=key, placeholder=placeholder, persist_state="session")
