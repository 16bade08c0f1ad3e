"""SGLang: command-line flags. Its num_draft_tokens is the verify window, our D + 1."""

import shlex

from specviz.engines.plan import Plan, Snippet, refuse
from specviz.errors import ConfigError
from specviz.words import _

NAME, VERSION = "SGLang", "0.5.23"
_ALGORITHM = {
    "draft_model": "STANDALONE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "dflash": "DFLASH",
    "dspark": "DSPARK",
    "ngram": "NGRAM",
}
_CHAINS = frozenset(("draft_model", "eagle3", "mtp"))
_WINDOW = "--speculative-num-draft-tokens"
_GAMMA = "--speculative-dspark-block-size"


def snippet(plan: Plan) -> Snippet:
    """Return the `sglang.launch_server` command of a plan.

    Raises:
        UnsupportedByEngine: suffix decoding, which it does not have.
    """
    words = ["python", "-m", "sglang.launch_server", "--model-path", plan.target]
    if plan.scheme == "none":
        return Snippet(engine=NAME, version=VERSION, language="bash", text=shlex.join(words))
    if plan.scheme not in _ALGORITHM:
        raise refuse(NAME, plan.scheme, _("scheme ngram with D = {d}").format(d=plan.draft_length))
    if plan.tree_top_k > 1 and plan.scheme not in ("eagle3", "mtp"):
        raise refuse(
            NAME,
            _("trees with {scheme}").format(scheme=plan.scheme),
            _("a chain of D = {d}, or a tree with eagle3").format(d=plan.draft_length),
        )
    lines = [shlex.join(words), *(shlex.join(pair) for pair in flags(plan))]
    return Snippet(
        engine=NAME,
        version=VERSION,
        language="bash",
        text=" \\\n  ".join(lines),
        notes=_notes(plan),
    )


def flags(plan: Plan) -> list[tuple[str, ...]]:
    """Return the speculative flags with their values."""
    found: list[tuple[str, ...]] = [("--speculative-algorithm", _ALGORITHM[plan.scheme])]
    if plan.scheme not in ("mtp", "ngram"):
        found.append(("--speculative-draft-model-path", plan.draft))
    if plan.scheme in _CHAINS:
        window = plan.draft_length + 1
        if plan.tree_top_k > 1:
            window = (plan.tree_nodes or plan.draft_length) + 1
        found += [
            ("--speculative-num-steps", str(plan.draft_length)),
            ("--speculative-eagle-topk", str(plan.tree_top_k)),
            (_WINDOW, str(window)),
        ]
    elif plan.scheme == "dspark":
        found.append((_GAMMA, str(plan.draft_length)))
    else:
        found.append((_WINDOW, str(plan.draft_length + 1)))
    return found


def _notes(plan: Plan) -> tuple[str, ...]:
    if plan.scheme == "dspark":
        text = _("The block size is D = {d}; num_draft_tokens follows as {q} and is not given.")
    elif plan.tree_top_k > 1:
        text = _(
            "A tree: {d} levels; num_draft_tokens counts its nodes and the root that is scored "
            "with them."
        )
    else:
        text = _("num_draft_tokens is the verify window, D + 1 = {q}: one more than in vLLM.")
    note = text.format(d=plan.draft_length, q=plan.draft_length + 1)
    if plan.scheme == "mtp":
        return note, _("The weights are in the target's own checkpoint.")
    return (note,)


def draft_length(text: str) -> int:
    """Read D back out of a command.

    Raises:
        ConfigError: no flag of it says how long drafts are.
    """
    words = shlex.split(text.replace("\\\n", " "))
    for flag, offset in (("--speculative-num-steps", 0), (_GAMMA, 0), (_WINDOW, -1)):
        if flag in words:
            return int(words[words.index(flag) + 1]) + offset
    raise ConfigError(_("there is no speculative flag in this command; add one"))
