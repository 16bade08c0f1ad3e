"""Stopping a draft early leaves the target's distribution alone; dropping drawn tokens does not."""

from collections import Counter
from itertools import product

import torch
from scipy.stats import chisquare

from specviz.config import DrafterOptions, SamplingParams, SessionConfig, Verifier
from specviz.drafters.base import Context, Proposal
from specviz.drafters.draft_model import DraftModelDrafter
from specviz.events import Draft
from specviz.session import DecodeSession
from tests.stubs import TableTarget

P = torch.tensor([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7], [0.3, 0.4, 0.3]], dtype=torch.float64)
Q = torch.tensor([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])  # unsure after 2
LEAST = 0.45


def rows(table: torch.Tensor) -> TableTarget:
    return TableTarget(3, lambda tokens: table[tokens[-1]].log())


class Dropping(DraftModelDrafter):
    """The mutant: it looks at the drawn tokens and drops the improbable ones."""

    def propose(self, context: Context, budget: int) -> Proposal:
        found = super().propose(context, budget)
        keep = next((i for i, s in enumerate(found.evidence.scores) if s < LEAST), budget)
        probs = None if found.probs is None else found.probs[:keep]
        return Proposal(Draft.chain(found.draft.tokens[:keep]), probs if keep else None)


def significance(drafter: DraftModelDrafter, verifier: Verifier, runs: int = 1000) -> float:
    """How well outputs of two tokens fit the target's exact probabilities."""
    config, seen = SessionConfig(draft_length=3, verifier=verifier, detail="off"), Counter()
    for seed in range(runs):
        params = SamplingParams(temperature=1.0, max_tokens=3, seed=seed)
        session = DecodeSession(rows(P), drafter, (0, 0), params, config)
        list(session)
        seen[session.output[:2]] += 1
    pairs = list(product(range(3), repeat=2))
    expected = [runs * float(P[0, a] * P[a, b]) for a, b in pairs]
    return float(chisquare([seen[pair] for pair in pairs], expected).pvalue)


def test_b2_a_timid_draft_is_lossless():
    for verifier in ("sampled", "block"):
        timid = DraftModelDrafter(rows(Q), 3, DrafterOptions(draft_min_p=LEAST))
        assert significance(timid, verifier) > 0.01


def test_b2_dropping_improbable_draws_would_not_be_lossless():
    dropping = Dropping(rows(Q), 3, DrafterOptions())
    assert significance(dropping, "sampled") < 1e-6
