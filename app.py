"""Entry point: declares the pages and nothing else."""

from pathlib import Path

import streamlit as st

from specviz.ui import language
from specviz.words import _

language.settle()
ART = Path(__file__).parent / "specviz" / "ui" / "components"

st.set_page_config(page_title="specviz", page_icon=str(ART / "icon.svg"), layout="wide")
st.logo(str(ART / "logo.svg"), icon_image=str(ART / "icon.svg"), size="large")
st.html(ART / "page.css")
page = st.navigation(
    [
        st.Page("pages/step.py", title=_("Step"), icon=":material/skip_next:", default=True),
        st.Page("pages/compare.py", title=_("Compare"), icon=":material/compare_arrows:"),
        st.Page("pages/sweep.py", title=_("Sweep"), icon=":material/monitoring:"),
        st.Page("pages/hardware.py", title=_("Hardware fit"), icon=":material/memory:"),
        st.Page("pages/traces.py", title=_("Traces"), icon=":material/folder_open:"),
        st.Page("pages/learn.py", title=_("Learn"), icon=":material/school:"),
    ],
    position="top",
)
language.show()
page.run()
