"""Drafts at many places of a text whose continuation is known: measured without decoding it.

In a greedy text the target's choice at every place is the next token, so what it would accept of a
draft there can be read off the text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from specviz import recordings
from specviz.bench.drafts import listened_to
from specviz.config import DrafterOptions, SamplingParams, SessionConfig
from specviz.drafters import make_drafter
from specviz.drafters.base import Context, Proposal
from specviz.errors import ConfigError
from specviz.heads.base import Head
from specviz.heads.recurrent import RecurrentHead
from specviz.metrics.controls import matching
from specviz.notebook.runs import model, what_drafts
from specviz.traces.schema import Trace
from specviz.traces.store import load
from specviz.verify import Draws
from specviz.words import _

OPTIONS = DrafterOptions()


@dataclass(frozen=True, slots=True)
class Place:
    """One draft, and the text that really came after it."""

    proposal: Proposal
    after: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Drafted tokens that greedy verification would keep here."""
        return matching(self.proposal.draft, self.after)


def recording(name: str) -> Trace:
    """Return a run that comes with the package."""
    return load(recordings.path(name))


def shipped(scheme: str) -> Head:
    """Return the head that comes with the package for the embedded model, read once."""
    head = what_drafts(SessionConfig(scheme=scheme))
    assert isinstance(head, Head)
    return head


def drafts(
    trace: Trace, scheme: str, budget: int, options: DrafterOptions = OPTIONS, every: int = 2
) -> tuple[Place, ...]:
    """Draft at every second token of a greedy output (or `every` n-th), with the shipped head.

    Places too near the end for a whole draft are left out.

    Raises:
        ConfigError: the run was sampled, so its text is not what the target prefers.
    """
    if not trace.params.greedy:
        raise ConfigError(_("this run was sampled; drafts are compared with a greedy text"))
    config = SessionConfig(scheme=scheme, draft_length=budget, options=options)
    head = shipped(scheme)
    target = listened_to(model().target, head)
    drafter = make_drafter(config, target, model().tokenizer, head)
    states = features(trace, head)
    return tuple(
        Place(drafter.propose(context, budget), trace.tokens[len(context.tokens) :])
        for context in _contexts(trace, states, budget, every)
    )


def _contexts(trace: Trace, states: Tensor, budget: int, every: int) -> Iterator[Context]:
    start, draws = len(trace.prompt), Draws(0)
    for end in range(start + 1, len(trace.tokens) - budget, every):
        yield Context(trace.tokens[:end], start, SamplingParams(), draws, states[: end - 1])


def features(trace: Trace, head: Head) -> Tensor:
    """Return the hidden states [tokens, taps, hidden] that `head` reads, of a whole run."""
    return _states(trace.tokens, head)


@lru_cache(maxsize=8)
def _states(tokens: tuple[int, ...], head: Head) -> Tensor:
    target = listened_to(model().target, head)
    target.prefill(tokens)
    assert target.features is not None
    return target.features.clone()


@torch.inference_mode()
def agreement(
    trace: Trace, head: RecurrentHead, states: Tensor, steps: int = 4
) -> tuple[float, ...]:
    """Return the share of output tokens that `head` names, by depth.

    states [tokens, taps, hidden] are what depth 1 reads; each depth after it reads the head's own
    hidden state of the depth before, and is told the true token, right or not.
    """
    target, first = model().target, len(trace.prompt) - 1
    tokens = torch.tensor(trace.tokens, device=target.device)
    table = target.embed(range(target.config.vocab)).float()
    shares = list[float]()
    for depth, read in enumerate(head.float()(states.float()[None], tokens[None], table, steps)):
        logits = target.head(read[0]) if head.lm_head is None else head.lm_head(read[0])
        best = logits.argmax(-1)
        said = best if head.draft_ids is None else head.draft_ids.to(best.device)[best]
        truth = tokens[first + 2 + depth :]
        shares.append(float((said[first : first + len(truth)] == truth).float().mean()))
    return tuple(shares)
