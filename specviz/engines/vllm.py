"""vLLM: `--speculative-config` as JSON. Its num_speculative_tokens is our D."""

import json
import shlex

from specviz.engines.plan import NEED_DRAFT, Plan, Snippet, at_most, refuse
from specviz.errors import ConfigError
from specviz.words import _

NAME, VERSION = "vLLM", "0.33"
LONGEST = 128  # MAX_SPEC_LEN


def snippet(plan: Plan) -> Snippet:
    """Return the `vllm serve` command of a plan.

    Raises:
        UnsupportedByEngine: a tree, or a draft that is too long.
    """
    command = ["vllm", "serve", plan.target]
    if plan.scheme == "none":
        return Snippet(
            engine=NAME, version=VERSION, language="bash", text=shlex.join(command), notes=()
        )
    if plan.tree_top_k > 1:
        raise refuse(
            NAME, _("trees of drafts"), _("a chain of D = {d}").format(d=plan.draft_length)
        )
    at_most(NAME, plan, LONGEST)
    config = json.dumps(settings(plan))
    flag = f"--speculative-config {shlex.quote(config)}"
    return Snippet(
        engine=NAME,
        version=VERSION,
        language="bash",
        text=f"{shlex.join(command)} \\\n  {flag}",
        notes=_notes(plan),
    )


def settings(plan: Plan) -> dict[str, object]:
    """Return the object of `--speculative-config`."""
    found: dict[str, object] = {"method": plan.scheme}
    if plan.scheme in NEED_DRAFT:
        found["model"] = plan.draft
    found["num_speculative_tokens"] = plan.draft_length
    if plan.scheme == "ngram":
        found |= {"prompt_lookup_max": plan.ngram_max, "prompt_lookup_min": plan.ngram_min}
    if plan.scheme == "suffix":
        # the number bounds what the suffix tree may propose
        found["suffix_decoding_max_tree_depth"] = max(24, plan.draft_length)
    return found


def _notes(plan: Plan) -> tuple[str, ...]:
    counts = _("num_speculative_tokens is D; the pass scores D + 1 = {q} rows.").format(
        q=plan.draft_length + 1
    )
    if plan.scheme == "dflash":
        text = _("A block of {q} slots drafts D = {d}: the first slot is the anchor.")
        return counts, text.format(q=plan.draft_length + 1, d=plan.draft_length)
    if plan.scheme == "mtp":
        return counts, _("The weights are in the target's own checkpoint.")
    return (counts,)


def draft_length(text: str) -> int:
    """Read D back out of a command.

    Raises:
        ConfigError: there is no speculative config in it.
    """
    words = shlex.split(text.replace("\\\n", " "))
    if "--speculative-config" not in words:
        raise ConfigError(_("there is no --speculative-config in this command; add one"))
    config = json.loads(words[words.index("--speculative-config") + 1])
    return int(config["num_speculative_tokens"])
