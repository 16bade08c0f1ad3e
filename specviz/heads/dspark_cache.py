"""Drafting with DSpark: one pass for the block, then a walk through its slots."""

from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.heads.dflash_cache import BlockDecoder
from specviz.heads.dspark import DSparkHead
from specviz.heads.dspark_markov import advance
from specviz.models.layers import Linear
from specviz.models.target import Target


@dataclass(frozen=True, slots=True)
class SlotView:
    """One slot, once the token before it is known.

    logits [draft_vocab] carry the Markov bias. `confidence` is a logit, None without such a head;
    it depends on tokens before the slot, not on what is drawn there.
    """

    logits: Tensor
    confidence: float | None


class DSparkDecoder(BlockDecoder):
    """A DSpark head laid out for drafting; all but the wide product runs in float32."""

    def __init__(self, head: DSparkHead, target: Target) -> None:
        super().__init__(head, target)
        device, markov = target.device, head.markov_head
        self._sure = deepcopy(head.confidence_head)
        if self._sure is not None:
            self._sure.to(device, torch.float32).requires_grad_(False)
        self._cell = self._embedded = self._bias = None
        if markov is not None:
            self._cell = markov.cell.to(device, torch.float32)
            self._embedded = markov.markov_w1.weight.detach().to(device)
            weight = markov.markov_w2.weight.detach().to(device, target.dtype)
            self._bias = Linear(weight, alike=False)

    @property
    def biased(self) -> bool:
        """Whether there is a Markov head."""
        return self._bias is not None

    def walk(self, hidden: Tensor) -> "Walk":
        """Begin before the first slot of a block's hidden [slots, hidden]."""
        return Walk(self, hidden)

    def step(
        self, before: int, hidden: Tensor, state: Tensor | None
    ) -> tuple[float | None, Tensor | None, Tensor | None]:
        """Return confidence, bias [draft_vocab] and state after the slot with `hidden`."""
        embedded = bias = None
        if self._embedded is not None and self._cell is not None and self._bias is not None:
            embedded = self._embedded[before].float()
            state = torch.zeros_like(embedded) if state is None else state
            latent, state = advance(self._cell, embedded, hidden, state)
            bias = self._bias(latent[None].to(self._dtype))[0].float()
        sure = None if self._sure is None else float(self._sure(hidden, embedded))
        return sure, bias, state


class Walk:
    """Slot after slot, each told the token drawn in the one before."""

    def __init__(self, decoder: DSparkDecoder, hidden: Tensor) -> None:
        self._decoder, self._hidden = decoder, hidden.float()
        self.base = decoder.logits(hidden)  # [slots, draft_vocab], what the block alone says
        self._state: Tensor | None = None
        self._slot = 0

    @torch.inference_mode()
    def look(self, before: int) -> SlotView:
        """View the next slot, given the token before it (a target id)."""
        hidden, base = self._hidden[self._slot], self.base[self._slot]
        sure, bias, self._state = self._decoder.step(before, hidden, self._state)
        self._slot += 1
        return SlotView(base if bias is None else base + bias, sure)
