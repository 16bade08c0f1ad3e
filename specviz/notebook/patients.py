"""Runs with one fault each, taken from reports about real engines, and one healthy run.

Do not read on before you have tried to tell them apart in notebook 12. The faults are put around
the real target and the real drafters; everything else is as in any run.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from torch import Tensor

from specviz.bench import prompts
from specviz.bench.drafts import listened_to
from specviz.bench.runner import Request, check_lossless, encode, to_trace
from specviz.bench.runner import decode as run_rounds
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.events import Draft
from specviz.heads.recurrent import RecurrentHead
from specviz.models.target import Target
from specviz.notebook.drafts import shipped
from specviz.notebook.runs import model
from specviz.session import DecodeSession
from specviz.traces.schema import Trace

Cause = Literal["healthy", "lookup", "vocabulary", "rollback", "accepts all"]
TOKENS = 12


class Around:
    """A target that does what another does, but for its fault."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


class Forgetful(Around):
    """Keeps rejected drafts in its cache (vllm-project/vllm#39273)."""

    def score(self, root: int, draft: Draft) -> Tensor:
        self._nodes = range(len(draft))
        return self._target.score(root, draft)

    def commit(self, path: Sequence[int]) -> None:
        self._target.commit(self._nodes)


class Yielding(Around):
    """Prefers whatever was drafted (NVIDIA/TensorRT-LLM#5146, ggml-org/llama.cpp#3919)."""

    def score(self, root: int, draft: Draft) -> Tensor:
        logits = self._target.score(root, draft).clone()
        for row, token in enumerate(draft.tokens):
            logits[row, token] = logits[row].max() + 1
        return logits


@dataclass(frozen=True, slots=True)
class _Case:
    cause: Cause
    prompt: str
    config: SessionConfig
    around: type[Around] | None = None


_HEAD = SessionConfig(scheme="eagle3", draft_length=3)
_COPY = SessionConfig(scheme="ngram", draft_length=4)
_LONG = SessionConfig(
    scheme="ngram", draft_length=4, options=DrafterOptions(ngram_min=6, ngram_max=8)
)
CASES = {
    "A": _Case("rollback", "copy-letter", _COPY, Forgetful),
    "B": _Case("vocabulary", "chat-bread", _HEAD),
    "C": _Case("healthy", "copy-letter", _COPY),
    "D": _Case("accepts all", "chat-bread", _HEAD, Yielding),
    "E": _Case("lookup", "chat-bread", _LONG),
}


@cache
def patients() -> dict[str, Trace]:
    """Return the five runs by letter, each with its lossless report."""
    return {letter: _run(case) for letter, case in CASES.items()}


def _run(case: _Case) -> Trace:
    loaded, prompt = model(), prompts.find(case.prompt)
    params = SamplingParams(max_tokens=TOKENS)
    request = Request(prompt=prompt.text, params=params, config=case.config, title=prompt.title)
    head = copy(shipped("eagle3")) if case.config.scheme == "eagle3" else None
    if case.cause == "vocabulary":  # its token map is read one row off (sgl-project/sglang#4153)
        assert isinstance(head, RecurrentHead)
        assert head.draft_ids is not None
        head.draft_ids = head.draft_ids.roll(1)
    target = listened_to(loaded.target, head)
    drafter = make_drafter(case.config, target, loaded.tokenizer, head)
    if case.around is not None:
        target = case.around(target)
    ids = encode(loaded, request)
    session = DecodeSession(target, drafter, ids, params, case.config, piece=loaded.tokenizer.piece)
    run_rounds(session)
    return to_trace(session, loaded, request, draft=head, lossless=check_lossless(session))
