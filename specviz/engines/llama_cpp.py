"""llama.cpp: flags of llama-server. Its spec-draft-n-max is our D."""

import shlex

from specviz.engines.plan import Plan, Snippet, refuse
from specviz.errors import ConfigError
from specviz.words import _

NAME, VERSION = "llama.cpp", "(llama-cpp-python 0.3.36)"
_TYPE = {
    "draft_model": "draft-simple",
    "eagle3": "draft-eagle3",
    "mtp": "draft-mtp",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "ngram": "ngram-simple",
}
_LONGEST, _NGRAM = "--spec-draft-n-max", "--spec-ngram-simple-size-m"


def snippet(plan: Plan) -> Snippet:
    """Return the `llama-server` command of a plan.

    Raises:
        UnsupportedByEngine: suffix trees, or a tree of drafts.
    """
    words = ["llama-server", "-m", plan.target]
    if plan.scheme == "none":
        return Snippet(engine=NAME, version=VERSION, language="bash", text=shlex.join(words))
    if plan.scheme == "suffix":
        raise refuse(NAME, _("suffix trees"), "--spec-type ngram-map-k")
    if plan.tree_top_k > 1:
        raise refuse(
            NAME, _("trees of drafts"), _("a chain of D = {d}").format(d=plan.draft_length)
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
    found: list[tuple[str, ...]] = [("--spec-type", _TYPE[plan.scheme])]
    if plan.scheme == "ngram":
        return [
            *found,
            ("--spec-ngram-simple-size-n", str(plan.ngram_max)),
            (_NGRAM, str(plan.draft_length)),
        ]
    if plan.scheme != "mtp":
        found.append(("--spec-draft-model", plan.draft))
    return [*found, (_LONGEST, str(plan.draft_length))]


def _notes(plan: Plan) -> tuple[str, ...]:
    if plan.scheme == "ngram":
        text = _("size-n is the n-gram looked up, size-m the draft taken from behind it, D = {d}.")
        return (text.format(d=plan.draft_length),)
    notes = [_("spec-draft-n-max is D; its default is 3. Drafts are greedy.")]
    if plan.scheme in ("dflash", "dspark"):
        text = _(
            "Clamped to what the draft's block holds: a block of at least {n} slots is needed."
        )
        slots = plan.draft_length + (1 if plan.scheme == "dflash" else 0)
        notes.append(text.format(n=slots))
    if plan.scheme != "mtp":
        notes.append(
            _("The draft must be GGUF: convert_hf_to_gguf.py DRAFT --target-model-dir TARGET.")
        )
    return tuple(notes)


def draft_length(text: str) -> int:
    """Read D back out of a command.

    Raises:
        ConfigError: no flag of it says how long drafts are.
    """
    words = shlex.split(text.replace("\\\n", " "))
    for flag in (_LONGEST, _NGRAM):
        if flag in words:
            return int(words[words.index(flag) + 1])
    raise ConfigError(_("there is no --spec-draft-n-max in this command; add one"))
