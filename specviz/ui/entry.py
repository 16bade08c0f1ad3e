"""Every page goes through app.py, also the first page that a fresh server is asked for.

Until some session called `st.navigation`, Streamlit finds pages in the folder `pages/` by itself
and runs them without app.py: no layout, no language, no navigation of ours.
"""

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

KEY = "specviz_entered"


def through_app() -> None:
    """Run app.py instead if this page was started without it, once in a tab.

    A second detour could only be one in the middle of a tab's work, and it would swallow the
    press of a button: a press lives for one run of the page.
    """
    if PagesManager.uses_pages_directory and not st.session_state.get(KEY):
        st.session_state[KEY] = True
        PagesManager.uses_pages_directory = False  # as st.navigation does
        st.rerun()
