"""The part of the sidebar that chooses the drafter, and the options it makes of it."""

from pathlib import Path
from typing import cast

import streamlit as st

from specviz import checkpoints
from specviz.config import DrafterOptions, TieRule, read_layer_ids
from specviz.drafters import describe
from specviz.errors import ConfigError
from specviz.ui import drafters_found, widgets
from specviz.ui.fields import FIELDS
from specviz.ui.messages import literal
from specviz.ui.state import current, setting
from specviz.ui.weights import DEFAULT, EMBEDDED
from specviz.words import _, ngettext


def show() -> None:
    """Draw the scheme, what it needs and the draft length."""
    st.selectbox(
        _("Drafter"),
        FIELDS["scheme"].choices,
        format_func=lambda name: describe(name).title,
        key="scheme",
        persist_state="session",
    )
    scheme = describe(str(setting("scheme")))
    st.caption(scheme.sentence)
    drafters_found.show(current().engine.weights, _target())
    if scheme.needs_model:
        widgets.text("draft", _("Draft model"), _("A folder, a GGUF file or a hub id"))
    if scheme.needs_head:
        widgets.text("head", _("Head"), _("Its folder; empty: the one shipped for this target"))
    if scheme.name == "suffix":
        _memory()
    widgets.number(
        "D",
        _("Draft length D"),
        help=_("Most tokens drafted per round. The target then scores 1 + D rows in one pass."),
        disabled=scheme.name == "none",
    )
    if scheme.drafts_trees:
        _tree()


def _target() -> str:
    return str(setting("target")).strip() or DEFAULT


def _memory() -> None:
    """What suffix decoding remembers of earlier runs: a warm store drafts more."""
    engine = current().engine
    requests, tokens = engine.remembered
    text = _("Remembers {tokens} tokens of {requests} finished runs of this tab.")
    st.caption(text.format(tokens=tokens, requests=requests))
    st.button(
        _("Forget them"),
        key="forget",
        icon=":material/delete_sweep:",
        type="tertiary",
        disabled=not requests,
        on_click=engine.forget,
    )


def _tree() -> None:
    widgets.number("tree_depth", _("Tree depth"), help=_("0 drafts a chain, without branches."))
    deep, wide, budget = (int(setting(key)) for key in ("tree_depth", "tree_top_k", "D"))
    widgets.number(
        "tree_top_k",
        _("Branches per node"),
        help=_("The head's favourites after a node; as many nodes grow per level."),
        disabled=not deep,
    )
    if deep:
        grown = DrafterOptions(tree_depth=deep, tree_top_k=wide).tree_nodes
        text = ngettext(
            "Grows up to {grown} nodes in {deep} level and drafts the best {kept}.",
            "Grows up to {grown} nodes in {deep} levels and drafts the best {kept}.",
            deep,
        )
        said = text.format(grown=grown, deep=deep, kept=min(grown, budget))
        st.caption(literal(said))


def more(scheme: str) -> None:
    """Draw the settings of a scheme that few readers change."""
    if scheme == "ngram":
        widgets.number("ngram_min", _("Shortest match"))
        widgets.number("ngram_max", _("Longest match"))
        widgets.choice("ngram_tie", _("Which match wins"), _tie)
    elif scheme == "suffix":
        widgets.number("suffix_depth", _("Longest ending"))
        widgets.number("suffix_factor", _("Drafted tokens per matched token"), step=0.5)
        widgets.number("suffix_prob", _("Least probability to go on"), step=0.05)
    elif scheme != "none":
        widgets.toggle("draft_sampled", _("Draw drafts at the temperature"))
        widgets.number("draft_min_p", _("Stop drafting below probability"), step=0.05)
        widgets.toggle("mirror", _("Penalties and bias on what drafts, too"))
    if scheme == "dspark":
        widgets.number("confidence", _("Stop drafting below confidence"), step=0.05)
    if describe(scheme).needs_head:
        widgets.text("layer_ids", _("Hidden states it reads"), _("Empty: what its folder says"))


def _tie(name: str) -> str:
    return {
        "vllm": _("the earliest (vLLM)"),
        "transformers": _("the earliest, cut at end tokens (transformers)"),
        "llama.cpp": _("the latest (llama.cpp)"),
    }[name]


def options(scheme: str, target: str) -> DrafterOptions:
    """Read the options of a scheme that drafts for a target.

    Raises:
        ConfigError: A setting is wrong, or what the scheme needs is not named.
    """
    draft, head = (str(setting(key)).strip() for key in ("draft", "head"))
    about = describe(scheme)
    if about.needs_model and not draft and not _shipped(scheme, target):
        raise ConfigError(
            _("The draft model scheme needs a draft model: name a folder, a GGUF file or a hub id.")
        )
    if about.needs_head and not head and not _shipped(scheme, target):
        text = _(
            "{scheme} needs a head that was trained for this target, and none is shipped for it: "
            "name the folder of one."
        )
        raise ConfigError(text.format(scheme=about.title))
    return DrafterOptions(
        ngram_min=int(setting("ngram_min")),
        ngram_max=int(setting("ngram_max")),
        ngram_tie=cast(TieRule, setting("ngram_tie")),
        suffix_max_depth=int(setting("suffix_depth")),
        suffix_max_factor=float(setting("suffix_factor")),
        suffix_min_prob=float(setting("suffix_prob")),
        draft_model=draft or None,
        draft_sampled=bool(setting("draft_sampled")),
        draft_min_p=float(setting("draft_min_p")),
        mirror_processors=bool(setting("mirror")),
        head=head or None,
        layer_ids=read_layer_ids(str(setting("layer_ids"))),
        tree_depth=int(setting("tree_depth")),
        tree_top_k=int(setting("tree_top_k")),
        confidence_threshold=float(setting("confidence")),
    )


def _shipped(scheme: str, target: str) -> bool:
    name = EMBEDDED if target == DEFAULT else Path(target).name
    return checkpoints.find(name, scheme) is not None
