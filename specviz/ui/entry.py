"""Every page goes through app.py, also the first page that a fresh server is asked for.

Until some session called `st.navigation`, Streamlit finds pages in the folder `pages/` by itself
and runs them without app.py: no layout, no language, no navigation of ours.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager


def through_app() -> None:
    """Run app.py instead if this page was started without it."""
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False  # as st.navigation does
        st.rerun()
