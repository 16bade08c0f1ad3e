"""Keeps the browser's address a link to what is on screen.

Streamlit's own query parameters add an entry to the history with every change, so the Back button
would walk through every step of the cursor; this component replaces the entry instead.
"""

import streamlit as st

_SCRIPT = """
export default function ({ data }) {
  const url = new URL(window.location.href);
  if (url.search === (data.query ? `?${data.query}` : "")) return;
  url.search = data.query;
  window.history.replaceState(window.history.state, "", url);
}
"""


def show(query: str) -> None:
    """Write the query string into the address bar."""
    component = st.components.v2.component("specviz_address", js=_SCRIPT, isolate_styles=False)
    component(data={"query": query}, key="address", height=1)
