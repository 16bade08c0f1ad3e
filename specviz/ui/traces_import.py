"""Files and pasted text: our traces open, other engines' numbers are shown as what they are."""

import streamlit as st

from specviz.errors import TraceError
from specviz.traces import imports, store
from specviz.traces.imports import EngineRun
from specviz.ui import traces_kept
from specviz.ui.messages import literal
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.ui.table import table
from specviz.ui.traces_library import say
from specviz.words import _, retold

GZIP = b"\x1f\x8b"
EXAMPLE = "draft acceptance = 0.64479 (167 accepted / 259 generated), ..."  # of llama.cpp
MOST = 50  # runs of one log that are drawn


def show(state: State) -> None:
    """Draw the two ways in, and what came."""
    st.markdown(
        _(
            "A trace of specviz, or what an engine said of a run: a log, a /metrics page or a JSON "
            "response of {engines}."
        ).format(engines=", ".join(imports.ENGINES))
    )
    st.file_uploader(_("File"), key="tr_file", on_change=_from_file, args=(state,))
    st.text_area(
        _("Or paste it"),
        key="tr_paste",
        height=120,
        placeholder=EXAMPLE,
        persist_state="session",
    )
    st.button(_("Read it"), key="tr_read", on_click=_from_text)
    traces_kept.show()
    problem = st.session_state.get("tr_problem", "")
    if problem:
        st.error(literal(problem), icon=":material/error:")
    runs: tuple[EngineRun, ...] = st.session_state.get("tr_runs", ())
    if runs:
        _runs(runs)


def _from_file(state: State) -> None:
    file = st.session_state["tr_file"]
    if file is None:
        return
    raw: bytes = file.getvalue()
    _clear()
    if not raw.startswith(GZIP) and store.FORMAT.encode() not in raw[:4096]:
        _take(raw.decode("utf-8", "replace"))
        return
    try:
        run = Run.of_trace(store.load(raw), "opened")
    except TraceError as error:
        st.session_state["tr_problem"] = str(error)
        return
    state.show(run)
    st.session_state["tr_item"], st.session_state["tr_section"] = run.id, "library"
    say(_("{name} is open.").format(name=file.name))


def _from_text() -> None:
    _clear()
    _take(str(st.session_state.get("tr_paste") or ""))


def _clear() -> None:
    st.session_state["tr_problem"], st.session_state["tr_runs"] = "", ()


def _take(text: str) -> None:
    try:
        st.session_state["tr_runs"] = imports.read(text)
    except TraceError as error:
        st.session_state["tr_problem"] = str(error)


def _runs(runs: tuple[EngineRun, ...]) -> None:
    traces_kept.offer(runs)
    st.download_button(
        _("Save as JSON"),
        data=lambda: traces_kept.as_text(runs),
        file_name="specviz-import.json",
        mime="application/json",
        key="tr_runs_save",
        icon=":material/download:",
        on_click="ignore",
    )
    for number, run in enumerate(runs[:MOST]):
        with st.container(border=True, key=f"tr_run_{number}"):
            _run(run)
    if len(runs) > MOST:
        st.caption(_("{n} more are in the file.").format(n=len(runs) - MOST))


def _run(run: EngineRun) -> None:
    about = ", ".join(map(retold, run.about.split(", ")))
    st.markdown(f"**{literal(run.engine)}** · {literal(retold(run.source))} · {literal(about)}")
    rows = [(name, value, _("said by the engine")) for name, value in imports.facts(run)]
    rows += [
        (each.name, f"{each.value:.4g}", _("worked out: {how}").format(how=each.formula))
        for each in imports.derived(run)
    ]
    if rows:
        table((_("Number"), _("Value"), _("Source")), rows, _("Numbers of an imported run"))
    for sentence in run.contradictions:
        st.warning(literal(sentence), icon=":material/rule:")
    st.caption(_("No token text, ids or probabilities came with it, so nothing of that is shown."))
    with st.expander(_("In the engine's own words")):
        table((_("Name"), _("Value")), run.said, _("What the engine wrote"))
