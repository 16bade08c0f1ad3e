"""Entry point: declares the pages and nothing else."""

import streamlit as st

from specviz.words import _

st.set_page_config(page_title="specviz", page_icon=":material/skip_next:", layout="wide")
st.navigation(
    [st.Page("pages/step.py", title=_("Step"), icon=":material/skip_next:", default=True)],
    position="hidden",
).run()
