"""One chart on the page with its reading, its numbers as a table, and the file of them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from specviz.ui.messages import literal
from specviz.ui.table import table
from specviz.words import _

if TYPE_CHECKING:
    from specviz.views.hardware_drawn import Drawn

NO_BAR = {"displayModeBar": False}


def draw(drawn: "Drawn", pick: str = "") -> list[dict[str, object]]:
    """Draw a chart of either library and everything that belongs to it.

    Returns the data of the marks that were clicked, of an Altair chart with a selection `pick`.
    """
    picked: list[dict[str, object]] = []
    from plotly.graph_objects import Figure

    st.markdown(f"##### {literal(drawn.title)}")
    if isinstance(drawn.chart, Figure):
        st.plotly_chart(drawn.chart, key=drawn.name, config=NO_BAR, alt=drawn.alt)
    elif pick:
        event = st.altair_chart(
            drawn.chart,
            key=drawn.name,
            width="stretch",
            alt=drawn.alt,
            on_select="rerun",
            selection_mode=pick,
        )
        picked = list(event["selection"].get(pick) or [])
    else:
        st.altair_chart(drawn.chart, key=drawn.name, width="stretch", alt=drawn.alt)
    st.caption(literal(drawn.reading))
    with st.expander(_("Numbers"), icon=":material/table:", key=f"{drawn.name}-numbers"):
        table(drawn.columns, drawn.rows, drawn.reading)
        st.download_button(
            _("Save as CSV"),
            data=drawn.csv,
            file_name=f"specviz-{drawn.name}.csv",
            mime="text/csv",
            key=f"{drawn.name}-csv",
            icon=":material/download:",
            on_click="ignore",
        )
    return picked


def lines(sentences: Sequence[str]) -> None:
    """Write sentences as a list."""
    st.markdown("\n".join(f"- {literal(sentence)}" for sentence in sentences))
