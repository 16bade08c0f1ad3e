"""What a sweep has measured so far: the verdict, the charts, the files, and the way to a trace."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from specviz.bench import sweep_report as report
from specviz.bench.sweep_log import TRACES, Folder, Results
from specviz.bench.sweep_points import pass_times, verify_curve
from specviz.cost.reasons import title
from specviz.cost.verdict import rank
from specviz.errors import TraceError
from specviz.metrics.sweep import ALL, Point
from specviz.traces.store import load
from specviz.ui.hardware_charts import draw
from specviz.ui.hardware_recorded import sweep_curves
from specviz.ui.language import spoken
from specviz.ui.messages import literal
from specviz.ui.run import Run
from specviz.ui.state import State
from specviz.ui.sweep_job import Work
from specviz.views.prompts import class_name
from specviz.views.sweep_classes import class_chart
from specviz.views.sweep_g import group_chart, kernel_chart, map_chart
from specviz.views.sweep_lines import PICK, length_chart, mode_name, speedup_chart
from specviz.views.sweep_verify import prediction_chart, verify_chart
from specviz.words import _

KERNEL_CONTEXT = 2048


def show(state: State, work: Work) -> None:
    """Draw everything that the measurements made so far can show."""
    results, points = work.log.results, work.points()
    if results.head is not None:
        _where(results, work)
    if not points:
        if work.active:
            st.info(_("The first point appears after plain decoding and one drafted run."))
        return
    own = results.head.group_size if results.head else points[0].cell.group_size
    whole = [p for p in points if p.prompt_class == ALL and p.cell.group_size == own]
    found = rank([report.measured(p) for p in report.best_points(whole)])
    st.info(literal(found.text), icon=":material/gavel:")
    _over_length(state, work, points, own)
    _over_rows(results, points, own)
    _over_group(results, points, own)
    _files(results)


def _where(results: Results, work: Work) -> None:
    head = results.head
    assert head is not None
    text = _("{how} on {device}, {dtype}, {threads} threads · {model} · {tokens} tokens · {date}")
    env = head.environment
    how = _("live") if work.active else _("measured")
    st.caption(
        literal(
            text.format(
                how=_("recorded") if work.status == "recorded" else how,
                device=env.device_name,
                dtype=env.dtype,
                threads=env.threads,
                model=head.model,
                tokens=head.tokens,
                date=head.created[:10],
            )
        )
    )


def _over_length(state: State, work: Work, points: Sequence[Point], own: int) -> None:
    classes = list(dict.fromkeys(p.prompt_class for p in points))
    classes.sort(key=lambda name: name != ALL)
    chosen = st.segmented_control(
        _("Prompts shown"),
        classes,
        default=ALL,
        required=True,
        format_func=class_name,
        key=f"sweep-class-{len(classes)}",
    )
    shown = [p for p in points if p.cell.group_size == own and p.prompt_class == (chosen or ALL)]
    shown.sort(key=lambda p: (p.cell.scheme, p.cell.draft_length))
    picked = draw(speedup_chart(shown), pick=PICK if any(p.traces for p in shown) else "")
    _open_picked(state, work, picked)
    _open_by_name(state, work, shown)
    draw(length_chart(shown))
    if len(classes) > 2:
        draw(class_chart([p for p in points
                          if p.cell.group_size == own and p.prompt_class != ALL]))  # fmt: skip


def _over_rows(results: Results, points: Sequence[Point], own: int) -> None:
    passes = list(results.passes)
    known = dict.fromkeys((p.mode, p.group_size) for p in passes if p.mode != "kernel")
    models = sorted(known, key=lambda m: (m[0] != "exact", m[1] != own, m[1]))
    curves = {
        f"{mode_name(mode)}, G = {group}": curve
        for mode, group in models
        if len(curve := verify_curve(pass_times(passes, mode, group))) > 1
    }
    if curves:
        draw(verify_chart(curves | sweep_curves()))
    predicted = prediction_chart([p for p in points if p.cell.mode == "exact"])
    if predicted is not None:
        draw(predicted)


def _over_group(results: Results, points: Sequence[Point], own: int) -> None:
    whole = [p for p in points if p.prompt_class == ALL]
    if len({p.cell.group_size for p in whole}) > 1:
        at_own = [p for p in whole if p.cell.group_size == own]
        lengths = sorted({p.cell.draft_length for p in whole})
        best = max(at_own or whole, key=lambda p: p.speedup)
        left, right = st.columns(2)
        length = left.select_slider(
            _("D of the chart over G"),
            lengths,
            best.cell.draft_length,
            key=f"sweep-d-{lengths}",
        ) if len(lengths) > 1 else lengths[0]  # fmt: skip
        schemes = list(dict.fromkeys(p.cell.scheme for p in whole))
        scheme = right.selectbox(
            _("Scheme of the map"), schemes, format_func=title, key=f"sweep-s-{len(schemes)}"
        )
        draw(group_chart([p for p in whole if p.cell.draft_length == length], int(length)))
        draw(map_chart([p for p in whole if p.cell.scheme == scheme]))
    else:
        st.caption(
            _("G is fixed by the weights. Choose a way to turn it at the left to measure over G.")
        )
    rows = report.kernel_lines(results)
    times = {}
    for row in rows:
        timing = row["timing"]
        assert isinstance(timing, dict)
        if (row["context"], row["batch"]) == (KERNEL_CONTEXT, 1) and timing["relative"]:
            length = int(str(row["draft_length"]))
            times[int(str(row["group_size"])), 1 + length] = float(timing["relative"])
    if times:
        draw(kernel_chart(times, KERNEL_CONTEXT))


def _files(results: Results) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, label, data, kind in (
            ("sweep.json", _("Sweep as JSON"), report.as_json, "application/json"),
            ("sweep.csv", _("Points as CSV"), report.as_csv, "text/csv"),
            ("speculation_profile.json", _("Speculation profile"), report.profile,
             "application/json"),
        ):  # fmt: skip
            st.download_button(
                label,
                data=spoken(partial(data, results)),
                file_name=name,
                mime=kind,
                key=f"sweep-{name}",
                icon=":material/download:",
                on_click="ignore",
            )


def _open_picked(state: State, work: Work, picked: Sequence[dict[str, object]]) -> None:
    name = str(picked[0].get("trace", "")) if picked else ""
    if state.news("sweep-pick", name) and name:
        open_trace(state, work, name)


def _open_by_name(state: State, work: Work, shown: Sequence[Point]) -> None:
    """Offer every point's trace by name too: a click needs a mouse."""
    names = {
        trace: f"{title(p.cell.scheme)}, D = {p.cell.draft_length} · {trace.split('.json')[0]}"
        for p in shown
        for trace in p.traces
    }
    if not names or not isinstance(work.log, Folder):
        return
    with st.expander(_("Open a point in Step"), icon=":material/open_in_new:"):
        chosen = st.selectbox(
            _("Point"), list(names), format_func=names.__getitem__, key=f"sweep-open-{len(names)}"
        )
        if st.button(_("Open its trace"), key="sweep-open", icon=":material/skip_next:"):
            open_trace(state, work, str(chosen))


def open_trace(state: State, work: Work, name: str) -> None:
    """Show the trace of a point on the Step page."""
    if not isinstance(work.log, Folder):
        return
    known = {sample.trace for sample in work.log.results.samples}
    if name not in known:
        return
    try:
        trace = load(work.log.path / TRACES / name)
    except TraceError as error:
        st.error(literal(str(error)), icon=":material/error:")
        return
    state.show(Run.of_trace(trace, "opened"))
    st.switch_page("pages/step.py")
