"""The sidebar of Hardware fit: model, GPU, load and acceptance. It makes a question."""

from dataclasses import dataclass
from typing import cast

import streamlit as st

from specviz.bench import machine
from specviz.cost.acceptance import CLASSES, PromptClass, from_file, of_rounds
from specviz.cost.advise import Question
from specviz.cost.hardware import GPUS, THIS, Gpu, find_gpu
from specviz.cost.kernels import find_kernel, kernels_for
from specviz.cost.model_card import built_in, from_text
from specviz.cost.model_shape import ModelShape
from specviz.cost.reasons import title
from specviz.cost.roofline import Deployment
from specviz.cost.speedup import Profile, iid_profile
from specviz.errors import ConfigError, SpecvizError
from specviz.ui.hardware_link import DEFAULTS, MOST, PASTED, choices, key, read
from specviz.words import _

AUTO = "auto"
SKETCH = '{"model_type": "llama", ...}'
WEIGHTS = {AUTO: None, "bfloat16": 2.0, "fp8": 1.0, "fp4": 4.25 / 8}
CACHE = {"bfloat16": 2.0, "fp8": 1.0}
SOURCES = ("published", "rate", "run", "file")
RATED = ("eagle3", "mtp", "dflash", "dspark", "ngram", "draft_model")


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of the settings, or what is wrong with them."""

    question: Question | None
    problem: str = ""
    lengths: tuple[int, ...] = ()  # tokens committed by measured rounds, where there are any


def sidebar() -> Asked:
    """Draw every setting and return the question they make."""
    read()
    with st.sidebar:
        try:
            shape = _model()
            place = _deployment(shape)
            profiles, lengths = _acceptance()
        except SpecvizError as error:
            return Asked(None, str(error))
    question = Question(
        place=place,
        prompts=cast(PromptClass, st.session_state["hw_prompts"]),
        profiles=profiles,
        only=tuple(profiles),
    )
    return Asked(question, lengths=lengths)


def _model() -> ModelShape:
    chosen = st.selectbox(
        _("Model"),
        choices("model"),
        format_func=lambda name: _("Paste a config.json") if name == PASTED else name,
        key="hw_model",
        persist_state="session",
    )
    if chosen != PASTED:
        return built_in(str(chosen))
    text = st.text_area(
        _("config.json of any model on the hub"),
        key="hw_config",
        height=180,
        placeholder=SKETCH,
        persist_state="session",
    )
    if not (text or "").strip():
        raise ConfigError(_("Paste the config.json of a model, or choose one from the list."))
    return from_text(str(text), _("Pasted model"))


def _deployment(shape: ModelShape) -> Deployment:
    gpu = _gpu()
    left, right = st.columns(2)
    with left:
        batch = _whole("batch", _("Batch"))
        tp = _whole("tp", _("GPUs (TP)"))
    with right:
        context = _whole("context", _("Context"), 1024)
        weights = st.selectbox(
            _("Weights"),
            WEIGHTS,
            format_func=lambda name: _("as stored") if name == AUTO else name,
            key="hw_weights",
            persist_state="session",
        )
    with st.expander(_("More settings"), icon=":material/tune:"):
        cache = st.selectbox(_("KV cache"), CACHE, key="hw_kv", persist_state="session")
        main = shape.main
        known = [k.name for k in kernels_for(gpu.family, main.kind)] if main else []
        kernel = st.selectbox(
            _("Attention kernel"),
            (AUTO, *known),
            format_func=lambda name: _("the usual one") if name == AUTO else _kernel_title(name),
            key=f"hw_kernel-{gpu.family}-{main.kind if main else ''}",
        )
        peak = st.toggle(
            _("Data-sheet rates"),
            key="hw_peak",
            help=_("Off: lowered to what a measured part delivered."),
            persist_state="session",
        )
    return Deployment(
        shape=shape,
        gpu=gpu if peak else gpu.achieved,
        kernel=None if kernel in (AUTO, None) else find_kernel(kernel),
        batch=batch,
        context=context,
        tp=tp,
        weight_bytes=WEIGHTS[str(weights)],
        kv_bytes=CACHE[str(cache)],
    )


def _kernel_title(name: str) -> str:
    return find_kernel(name).title


def _gpu() -> Gpu:
    this = machine.saved()
    chosen = st.selectbox(
        _("GPU"),
        choices("gpu"),
        format_func=lambda name: _this_title(this) if name == THIS else GPUS[name].title,
        key="hw_gpu",
        persist_state="session",
    )
    if chosen == THIS and st.button(
        _("Measure this machine") if this is None else _("Measure again"),
        key="hw_measure",
        icon=":material/speed:",
        help=_("A few seconds; other programs make it slower than it is."),
    ):
        with st.spinner(_("Measuring")):
            this = machine.measure()
        st.rerun()
    if chosen == THIS and this is None:
        raise ConfigError(_("This machine was not measured yet. Press Measure this machine."))
    return find_gpu(str(chosen), this)


def _this_title(this: Gpu | None) -> str:
    if this is None:
        return _("This machine, not measured")
    return _("This machine: {name}").format(name=this.title)


def _whole(name: str, label: str, step: int = 1) -> int:
    number = st.number_input(
        label, 1, MOST[name], step=step, key=key(name), persist_state="session"
    )
    return int(number or DEFAULTS[name])


def _acceptance() -> tuple[dict[str, Profile], tuple[int, ...]]:
    """Return profiles that replace the published ones, and lengths of measured rounds."""
    kinds = {
        "chat": _("chat"),
        "code": _("code"),
        "math": _("math"),
        "edit": _("editing a text"),
        "copy": _("copying a text"),
    }
    st.selectbox(
        _("Prompts"),
        CLASSES,
        format_func=kinds.__getitem__,
        key="hw_prompts",
        persist_state="session",
    )
    labels = {
        "published": _("published, nearest model"),
        "rate": _("one rate for all positions"),
        "run": _("the run on the Step page"),
        "file": _("a trace or profile file"),
    }
    source = st.selectbox(
        _("Acceptance"),
        SOURCES,
        format_func=labels.__getitem__,
        key="hw_source",
        persist_state="session",
    )
    if source == "rate":
        return _one_rate(), ()
    if source == "run":
        return _from_run()
    if source == "file":
        return _from_file()
    return {}, ()


def _one_rate() -> dict[str, Profile]:
    scheme = st.selectbox(
        _("Drafter"), RATED, format_func=title, key="hw_rated", persist_state="session"
    )
    rate = st.slider(
        _("Acceptance of every position"), 0.0, 0.99, 0.7, 0.01, key="hw_rate",
        help=_("A special case: real acceptance changes from position to position."),
        persist_state="session",
    )  # fmt: skip
    return {str(scheme): iid_profile(float(rate))}


def _from_run() -> tuple[dict[str, Profile], tuple[int, ...]]:
    from specviz.ui.state import KEY, State

    state = st.session_state.get(KEY)
    trace = state.run.trace() if isinstance(state, State) else None
    if trace is None:
        raise ConfigError(_("There is no run yet: make one on the Step page, then come back."))
    name = _("the run on screen, {model}").format(model=trace.target.name)
    profile = of_rounds(trace.rounds, name)
    if profile is None:
        raise ConfigError(
            _("The run on the Step page drafted nothing: choose a drafter there, run, come back.")
        )
    lengths = tuple(event.acceptance_length for event in trace.rounds)
    return {trace.config.scheme: profile}, lengths


def _from_file() -> tuple[dict[str, Profile], tuple[int, ...]]:
    file = st.file_uploader(_("Trace or profile"), type=["json", "gz"], key="hw_file")
    if file is None or isinstance(file, list):
        raise ConfigError(
            _("Give a trace that specviz saved, or JSON with per-position acceptance rates.")
        )
    scheme, profile = from_file(file.getvalue(), file.name)
    if not scheme:
        scheme = str(st.selectbox(_("Drafter"), RATED, format_func=title, key="hw_file_scheme"))
    return {scheme: profile}, ()
