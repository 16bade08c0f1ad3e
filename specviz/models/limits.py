"""What a target checks before it runs tokens."""

from collections.abc import Sequence

from specviz.errors import DraftError, PromptError
from specviz.events import ROOT, Draft
from specviz.models.target import TargetConfig
from specviz.words import _

TokenError = type[PromptError] | type[DraftError]


def check_ids(tokens: Sequence[int], config: TargetConfig, error: TokenError) -> None:
    """Raise `error` for a token outside the vocabulary."""
    if tokens and not 0 <= min(tokens) <= max(tokens) < config.vocab:
        wrong = next(token for token in tokens if not 0 <= token < config.vocab)
        raise error(
            _("token {wrong} is not in the vocabulary; allowed: 0 to {vocab}").format(
                wrong=wrong, vocab=config.vocab - 1
            )
        )


def check_room(rows: int, length: int, config: TargetConfig, error: TokenError) -> None:
    """Raise `error` if `rows` more tokens do not fit in the context."""
    if length + rows > config.context:
        raise error(
            _(
                "{rows} tokens after {length} do not fit in the context of {context}; give fewer"
            ).format(rows=rows, length=length, context=config.context)
        )


def check_path(draft: Draft | None, path: Sequence[int]) -> Draft:
    """Return the draft scored last; raise DraftError if `path` is no path from its root."""
    parents = (ROOT, *path)[: len(path)]
    if draft is None or any(
        not 0 <= node < len(draft) or draft.parents[node] != parent
        for node, parent in zip(path, parents, strict=True)
    ):
        raise DraftError(
            _("{path} is not a path of the draft that was scored last").format(path=tuple(path))
        )
    return draft
