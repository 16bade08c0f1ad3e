"""DSpark: a block in one pass, then a walk through its slots that knows the token before."""

import math
from dataclasses import replace

from torch import Tensor

from specviz.config import DrafterOptions
from specviz.drafters.base import Context, Proposal
from specviz.drafters.block import ContextMemo, plan
from specviz.errors import ConfigError
from specviz.heads.choice import Choice
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_cache import DSparkDecoder, Walk
from specviz.heads.dspark_schedule import Admission, Confidence
from specviz.models.target import Target
from specviz.words import _, later

UNCUT = Confidence()


class DSparkDrafter:
    """DFlash whose anchor predicts too, with a Markov head and a confidence head.

    The confidence of a slot depends on the tokens before it. It decides whether the slot is
    drafted at all, before its token is drawn: cutting by the confidence of later slots, which
    know that token, would not be lossless (arXiv:2607.05147, appendix A).
    """

    name = "dspark"

    def __init__(
        self,
        head: DSparkHead,
        target: Target,
        options: DrafterOptions,
        ends: frozenset[int] = frozenset(),
        confidence: Confidence = UNCUT,
    ) -> None:
        """Copy the head's weights; of `target` only the tables are used, not the cache.

        Raises:
            ConfigError: `confidence` cuts drafts and the head has no confidence head.
        """
        if confidence.cuts and head.confidence_head is None:
            raise ConfigError(
                _(
                    "this head has no confidence head, so drafts cannot be cut by confidence; set "
                    "the threshold to 0 and leave the step table out"
                )
            )
        self._decoder = DSparkDecoder(head, target)
        self._memo = ContextMemo(self._decoder)
        self._choice = Choice(target.config.vocab, self._decoder.draft_ids, options)
        self._least, self._ends = options.draft_min_p, ends
        self._confidence = confidence

    def propose(self, context: Context, budget: int) -> Proposal:
        block, rule = plan(self._memo, context, budget, self._ends), self._confidence
        config = self._decoder.config
        hidden = self._decoder.block(context.tokens[-1], config.rows(block.most))
        walk = self._decoder.walk(hidden if config.anchor_predicts else hidden[1:])
        admission, slot, confidence = Admission(rule), 0, list[float]()

        def look(before: int) -> Tensor | str:
            nonlocal slot
            view = walk.look(before)
            if view.confidence is not None:
                sure = _sigmoid(view.confidence / rule.temperature(slot))
                confidence.append(sure)
                if not admission.admits(sure):
                    return later("Stopped: the next slot has confidence {p:.2f}.").format(p=sure)
            slot += 1
            return view.logits

        proposal = block.fill(self._choice, self._least, look)
        unbiased, scores = self._unbiased(walk, len(proposal.draft))
        evidence = replace(
            proposal.evidence,
            confidence=tuple(confidence),
            unbiased=unbiased,
            unbiased_scores=scores,
        )
        return replace(proposal, evidence=evidence)

    def _unbiased(self, walk: Walk, slots: int) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Say what the block alone prefers in each slot, and how much; nothing without a bias."""
        if not self._decoder.biased:
            return (), ()
        best, at = walk.base[:slots].softmax(-1).max(-1)
        ids = self._decoder.draft_ids
        tokens = at if ids is None else ids.to(at.device)[at]
        return tuple(tokens.tolist()), tuple(best.tolist())


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0
