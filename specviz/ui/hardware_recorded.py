"""The section of Hardware fit that shows measurements: recorded ones, else published ones."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from specviz.cost.advise import Advice
from specviz.errors import TraceError
from specviz.recordings.gpu import GpuRun, compiled, gpu_runs
from specviz.ui.hardware_charts import draw, lines
from specviz.ui.hardware_inputs import Asked
from specviz.ui.messages import literal
from specviz.ui.table import table
from specviz.views.hardware_drawn import Drawn
from specviz.views.hardware_recorded import (
    Series,
    attention_chart,
    compiled_table,
    factors_chart,
    mla_chart,
    passes_chart,
    recorded_curves,
    series_of,
)
from specviz.words import _

GOALS: dict[str, Callable[[], str]] = {
    "plain_decoding_of_the_bandwidth_floor": lambda: _(
        "Plain decoding reaches {ratio} of what the measured bandwidth allows; aimed at: {goal}."
    ),
    "verify_attention_of_bandwidth": lambda: _(
        "Attention over long texts reaches {ratio} of the measured bandwidth; aimed at: {goal}."
    ),
    "attention_against_the_best_backend": lambda: _(
        "At its worst point our kernel takes {ratio} of the best backend's time; at most: {goal}."
    ),
    "tracing": lambda: _("Recording every detail adds {ratio} to a plain round; at most: {goal}."),
}


def measured(advice: Advice, asked: Asked) -> None:
    """Draw the section: recordings where there are some, what was published, what was compiled."""
    runs = known_runs()
    if not runs:
        st.info(
            _(
                "No GPU recording comes with this installation yet. On a machine with a GPU, "
                "python -m specviz gpu-check makes one. Below is what others published, each with "
                "its source."
            ),
            icon=":material/info:",
        )
    for index, run in enumerate(runs):
        _run(run, advice, index)
    draw(mla_chart())
    draw(factors_chart())
    _compiled()


def known_runs() -> tuple[GpuRun, ...]:
    """Return the recordings of GPUs; a damaged one is said on the page, and none is drawn."""
    try:
        return gpu_runs()
    except TraceError as error:
        st.warning(literal(str(error)), icon=":material/error:")
        return ()


def sweep_curves() -> dict[str, dict[int, float]]:
    """Return recorded costs of verifying, drawn beside live ones; say so if there are none."""
    runs = known_runs()
    if not runs:
        st.caption(_("No GPU recording comes with this installation yet: only this run is drawn."))
    return recorded_curves(runs)


def _run(run: GpuRun, advice: Advice, index: int) -> None:
    st.markdown(f"#### {literal(_('Recorded on {label}').format(label=run.label))}")
    if run.tiny:
        st.warning(_("Tiny sizes: a test of the check itself. Its times say nothing of a GPU."))
    for stage, error in run.failed.items():
        st.caption(literal(_("{stage} failed: {error}").format(stage=stage, error=error)))
    known = {name: ratio for name, ratio in run.goals.items() if name in GOALS}
    lines([_goal(name, ratio, goal) for name, (ratio, goal) in known.items() if ratio is not None])
    swept = series_of(run)
    if swept:
        nearest = [s for s in swept if s[0] == advice.group_size] or list(swept)
        chosen = st.selectbox(
            _("G, cached tokens, batch"),
            swept,
            index=swept.index(nearest[0]),
            format_func=_series_name,
            key=f"hw_series-{index}-{advice.group_size}",
        )
        _draw(attention_chart(run, chosen), index)
    if run.passes:
        _draw(passes_chart(run), index)


def _draw(drawn: Drawn, index: int) -> None:
    """Draw a chart of which the page has one for each recording."""
    draw(replace(drawn, name=f"{drawn.name}-{index}"))


def _goal(name: str, ratio: float, goal: float) -> str:
    return GOALS[name]().format(ratio=f"{ratio:.1%}", goal=f"{goal:.0%}")


def _series_name(series: Series) -> str:
    group, context, batch = series
    return _("G = {g}, {context} cached, batch {batch}").format(
        g=group, context=context, batch=batch
    )


def _compiled() -> None:
    st.markdown(f"##### {_('Our kernel, compiled, not run')}")
    try:
        version, made = compiled()
    except TraceError as error:
        st.warning(literal(str(error)), icon=":material/error:")
        return
    columns, rows = compiled_table(made)
    reading = _(
        "The attention kernel at head width 128, compiled by triton {version} for four "
        "architectures without a GPU: registers, shared memory and the matrix instruction of each "
        "tile. It says what a tile is made of, not how long it takes."
    ).format(version=version)
    table(columns, rows, reading)
    st.caption(literal(reading))
