"""The address of Hardware fit holds model, GPU and load; what a link cannot mean is said."""

from urllib.parse import urlencode

import streamlit as st

from specviz.cost.acceptance import CLASSES
from specviz.cost.hardware import GPUS, THIS
from specviz.cost.model_card import names
from specviz.words import _

PASTED = "pasted"
SECTIONS = ("fit", "tiles", "measured", "operating", "buys", "serve", "mechanisms")
MOST = {"batch": 4096, "context": 10_000_000, "tp": 64}  # numbers, from 1
DEFAULTS: dict[str, str | int] = {
    "model": "Qwen3-8B",
    "gpu": "h200",
    "batch": 1,
    "context": 8192,
    "tp": 1,
    "prompts": "chat",
    "section": "fit",
}
_READ = "hw_read"  # set once the link of this tab was read


def key(name: str) -> str:
    """Return the key of the widget that holds a setting."""
    return f"hw_{name}"


def choices(name: str) -> tuple[str, ...]:
    """Return what a setting of words may be."""
    return {
        "model": (*names(), PASTED),
        "gpu": (*GPUS, THIS),
        "prompts": CLASSES,
        "section": SECTIONS,
    }[name]


def read() -> None:
    """Give every setting its value: of the link in a new tab, else its default.

    What the link says and cannot be is replaced by the default, with a note.
    """
    if not st.session_state.get(_READ):
        st.session_state[_READ] = True
        for name, raw in st.query_params.to_dict().items():
            if name in DEFAULTS:
                _take(name, raw)
    for name, value in DEFAULTS.items():
        st.session_state.setdefault(key(name), value)


def _take(name: str, raw: str) -> None:
    if name in MOST:
        value: str | int = int(raw) if raw.isdecimal() and len(raw) < 9 else 0
        fits = 1 <= int(value) <= MOST[name]
        allowed = _("1 to {most}").format(most=MOST[name])
    else:
        value, known = raw, choices(name)
        fits, allowed = raw in known, ", ".join(known)
    if fits:
        st.session_state[key(name)] = value
        return
    text = _("The link says {name} = {raw}; allowed: {allowed}. The default is used.")
    st.session_state.setdefault("hw_notes", []).append(
        text.format(name=name, raw=repr(raw[:40]), allowed=allowed)
    )


def notes() -> list[str]:
    """Return what the link said and could not be used."""
    found: list[str] = st.session_state.get("hw_notes", [])
    return found


def query() -> str:
    """Return the query string of a link to what is on screen; a pasted config is not in it."""
    known = {name: st.session_state.get(key(name), value) for name, value in DEFAULTS.items()}
    return urlencode({n: v for n, v in known.items() if v != DEFAULTS[n] and v != PASTED})
