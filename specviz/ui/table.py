"""A table of text as it is: Streamlit's own `st.table` would read Markdown in it."""

from collections.abc import Sequence

import streamlit as st


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], alt: str) -> None:
    """Draw rows of text under their headings."""
    data = dict(zip(columns, zip(*rows, strict=True), strict=True))
    st.dataframe(data, hide_index=True, alt=alt)
