"""Runs on the embedded model, in one line each."""

from dataclasses import replace
from functools import cache

from specviz.bench import prompts
from specviz.bench.drafts import load_draft
from specviz.bench.runner import LOSSLESS_LIMIT, Request, run
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.heads.base import Head
from specviz.models.load import Loaded, load
from specviz.traces.schema import Trace

TOKENS = 48  # a notebook's usual output: enough to see rates, seconds on two cores


@cache
def model() -> Loaded:
    """Return the embedded model, loaded once for the kernel."""
    return load()


def decode(
    prompt: str,
    scheme: str = "none",
    draft_length: int = 4,
    *,
    params: SamplingParams | None = None,
    config: SessionConfig | None = None,
) -> Trace:
    """Decode one prompt and return its trace, with the lossless report if anything was drafted.

    Args:
        prompt: the id of a built-in prompt, as "edit-rename", or the text of one.
        scheme: what drafts; "none" is plain decoding.
        draft_length: D; plain decoding has none.
        params: how to sample; greedy, 48 tokens, unless said.
        config: the rest of the settings; its scheme and draft length are replaced.
    """
    length = 0 if scheme == "none" else draft_length
    config = replace(config or SessionConfig(), scheme=scheme, draft_length=length)
    known = {each.id: each for each in prompts.BUILT_IN}.get(prompt)
    request = Request(
        prompt=known.text if known else prompt,
        params=params or SamplingParams(max_tokens=TOKENS),
        config=config,
        title=known.title if known else "",
    )
    # a replay of plain decoding by plain decoding tells nothing
    limit = 0 if scheme == "none" else LOSSLESS_LIMIT
    return run(model(), request, what_drafts(config), limit=limit)


def what_drafts(config: SessionConfig) -> Loaded | Head | None:
    """Return the model or head that drafts, kept: reading it takes longer than a short run."""
    given = config.options
    read = DrafterOptions(draft_model=given.draft_model, head=given.head, layer_ids=given.layer_ids)
    return _read(config.scheme, read)


@cache
def _read(scheme: str, options: DrafterOptions) -> Loaded | Head | None:
    return load_draft(model(), SessionConfig(scheme=scheme, options=options))
