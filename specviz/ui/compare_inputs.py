"""The sidebar of Compare: prompts, schemes, D and sampling. It makes a plan of one D."""

from typing import cast

import streamlit as st

from specviz.bench.prompts import BUILT_IN
from specviz.bench.sweep_plan import Plan, Prompt
from specviz.bench.sweep_prompts import own_prompt
from specviz.errors import PromptError, SpecvizError
from specviz.ui import sweep_schemes
from specviz.ui.fields import OWN
from specviz.ui.sweep_inputs import Asked
from specviz.ui.sweep_link import Link, Setting
from specviz.ui.weights import DEFAULT, Weights
from specviz.views.prompts import class_name
from specviz.words import _

PROMPTS = {prompt.id: prompt for prompt in BUILT_IN}
THREE = ("edit-rename", "edit-method", "edit-string")  # the fewest that a verdict can be about

LINK = Link(
    "compare",
    {
        "prompts": Setting(default=THREE, choices=(*PROMPTS, OWN)),
        "text": Setting(default=""),
        "schemes": Setting(default=sweep_schemes.DRAFTING, choices=sweep_schemes.DRAFTING),
        "D": Setting(default=5, low=1, high=64),
        "T": Setting(default=0.0, low=0, high=2),
        "seed": Setting(default=0, low=0, high=2**31),
        "max": Setting(default=64, low=8, high=1024),
        "repeats": Setting(default=2, low=1, high=20),
        "target": Setting(default=""),
    },
)


def sidebar(weights: Weights) -> Asked:
    """Draw every setting and return the plan they make."""
    LINK.read()
    with st.sidebar:
        chosen = _prompts()
        spec = str(LINK.value("target")).strip() or DEFAULT
        lacking = sweep_schemes.missing(spec, weights)
        schemes = sweep_schemes.choose(LINK.key("schemes"), lacking)
        _numbers()
        with st.expander(_("Model"), icon=":material/memory:"):
            st.text_input(
                _("Target model"),
                key=LINK.key("target"),
                placeholder=_("Empty: the embedded SmolLM2-135M-Instruct"),
                persist_state="session",
            )
    try:
        plan = Plan(
            prompts=tuple(map(_prompt, chosen)),
            schemes=schemes,
            lengths=(LINK.number("D"),),
            temperatures=(float(cast(float, LINK.value("T"))),),
            tokens=LINK.number("max"),
            repeats=LINK.number("repeats"),
            seed=LINK.number("seed"),
            rows=0,
        )
    except SpecvizError as error:
        return Asked(None, spec, str(error))
    return Asked(plan, spec)


def _prompts() -> tuple[str, ...]:
    chosen = st.multiselect(
        _("Prompts"),
        LINK.settings["prompts"].choices,
        format_func=name_of,
        key=LINK.key("prompts"),
        help=_("A verdict needs at least three; the replay shows one at a time."),
        persist_state="session",
    )
    if OWN in chosen:
        st.text_area(
            _("Your prompt"),
            key=LINK.key("text"),
            height=140,
            placeholder=_("Type what the model shall answer or continue."),
            persist_state="session",
        )
    return tuple(str(name) for name in chosen)


def _prompt(name: str) -> Prompt:
    """Return the prompt of a choice.

    Raises:
        PromptError: The own text is empty.
    """
    if name != OWN:
        return Prompt.of(PROMPTS[name])
    text = str(LINK.value("text"))
    if not text.strip():
        raise PromptError(_("The prompt is empty. Type some text, or choose a built-in prompt."))
    return own_prompt(text, OWN, title=_("Your own text"))


def name_of(name: str) -> str:
    """Return the name of a prompt for people."""
    prompt = PROMPTS.get(name)
    if prompt is None:
        return _("Your own text")
    return f"{class_name(prompt.prompt_class)} · {_(prompt.title)}"


def _numbers() -> None:
    st.number_input(
        _("D, drafted tokens per round"), 1, 64, key=LINK.key("D"), persist_state="session"
    )
    st.slider(_("Temperature"), 0.0, 2.0, step=0.05, key=LINK.key("T"), persist_state="session")
    st.number_input(_("Seed"), 0, 2**31, key=LINK.key("seed"), persist_state="session")
    st.number_input(
        _("Most output tokens"), 8, 1024, step=8, key=LINK.key("max"), persist_state="session"
    )
    st.number_input(
        _("Repeats"),
        1,
        20,
        key=LINK.key("repeats"),
        help=_("Each scheme runs this often, plain decoding between; medians count."),
        persist_state="session",
    )
