"""What a drafter sees, what it returns, and the one thing it must do."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from specviz.config import SamplingParams
from specviz.events import EMPTY, Draft, Evidence
from specviz.verify.draws import Draws


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a drafter may look at: the committed prefix, nothing newer."""

    tokens: tuple[int, ...]  # prompt and output
    prompt_length: int
    params: SamplingParams
    draws: Draws
    features: Tensor | None = None  # [len(tokens) - 1, taps, hidden] target hidden states


@dataclass(frozen=True, slots=True)
class Proposal:
    """A draft, what it was sampled from, and why."""

    draft: Draft
    probs: Tensor | None = None  # [nodes, vocab] each node was drawn from; None: point drafts
    evidence: Evidence = Evidence()


NOTHING = Proposal(EMPTY)


class Drafter(Protocol):
    """Guesses what the target says next, as a function of `context` alone.

    A private KV cache or index is allowed as a memo: before drafting, truncate it to the prefix it
    shares with `context`, then catch up. So rejections, rewinds and forks need no callback.
    """

    @property
    def name(self) -> str: ...

    def propose(self, context: Context, budget: int) -> Proposal:
        """Return at most `budget` nodes; an empty draft is an honest 'no idea'."""
        ...
