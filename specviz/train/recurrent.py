"""Teaching heads that feed on their own hidden state: EAGLE-3 and MTP, unrolled as in drafting."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.heads.load import save
from specviz.heads.recurrent import RecurrentHead
from specviz.train.batches import Batch
from specviz.train.course import Loss, favourites
from specviz.train.projection import Goals, projected_loss
from specviz.train.sampling import draw
from specviz.train.tables import Tables, Vocabulary, teacher
from specviz.train.unroll import Chosen, unroll


@dataclass(frozen=True, slots=True, kw_only=True)
class Unrolling:
    """How often the head runs on its own states, and what each run weighs."""

    steps: int = 3
    decay: float = 0.8  # step j weighs decay ** j
    hard: float = 0.0  # share of the true token in the labels; the rest is the target's softmax
    depth: int = 4  # drafts per round when E[L] is measured
    sampled: int = 2048  # ids of the softmax of a step, those of the text among them


class RecurrentCourse:
    """Training-time test with soft targets (arXiv:2503.01840); MTP weighs steps and labels other.

    Labels are of the draft vocabulary: a true token outside of it leaves its row out. On greedy
    text that is the same as leaving out rows whose target argmax is outside.
    """

    def __init__(
        self, head: RecurrentHead, tables: Tables, ids: Tensor, unrolling: Unrolling, layout: str
    ) -> None:
        """Teach `head`; `ids` are the tokens that count in the loss where it has all of them."""
        self.scheme, self.module, self.depth = head.scheme, head, unrolling.depth
        device = tables.embed.device
        own = head.draft_ids if head.lm_head is not None else ids
        self._tables, self._unrolling, self._layout = tables, unrolling, layout
        self._taught = Vocabulary(own, len(tables.embed), device)
        drafted = head.draft_ids if head.lm_head is not None else None
        self._drafted = Vocabulary(drafted, len(tables.embed), device)

    def loss(self, batch: Batch, seed: int) -> Loss:
        u, chosen = self._unrolling, Chosen.of(batch.supervised)
        sample = draw(self._taught, batch.tokens[batch.supervised], u.sampled, seed)
        vocabulary, own = sample.vocabulary, self.module.lm_head
        shared = vocabulary.rows(self._tables.head)
        soft, place = self._teacher(batch, shared, sample.lift)
        weight = shared if own is None else own.weight[sample.rows]
        total = torch.zeros((), device=batch.tokens.device)
        weights, parts, tokens = 0.0, {}, 0
        for step, hidden in enumerate(islice(self._unroll(batch, chosen, u.steps), u.steps)):
            text, slot, at = _within(batch, chosen, chosen.real, step)
            labels = vocabulary.index(batch.tokens[text, at])
            known = labels >= 0
            text, slot, at, labels = text[known], slot[known], at[known], labels[known]
            even = torch.full((len(labels),), 1 / max(1, len(labels)), device=labels.device)
            goals = Goals(soft[place[text, at - 1]], labels, u.hard, even, sample.lift)
            found = projected_loss(hidden[text, slot], weight, goals)
            total = total + found.loss * u.decay**step
            weights += u.decay**step
            parts[f"right at {step + 1}"] = float(found.right.float().mean())
            tokens = tokens or len(labels)
        return Loss(total / weights, parts, tokens)

    @torch.no_grad()
    def hits(self, batch: Batch) -> Tensor:
        found = torch.zeros(*batch.tokens.shape, self.depth, dtype=torch.bool)
        found = found.to(batch.tokens.device)
        chosen = Chosen.of(batch.supervised)
        alive = chosen.real  # after a wrong draft nothing counts
        unrolled = islice(self._unroll(batch, chosen, self.depth), self.depth)
        for step, hidden in enumerate(unrolled):
            text, slot, at = _within(batch, chosen, alive, step)
            said = favourites(self._project, hidden[text, slot], self._drafted)
            right = said == batch.tokens[text, at]
            alive = torch.zeros_like(alive)
            alive[text[right], slot[right]] = True
            found[text[right], at[right] - 1 - step, step] = True
        return found

    def save(self, folder: Path) -> None:
        save(self.module, folder, self._layout)

    def _unroll(self, batch: Batch, chosen: Chosen, steps: int) -> Iterator[Tensor]:
        features = batch.select(self.module.taps)
        if not torch.is_autocast_enabled(features.device.type):
            features = features.to(next(self.module.parameters()).dtype)
        inputs = (features, batch.tokens, self._tables.embed)
        if len(self.module.layers) == 1:
            return unroll(self.module, *inputs, chosen)
        index = chosen.at[..., None]
        whole = self.module(*inputs, steps)
        return (hidden.gather(1, index.expand(-1, -1, hidden.shape[-1])) for hidden in whole)

    def _project(self, hidden: Tensor) -> Tensor:
        head = self.module.lm_head
        weight = self._tables.head.to(hidden.dtype) if head is None else head.weight
        return F.linear(hidden, weight)

    def _teacher(self, batch: Batch, shared: Tensor, lift: Tensor) -> tuple[Tensor, Tensor]:
        """Probabilities [n, size] after positions whose next token is supervised, and where."""
        ahead = F.pad(batch.supervised[:, 1:], (0, 1))
        place = (ahead.flatten().cumsum(0) - 1).view(ahead.shape)
        return teacher(batch.final[ahead], shared, lift), place


def _within(
    batch: Batch, chosen: Chosen, among: Tensor, step: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of `among` whose token of this step exists: text, slot, and where the token is."""
    at = chosen.at + 2 + step
    last = batch.tokens.shape[1] - 1
    inside = among & (at <= last) & batch.supervised.gather(1, at.clamp_max(last))
    text, slot = inside.nonzero(as_tuple=True)
    return text, slot, at[text, slot]
