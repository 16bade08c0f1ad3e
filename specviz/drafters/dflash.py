"""DFlash: a whole block in one pass, its slots independent of each other given the text."""

from specviz.config import DrafterOptions
from specviz.drafters.base import Context, Proposal
from specviz.drafters.block import ContextMemo, plan
from specviz.heads.choice import Choice
from specviz.heads.dflash import DFlashHead
from specviz.heads.dflash_cache import BlockDecoder
from specviz.models.target import Target


class DFlashDrafter:
    """Drafts the next tokens from the target's own hidden states (arXiv:2602.06036).

    The context's keys and values are made once per committed token and kept; those of the block
    are dropped every round. A smaller budget runs a shorter block. `Evidence.scores` are the
    slots' probabilities; of a greedy draft, at temperature 1.
    """

    name = "dflash"

    def __init__(
        self,
        head: DFlashHead,
        target: Target,
        options: DrafterOptions,
        ends: frozenset[int] = frozenset(),
    ) -> None:
        """Copy the head's weights; of `target` only the tables are used, not the cache."""
        self._decoder = BlockDecoder(head, target)
        self._memo = ContextMemo(self._decoder)
        self._choice = Choice(target.config.vocab, self._decoder.draft_ids, options)
        self._least, self._ends = options.draft_min_p, ends

    def propose(self, context: Context, budget: int) -> Proposal:
        block, config = plan(self._memo, context, budget, self._ends), self._decoder.config
        hidden = self._decoder.block(context.tokens[-1], config.rows(block.most))
        rows = self._decoder.logits(hidden if config.anchor_predicts else hidden[1:])
        slots = iter(rows.unbind())
        return block.fill(self._choice, self._least, lambda _before: next(slots))
