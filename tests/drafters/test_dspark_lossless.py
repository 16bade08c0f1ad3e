"""Cutting drafts by confidence keeps the target's distribution; looking ahead would not."""

import math
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from scipy.stats import chisquare

from specviz.config import DrafterOptions
from specviz.drafters.base import NOTHING, Context, Proposal
from specviz.drafters.dspark import DSparkDrafter
from specviz.events import Draft
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_cache import DSparkDecoder
from specviz.heads.dspark_schedule import Confidence, Speed, StepTable, schedule
from specviz.verify import Draws, verify_sampled
from specviz.verify.draws import pick
from tests.drafters.block_text import SMALL, TARGET, fits
from tests.heads.block_heads import spark_config, tiny_dspark

P, Q = torch.tensor([0.7, 0.3]), torch.tensor([0.5, 0.5])
Length = Callable[[list[float], Speed], int]


def early_stop(survival: list[float], speed: Speed) -> int:
    return schedule([survival], speed)[0]


def best_of_all(survival: list[float], speed: Speed) -> int:
    """The mutant: the length with the highest rate, whatever lies before it."""
    rates = [(1 + sum(survival[:n])) * speed(1 + n) for n in range(len(survival) + 1)]
    return max(range(len(rates)), key=lambda n: rates[n])


def first_tokens(length: Length, runs: int = 4000) -> float:
    """p-value of the paper's appendix A: the second slot is sure exactly if token 0 came first."""
    speed, seen = StepTable((1, 2, 3), (1.0, 0.6, 0.55)), Counter[int]()
    for seed in range(runs):
        draws = Draws(seed)
        drawn = [pick(Q, draws.uniform(at, "draft")) for at in range(2)]
        survival = [0.6, 0.6 * (1.0 if drawn[0] == 0 else 0.0)]
        kept = drawn[: length(survival, speed)]
        q, p = Q.repeat(len(kept), 1) if kept else None, P.repeat(len(kept) + 1, 1)
        verdict = verify_sampled(Draft.chain(kept), q, p, draws, 0)
        seen[kept[0] if verdict.path else verdict.last_token] += 1
    return float(chisquare([seen[0], seen[1]], [runs * float(x) for x in P]).pvalue)


def test_stopping_at_the_first_drop_is_lossless() -> None:
    assert first_tokens(early_stop) > 0.01


def test_choosing_the_best_length_of_all_is_not() -> None:
    assert first_tokens(best_of_all) < 1e-9


def head() -> DSparkHead:
    """A slot is sure after tokens 0 and 2, and unsure after 1 and 3."""
    made = tiny_dspark(spark_config(**SMALL))
    assert made.confidence_head is not None
    assert made.markov_head is not None
    proj, first = made.confidence_head.proj, made.config.layer.hidden
    with torch.no_grad():
        proj.weight.zero_()
        proj.weight[0, first] = 4.0
        proj.bias.zero_()
        made.markov_head.markov_w1.weight[:, 0] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    return made


CUT = {
    "uncut": Confidence(),
    "threshold": Confidence(threshold=0.5),
    "schedule": Confidence(speed=StepTable((1, 2, 3, 4), (1.0, 0.62, 0.6, 0.5))),
}


@pytest.mark.parametrize("rule", ["sampled", "block"])
@pytest.mark.parametrize("cut", CUT)
def test_text_of_a_real_head_follows_the_target_however_it_is_cut(cut: str, rule: str) -> None:
    options = DrafterOptions()
    made = head()
    assert fits(lambda: DSparkDrafter(made, TARGET, options, confidence=CUT[cut]), rule) > 1e-3


class LookingAhead(DSparkDrafter):
    """The mutant: keeps a drawn token only if the slot after it, which knows it, is sure."""

    def propose(self, context: Context, budget: int) -> Proposal:
        found = super().propose(context, budget)
        walk = self._decoder.walk(self._decoder.block(context.tokens[-1], budget))
        before, logits = context.tokens[-1], []
        for token in found.draft.tokens:
            logits.append(walk.look(before).confidence)
            before = token
        keep = 0
        while keep + 1 < len(logits) and 1 / (1 + math.exp(-(logits[keep + 1] or 0))) > 0.5:
            keep += 1
        if keep == 0 or found.probs is None:
            return NOTHING
        return Proposal(Draft.chain(found.draft.tokens[:keep]), found.probs[:keep])


def test_a_cut_that_knows_the_drawn_token_is_caught() -> None:
    made = head()
    assert fits(lambda: LookingAhead(made, TARGET, DrafterOptions()), "sampled") < 1e-6


def test_the_confidence_of_this_head_does_depend_on_the_token_before() -> None:
    decoder = DSparkDecoder(head(), TARGET)
    hidden = decoder.block(0, 3)
    found = [(decoder.walk(hidden).look(token).confidence or 0) > 0 for token in range(4)]
    assert found == [True, False, True, False]
