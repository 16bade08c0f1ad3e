"""The sidebar of Sweep: schemes, D, prompts, ways to turn G. It makes a plan."""

from dataclasses import dataclass
from typing import cast

import streamlit as st

from specviz.bench.prompts import BUILT_IN, CLASSES
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.errors import SpecvizError
from specviz.metrics.sweep import Mode
from specviz.ui import sweep_schemes
from specviz.ui.sweep_link import Link, Setting
from specviz.ui.weights import DEFAULT, Weights
from specviz.views.prompts import class_name
from specviz.words import _

GROUPS = ("exact", "twin", "kernel")
MOST_LENGTH = 32

LINK = Link(
    "sweep",
    {
        "schemes": Setting(default=sweep_schemes.DRAFTING, choices=sweep_schemes.DRAFTING),
        "D": Setting(default=(1, 8), low=1, high=MOST_LENGTH),
        "classes": Setting(default=("chat", "code", "copy"), choices=CLASSES),
        "per_class": Setting(default=1, low=1, high=5),
        "max": Setting(default=32, low=8, high=512),
        "repeats": Setting(default=2, low=1, high=20),
        "T": Setting(default=0.0, low=0, high=2),
        "groups": Setting(default=(), choices=GROUPS),
        "target": Setting(default=""),
    },
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The plan of the settings, or what is wrong with them."""

    plan: Plan | None
    spec: str
    problem: str = ""


def sidebar(weights: Weights) -> Asked:
    """Draw every setting and return the plan they make."""
    LINK.read()
    with st.sidebar:
        spec = _target()
        schemes = sweep_schemes.choose(LINK.key("schemes"), sweep_schemes.missing(spec, weights))
        low, high = _lengths()
        prompts = _prompts()
        groups = _groups()
        _numbers()
    try:
        plan = Plan(
            prompts=prompts,
            schemes=schemes,
            lengths=tuple(range(low, high + 1)),
            temperatures=(float(cast(float, LINK.value("T"))),),
            groups=groups,
            tokens=LINK.number("max"),
            repeats=LINK.number("repeats"),
        )
    except SpecvizError as error:
        return Asked(None, spec, str(error))
    return Asked(plan, spec)


def _target() -> str:
    text = st.session_state.get(LINK.key("target"), "")
    with st.expander(_("Model"), icon=":material/memory:"):
        text = st.text_input(
            _("Target model"),
            key=LINK.key("target"),
            placeholder=_("Empty: the embedded SmolLM2-135M-Instruct"),
            persist_state="session",
        )
    return str(text or "").strip() or DEFAULT


def _lengths() -> tuple[int, int]:
    chosen = st.slider(
        _("D, drafted tokens per round"),
        1,
        MOST_LENGTH,
        key=LINK.key("D"),
        help=_("Every D in between is measured; a block drafter is never extrapolated."),
        persist_state="session",
    )
    low, high = cast(tuple[int, int], chosen)
    return int(low), int(high)


def _prompts() -> tuple[Prompt, ...]:
    classes = st.multiselect(
        _("Prompt classes"),
        CLASSES,
        format_func=class_name,
        key=LINK.key("classes"),
        persist_state="session",
    )
    each = st.number_input(
        _("Prompts of each class"), 1, 5, key=LINK.key("per_class"), persist_state="session"
    )
    found = [[p for p in BUILT_IN if p.prompt_class == name] for name in classes]
    return tuple(Prompt.of(p) for prompts in found for p in prompts[: int(each or 1)])


def _groups() -> tuple[Mode, ...]:
    names = {
        "exact": _("exact: repeated KV heads"),
        "twin": _("timed twins: other KV heads"),
        "kernel": _("attention alone"),
    }
    chosen = st.multiselect(
        _("Turn G"),
        GROUPS,
        format_func=names.__getitem__,
        key=LINK.key("groups"),
        placeholder=_("Only the model as it is"),
        help=_(
            "G is fixed by the weights. Exact: the same function with KV heads repeated, real "
            "acceptance and time. Timed twins: random weights, real time, acceptance of the model. "
            "Attention alone: that operation, real time."
        ),
        persist_state="session",
    )
    return tuple(cast(Mode, g) for g in GROUPS if g in chosen)


def _numbers() -> None:
    st.number_input(
        _("Most output tokens"), 8, 512, step=8, key=LINK.key("max"), persist_state="session"
    )
    st.number_input(_("Repeats"), 1, 20, key=LINK.key("repeats"), persist_state="session")
    st.slider(_("Temperature"), 0.0, 2.0, step=0.05, key=LINK.key("T"), persist_state="session")
