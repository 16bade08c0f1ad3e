"""The sidebar: what to decode and how. It makes an order, or says why there is none."""

from dataclasses import dataclass
from typing import cast

import streamlit as st

from specviz.bench.prompts import BUILT_IN, BuiltInPrompt
from specviz.config import Detail, SamplingParams, SessionConfig, Verifier, read_logit_bias
from specviz.errors import ConfigError, PromptError
from specviz.ui import drafter_controls, widgets, wording
from specviz.ui.fields import FIELDS, OWN
from specviz.ui.run import Order
from specviz.ui.state import setting
from specviz.ui.weights import DEFAULT
from specviz.views.prompts import class_name
from specviz.words import _

PROMPTS = {prompt.id: prompt for prompt in BUILT_IN}


@dataclass(frozen=True, slots=True)
class Ordered:
    """The order the settings make, or what is wrong with them."""

    order: Order | None
    problem: str = ""


def sidebar() -> Ordered:
    """Draw every setting and return the order they make."""
    with st.sidebar:
        _prompt()
        drafter_controls.show()
        _sampling()
        with st.expander(_("More settings"), icon=":material/tune:"):
            _more()
        with st.expander(_("Model"), icon=":material/memory:"):
            _target()
    try:
        return Ordered(make_order())
    except ConfigError as error:
        return Ordered(None, str(error))


def make_order() -> Order:
    """Read the settings.

    Raises:
        ConfigError: They do not go together; says which and what to do.
    """
    prompt = PROMPTS.get(str(setting("prompt")))
    text = prompt.text if prompt else str(setting("text"))
    if not text.strip():
        raise PromptError(_("The prompt is empty. Type some text, or choose a built-in prompt."))
    return Order(
        prompt=text,
        chat=bool(setting("chat")),
        params=_params(),
        config=_config(),
        title=_(prompt.title) if prompt else _excerpt(text),
        spec=chosen_target(),
        check_limit=int(setting("check_limit")) if setting("check") else 0,
    )


def chosen_target() -> str:
    """Return the name of the target model, the embedded one unless another is given."""
    return str(setting("target")).strip() or DEFAULT


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 40 else line[:39] + "…"


def _params() -> SamplingParams:
    stop = str(setting("stop_text"))
    return SamplingParams(
        stop=(stop,) if stop else (),
        ignore_eos=bool(setting("ignore_eos")),
        temperature=float(setting("T")),
        top_k=int(setting("top_k")),
        top_p=float(setting("top_p")),
        min_p=float(setting("min_p")),
        repetition_penalty=float(setting("repetition")),
        frequency_penalty=float(setting("frequency")),
        presence_penalty=float(setting("presence")),
        logit_bias=read_logit_bias(str(setting("logit_bias"))),
        max_tokens=int(setting("max")),
        seed=int(setting("seed")),
    )


def _config() -> SessionConfig:
    scheme, verifier = str(setting("scheme")), cast(Verifier, setting("verifier"))
    if verifier == "greedy" and setting("T"):
        text = _(
            "Greedy verification is for temperature 0, and the temperature is {t:g}. "
            "Set it to 0, or leave the choice of verifier automatic."
        )
        raise ConfigError(text.format(t=setting("T")))
    return SessionConfig(
        scheme=scheme,
        draft_length=0 if scheme == "none" else int(setting("D")),
        verifier=verifier,
        detail=cast(Detail, setting("detail")),
        options=drafter_controls.options(scheme, chosen_target()),
    )


def _prompt() -> None:
    st.selectbox(
        _("Prompt"),
        FIELDS["prompt"].choices,
        format_func=_prompt_name,
        key="prompt",
        persist_state="session",
    )
    prompt = PROMPTS.get(str(setting("prompt")))
    if prompt is None:
        st.text_area(
            _("Your prompt"),
            key="text",
            height=140,
            placeholder=_("Type what the model shall answer or continue."),
            persist_state="session",
        )
    else:
        _preview(prompt)
    widgets.toggle(
        "chat",
        _("Chat template"),
        help=_("Wraps the prompt as a user's message, as the model was trained. Off: raw text."),
    )


def _prompt_name(name: str) -> str:
    prompt = PROMPTS.get(name)
    if prompt is None:
        return _("Your own text")
    return f"{class_name(prompt.prompt_class)} · {_(prompt.title)}"


def _preview(prompt: BuiltInPrompt) -> None:
    with st.container(height=112, border=True):
        st.text(prompt.text)
    st.button(
        _("Edit this prompt"),
        key="edit",
        icon=":material/edit:",
        type="tertiary",
        on_click=_edit,
        args=(prompt.text,),
    )


def _edit(text: str) -> None:
    st.session_state["prompt"], st.session_state["text"] = OWN, text


def _sampling() -> None:
    st.slider(
        _("Temperature"),
        0.0,
        float(FIELDS["T"].high),
        step=0.05,
        key="T",
        help=_("0 is greedy: the target always writes its favourite token."),
        persist_state="session",
    )
    greedy = setting("T") == 0
    widgets.number(
        "seed",
        _("Seed"),
        help=_("At temperature 0 nothing is drawn, so a seed would change nothing.")
        if greedy
        else _("The same seed repeats a run exactly, whatever D is."),
        disabled=greedy,
    )
    widgets.number("max", _("Most output tokens"), step=16)


def _more() -> None:
    widgets.number("top_k", _("Top-k"), help=_("Keep the k likeliest tokens; 0 keeps all."))
    widgets.number("top_p", _("Top-p"), step=0.05)
    widgets.number("min_p", _("Min-p"), step=0.05)
    widgets.number("repetition", _("Repetition penalty"), step=0.05)
    widgets.number("frequency", _("Frequency penalty"), step=0.1)
    widgets.number("presence", _("Presence penalty"), step=0.1)
    widgets.text("logit_bias", _("Logit bias"), _("Token id = number, as 5=-inf, 17=2.5"))
    widgets.text("stop_text", _("Stop at this text"), _("Empty: no stop string"))
    widgets.toggle("ignore_eos", _("Go on past end tokens"))
    widgets.choice("verifier", _("Verifier"), wording.verifier)
    widgets.choice("detail", _("Detail kept"), wording.detail)
    drafter_controls.more(str(setting("scheme")))
    widgets.toggle(
        "check",
        _("Check against plain decoding"),
        help=_("After a run, replays its output one token at a time and compares."),
    )
    widgets.number("check_limit", _("Up to this many output tokens"), step=64)


def _target() -> None:
    widgets.text("target", _("Target model"), _("Empty: the embedded SmolLM2-135M-Instruct"))
    st.caption(_("A folder with safetensors, a GGUF file or a hub id. No pickle, no remote code."))
