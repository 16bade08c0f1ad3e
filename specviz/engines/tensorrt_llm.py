"""TensorRT-LLM: `speculative_config` of the LLM API as YAML. Its max_draft_len is our D."""

import json
import re

from specviz.engines.plan import Plan, Snippet, refuse
from specviz.errors import ConfigError
from specviz.words import _

NAME, VERSION = "TensorRT-LLM", "1.x, LLM API"
_TYPE = {
    "draft_model": "DraftTarget",
    "eagle3": "Eagle3",
    "mtp": "MTP",
    "dflash": "DFlash",
    "dspark": "DSpark",
    "ngram": "NGram",
}


def snippet(plan: Plan) -> Snippet:
    """Return the YAML of `trtllm-serve --extra_llm_api_options`.

    Raises:
        UnsupportedByEngine: suffix trees; a tree with anything but EAGLE-3 or MTP.
    """
    if plan.scheme == "suffix":
        raise refuse(
            NAME,
            _("suffix trees"),
            _("decoding_type: SA, a suffix automaton with max_draft_len {d}").format(
                d=plan.draft_length
            ),
        )
    if plan.tree_top_k > 1 and plan.scheme not in ("eagle3", "mtp"):
        raise refuse(
            NAME,
            _("trees with {scheme}").format(scheme=plan.scheme),
            _("a chain of D = {d}").format(d=plan.draft_length),
        )
    head = f"# trtllm-serve {plan.target} --extra_llm_api_options this-file.yaml"
    lines = [] if plan.scheme == "none" else ["speculative_config:"]
    lines += [f"  {key}: {_yaml(value)}" for key, value in settings(plan).items()]
    if plan.scheme == "draft_model":
        lines.insert(0, "disable_overlap_scheduler: true")
    return Snippet(
        engine=NAME,
        version=VERSION,
        language="yaml",
        text="\n".join((head, *lines)),
        notes=_notes(plan),
    )


def settings(plan: Plan) -> dict[str, object]:
    """Return the fields under `speculative_config`."""
    if plan.scheme == "none":
        return {}
    found: dict[str, object] = {"decoding_type": _TYPE[plan.scheme]}
    found["block_size" if plan.scheme == "dspark" else "max_draft_len"] = plan.draft_length
    if plan.scheme in ("draft_model", "eagle3", "dflash", "dspark"):
        found["speculative_model"] = plan.draft
    if plan.scheme == "ngram":
        found["max_matching_ngram_size"] = plan.ngram_max
    if plan.tree_top_k > 1:
        found |= {
            "use_dynamic_tree": True,
            "dynamic_tree_max_topK": plan.tree_top_k,
            "max_total_draft_tokens": plan.tree_nodes or plan.draft_length,
        }
    return found


def _yaml(value: object) -> str:
    """JSON scalars are YAML; names that need no quotes go without."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w./-]*", value):
        return value
    return json.dumps(value)


def _notes(plan: Plan) -> tuple[str, ...]:
    if plan.scheme == "none":
        return ()
    text = _("max_draft_len is D; the target scores D + 1 = {q} rows per request.")
    if plan.scheme == "dspark":
        text = _("block_size is D = {d}; the target scores D + 1 = {q} rows per request.")
    note = text.format(d=plan.draft_length, q=plan.draft_length + 1)
    more = {
        "draft_model": _("Two models at once need disable_overlap_scheduler."),
        "mtp": _("The weights are in the target's own checkpoint."),
    }.get(plan.scheme)
    return (note, more) if more else (note,)


def draft_length(text: str) -> int:
    """Read D back out of the YAML.

    Raises:
        ConfigError: no field of it says how long drafts are.
    """
    found = re.search(r"^  (?:max_draft_len|block_size): (\d+)$", text, re.MULTILINE)
    if found is None:
        raise ConfigError(_("there is no max_draft_len or block_size in this YAML; add one"))
    return int(found.group(1))
