"""How far the target model is: loading with progress, ready, or unusable."""

import streamlit as st

from specviz.ui.controls import chosen_target
from specviz.ui.messages import literal
from specviz.ui.state import State
from specviz.ui.weights import DEFAULT
from specviz.words import _, ngettext

POLL = 0.5  # seconds


def show(state: State) -> None:
    """Draw the status line of the model that is chosen, and redraw it while it loads."""
    spec = chosen_target()
    loading = state.engine.busy or (spec == DEFAULT and not state.greeted)
    waiting = loading and state.engine.weights.held(spec) is None
    with st.sidebar:
        _watch(state, spec, waiting)


def _watch(state: State, spec: str, waiting: bool) -> None:
    st.fragment(_line, run_every=POLL if waiting else None)(state, spec, waiting)


def _line(state: State, spec: str, waiting: bool) -> None:
    held, progress = state.engine.weights.held(spec), state.engine.weights.progress(spec)
    name = _("The embedded model") if spec == DEFAULT else spec
    if held is not None:
        shape = held.target.config
        st.caption(
            literal(
                ngettext(
                    "{name} is ready · {layers} layer, G = {group} · {device}, {dtype}",
                    "{name} is ready · {layers} layers, G = {group} · {device}, {dtype}",
                    shape.layers,
                ).format(
                    name=shape.name,
                    layers=shape.layers,
                    group=shape.group_size,
                    device=str(held.target.device).upper(),
                    dtype=str(held.target.dtype).removeprefix("torch."),
                )
            )
        )
    elif progress is not None:
        text = _("{name}: {what}").format(name=name, what=progress.message)
        st.progress(progress.fraction, text=literal(text))
    elif waiting:
        st.progress(0.0, text=literal(_("{name} is about to be loaded").format(name=name)))
    elif _failed(state, spec):
        text = _("{name} could not be loaded; Run live tries again")
        st.caption(literal(text.format(name=name)))
    else:
        st.caption(literal(_("{name} is loaded when you run").format(name=name)))
    if waiting and state.greeted and (held is not None or not state.engine.busy):
        st.rerun()


def _failed(state: State, spec: str) -> bool:
    """Whether the last attempt at this model, ahead of a run or for one, failed."""
    order = state.run.order
    tried = state.run.status == "failed" and order is not None and order.spec == spec
    return tried or (spec == DEFAULT and state.engine.failure is not None)
