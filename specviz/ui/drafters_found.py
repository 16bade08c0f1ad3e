"""The drafters on this machine, to be chosen; those of no use to the target with the reason."""

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from specviz.drafters import SCHEMES, describe
from specviz.ui.messages import literal
from specviz.ui.weights import Weights
from specviz.words import _, language, ngettext

if TYPE_CHECKING:
    from specviz.bench.found import Found
    from specviz.models.load import Loaded


def show(weights: Weights, spec: str) -> None:
    """Draw the list, closed; it is about a target that is loaded."""
    loaded = weights.held(spec)
    if loaded is None:
        st.caption(_("The drafters on this machine are listed here once the target is loaded."))
        return
    from specviz.bench.found import user_folder

    found = _found(loaded)
    good = sum(not each.problem for each in found)
    text = ngettext("{n} drafter found for it", "{n} drafters found for it", good).format(n=good)
    if good < len(found):
        bad = len(found) - good
        text += ngettext(", {n} of no use", ", {n} of no use", bad).format(n=bad)
    with st.expander(text, icon=":material/search:"):
        for number, each in enumerate(found):
            _row(number, each)
        for scheme in SCHEMES:
            _lacking(scheme, {each.scheme for each in found})
        said = _("Your own heads and draft models are looked for in {folder}, a folder for each.")
        st.caption(literal(said.format(folder=user_folder())))


def _found(loaded: "Loaded") -> "tuple[Found, ...]":
    from specviz.bench.found import folders

    return _looked(loaded, loaded.target.config.sha, folders(), language())


@st.cache_resource(max_entries=4, show_spinner=False)
def _looked(
    _loaded: "Loaded", sha: str, folders: tuple[tuple[Path, float], ...], spoken: str
) -> "tuple[Found, ...]":
    """Look anew only for another target or language, or where a folder came, went or changed."""
    from specviz.bench.found import find_drafters

    return find_drafters(_loaded)


def _row(number: int, found: "Found") -> None:
    kind = describe(found.scheme).title if found.scheme else _("unknown")
    where = {"shipped": _("shipped"), "yours": _("your folder"), "hub": _("hub cache")}
    st.button(
        literal(f"{kind} · {found.name}"),
        key=f"found-{number}-{found.path}",
        disabled=bool(found.problem),
        type="tertiary",
        icon=":material/block:" if found.problem else ":material/check:",
        on_click=_use,
        args=(found,),
    )
    st.caption(literal(" · ".join(filter(None, (where[found.where], found.problem)))))


def _lacking(scheme: str, found: set[str]) -> None:
    """Name a scheme for which nothing lies here at all."""
    about = describe(scheme)
    if scheme in found or not (about.needs_head or about.needs_model):
        return
    st.button(
        about.title,
        key=f"found-{scheme}",
        disabled=True,
        type="tertiary",
        icon=":material/block:",
    )
    st.caption(_("Nothing on this machine drafts so: train a head, or fetch one."))


def _use(found: "Found") -> None:
    """Choose a drafter: its scheme, and its folder unless it is the one taken anyway."""
    st.session_state["scheme"] = found.scheme
    path = "" if found.where == "shipped" else str(found.path)
    st.session_state["draft" if describe(found.scheme).needs_model else "head"] = path
