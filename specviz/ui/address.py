"""Keeps the browser's address a link to what is on screen.

Streamlit's own query parameters add an entry to the history with every change, so the Back button
would walk through every step of the cursor; this component replaces the entry instead.
"""

from functools import cache

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

from specviz.ui import language

_SCRIPT = """
export default function ({ data }) {
  const url = new URL(window.location.href);
  if (url.search === (data.query ? `?${data.query}` : "")) return;
  url.search = data.query;
  window.history.replaceState(window.history.state, "", url);
}
"""


@cache
def _component() -> ComponentRenderer:
    return st.components.v2.component("specviz_address", js=_SCRIPT)


def show(query: str) -> None:
    """Write the query string into the address bar."""
    _component()(data={"query": language.linked(query)}, key="address", height=1)
