"""DSpark: the DFlash trunk with the anchor predicting too, a Markov head and a confidence head."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from specviz.heads.dflash import BORROWED, Blocks, DFlashHead, Owned
from specviz.heads.dflash_config import DFlashConfig
from specviz.heads.dspark_markov import ConfidenceHead, MarkovHead


@dataclass(frozen=True, slots=True)
class SlotStates:
    """What blocks are scored from, before the wide products: pick supervised slots first.

    hidden [batch, blocks, slots, hidden]; latent [batch, blocks, slots, rank] of the Markov
    head; confidence [batch, blocks, slots], logits. None where the head has no such part.
    """

    hidden: Tensor
    latent: Tensor | None
    confidence: Tensor | None


class DSparkHead(DFlashHead):
    """The trunk and its sequential heads, with tensors named as in DeepSpec checkpoints.

    With rank 0 and no confidence head it is a DFlash whose anchor predicts. `temperatures`, one
    for each slot, make its confidence come true; without, it is taken as it is.
    """

    scheme = "dspark"
    temperatures: tuple[float, ...] = ()

    def __init__(
        self, config: DFlashConfig, owned: Owned = BORROWED, draft_ids: Tensor | None = None
    ) -> None:
        """Make a head with random weights; `draft_ids` [draft vocab] rise."""
        super().__init__(config, owned, draft_ids)
        shape, hidden = config.dspark, config.layer.hidden
        assert shape is not None
        self.markov_head: MarkovHead | None = None
        self.confidence_head: ConfidenceHead | None = None
        if shape.rank:
            self.markov_head = MarkovHead(shape, hidden, config.vocab, config.draft_vocab)
        if shape.confidence:
            self.confidence_head = ConfidenceHead(shape, hidden)

    def states(self, blocks: Blocks, table: Tensor) -> SlotStates:
        """Run all blocks, teacher-forced: slot k is told the true token before it.

        table [vocab, hidden] is the target's embedding.
        """
        c, hidden = self.config, self(blocks, table)
        before = before_slots(blocks, c.block, anchor_predicts=c.anchor_predicts)
        embedded = None if self.markov_head is None else self.markov_head.markov_w1(before)
        latent = confidence = None
        if self.markov_head is not None and embedded is not None:
            first = 0 if c.anchor_predicts else 1  # where drafting begins, with an empty state
            latent = self.markov_head.latents(embedded[..., first:, :], hidden[..., first:, :])
            latent = nn.functional.pad(latent, (0, 0, first, 0))
        if self.confidence_head is not None:
            confidence = self.confidence_head(hidden, embedded)
        return SlotStates(hidden, latent, confidence)

    def slot_logits(self, hidden: Tensor, latent: Tensor | None, table: Tensor) -> Tensor:
        """Logits [..., draft_vocab] of slots: hidden [..., hidden], latent [..., rank].

        table [vocab, hidden] is the target's output head.
        """
        logits = self.logits(hidden, table)
        if self.markov_head is None or latent is None:
            return logits
        biased: Tensor = logits + self.markov_head.markov_w2(latent)
        return biased


def before_slots(blocks: Blocks, slots: int, *, anchor_predicts: bool = True) -> Tensor:
    """The true token before each slot [batch, blocks, slots]: the anchor, then the text.

    Where the anchor predicts nothing, slot 0 is its row and slot 1 is told the anchor. Slots past
    the end of the text repeat its last token; they are never supervised.
    """
    last = blocks.tokens.shape[1] - 1
    slot = torch.arange(slots, device=blocks.anchors.device) - int(not anchor_predicts)
    at = (blocks.anchors[..., None] + slot).clamp(0, last)
    return blocks.tokens.gather(1, at.flatten(1)).view(at.shape)
