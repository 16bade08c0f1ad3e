"""Which schemes can draft for a target here, said before anything is loaded."""

from collections.abc import Mapping

import streamlit as st

from specviz import checkpoints
from specviz.cost.reasons import title
from specviz.drafters import SCHEMES, describe
from specviz.ui.messages import literal
from specviz.ui.weights import DEFAULT, EMBEDDED, Weights
from specviz.words import _

DRAFTING = tuple(scheme for scheme in SCHEMES if scheme != "none")


def missing(spec: str, weights: Weights) -> dict[str, str]:
    """Return the schemes that have nothing to draft with, each with the reason.

    Of a target that is not loaded and not the embedded one nothing is known yet.
    """
    held = weights.held(spec)
    if held is None and spec != DEFAULT:
        return {}
    names = (held.target.config.sha, held.target.config.name) if held else (EMBEDDED,)
    return {
        scheme: _reason(scheme, names[-1])
        for scheme in DRAFTING
        if _needs(scheme) and not any(checkpoints.find(name, scheme) for name in names)
    }


def _needs(scheme: str) -> bool:
    known = describe(scheme)
    return known.needs_head or known.needs_model


def _reason(scheme: str, target: str) -> str:
    text = _("no head for {target} is shipped; train one: python -m specviz train --scheme {s}")
    if scheme == "draft_model":
        text = _("no draft model for {target} is shipped; name one on the Step page")
    return text.format(target=target, s=scheme)


def choose(key: str, lacking: Mapping[str, str]) -> tuple[str, ...]:
    """Draw the choice of schemes, and below it those that cannot be chosen with the reasons."""
    ready = [scheme for scheme in DRAFTING if scheme not in lacking]
    known: list[str] = st.session_state.get(key, [])
    if any(scheme not in ready for scheme in known):
        st.session_state[key] = [scheme for scheme in known if scheme in ready]
    chosen = st.multiselect(
        _("Schemes"), ready, format_func=title, key=key, persist_state="session"
    )
    if lacking:
        with st.expander(_("Not available: {n}").format(n=len(lacking)), icon=":material/block:"):
            for scheme, reason in lacking.items():
                st.caption(literal(f"{title(scheme)}: {reason}"))
    return tuple(str(scheme) for scheme in chosen)
