"""Files of one run: trace, table of rounds, replay, and Markdown for somebody's issue tracker."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from specviz.cli.sheet import rounds_csv
from specviz.traces.html_replay import replay
from specviz.traces.markdown import issue
from specviz.traces.profile import of_trace
from specviz.traces.schema import Trace, redact
from specviz.traces.store import to_json
from specviz.ui.language import spoken
from specviz.words import _


@dataclass(frozen=True, slots=True)
class Form:
    """One kind of file."""

    label: str
    note: str
    suffix: str
    mime: str
    write: Callable[[Trace], str]


def forms() -> dict[str, Form]:
    """Return the kinds of files by name."""
    return {
        "html": Form(
            _("Replay"),
            _("One HTML file that steps through the run in any browser, without a network."),
            "html",
            "text/html",
            replay,
        ),
        "md": Form(
            _("For an issue"),
            _("Markdown: versions, settings, numbers, first divergence. In English."),
            "md",
            "text/markdown",
            issue,
        ),
        "json": Form(
            _("Trace"),
            _("Everything that was recorded; specviz opens it again."),
            "json",
            "application/json",
            to_json,
        ),
        "profile": Form(
            _("Profile"),
            _("speculation_profile.json, schema 1.0: acceptance by position, for other tools."),
            "profile.json",
            "application/json",
            of_trace,
        ),
        "csv": Form(
            _("Rounds"), _("A table of numbers and token ids."), "csv", "text/csv", rounds_csv
        ),
    }


def show(trace: Trace, key: str) -> None:
    """Draw the choice of a file and the button that makes it."""
    st.markdown(f"##### {_('Export')}")
    known = forms()
    chosen = st.segmented_control(
        _("Kind of file"),
        tuple(known),
        format_func=lambda name: known[name].label,
        default="html",
        required=True,
        key="tr_form",
        label_visibility="collapsed",
        persist_state="session",
    )
    form = known[chosen or "html"]
    hidden = trace.redacted or st.toggle(
        _("Leave the prompt out"),
        key="tr_redact",
        persist_state="session",
    )
    if hidden:
        st.caption(_("What the output or a draft copied from the prompt is still there."))
    st.caption(form.note)
    given = redact(trace) if hidden and not trace.redacted else trace
    st.download_button(
        _("Save the file"),
        data=spoken(lambda: form.write(given)),
        file_name=f"specviz-{trace.run_id[:8]}.{form.suffix}",
        mime=form.mime,
        key=f"tr_save_{form.suffix}",
        icon=":material/download:",
        on_click="ignore",
    )
    if form.suffix == "md":
        st.code(issue(given), language=None, wrap_lines=True, height=360)
