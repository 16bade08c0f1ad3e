"""Teaching heads that draft a block at once: DFlash and DSpark, on anchored blocks."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from specviz.heads.dflash import Blocks, DFlashHead
from specviz.heads.dflash_labels import Labels, choose_anchors, label
from specviz.heads.dspark import DSparkHead
from specviz.heads.load import save
from specviz.train.batches import Batch
from specviz.train.course import CHUNK, Loss, favourites
from specviz.train.losses import doubt, dspark_losses, pace_weights, position_decay, weighted_mean
from specviz.train.projection import Goals, projected_loss
from specviz.train.sampling import Sample, draw
from specviz.train.tables import Tables, Vocabulary, teacher

MEASURED = 256  # blocks that are run at once when E[L] is measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchoring:
    """How blocks are drawn from a text and what their slots weigh."""

    anchors: int = 48  # blocks per text
    gamma: float = 4.0  # slot k weighs exp(-k / gamma)
    pace: bool = False  # D-PACE weights instead (arXiv:2605.18810)
    hard: float = 0.5  # share of the true token in the labels; the rest is the target's softmax
    ce: float = 0.1  # DSpark: shares of cross entropy,
    l1: float = 0.9  # distance from the target,
    bce: float = 1.0  # and confidence
    sampled: int = 2048  # ids of the softmax of a step, those of the texts among them


@dataclass(frozen=True, slots=True)
class _Slots:
    """Supervised slots of a batch whose token the head has, all [slots]."""

    block: tuple[Tensor, Tensor, Tensor]  # text, block, row
    rows: Tensor  # of the draft vocabulary
    depth: Tensor
    soft: Tensor  # [slots, size], the target's probabilities
    sample: Sample


class BlockCourse:
    """Cross entropy by slot for DFlash (arXiv:2602.06036); CE + L1 + BCE for DSpark."""

    def __init__(
        self, head: DFlashHead, tables: Tables, ids: Tensor, anchoring: Anchoring, layout: str
    ) -> None:
        """Teach `head`; `ids` are the tokens that count in the loss where it has all of them."""
        self.scheme, self.module, self.depth = head.scheme, head, head.config.most
        device, vocab = tables.embed.device, len(tables.embed)
        own = head.draft_ids if head.lm_head is not None else ids
        self._taught = Vocabulary(own, vocab, device)
        self._drafted = Vocabulary(
            head.draft_ids if head.lm_head is not None else None, vocab, device
        )
        self._tables, self._anchoring, self._layout = tables, anchoring, layout

    def loss(self, batch: Batch, seed: int) -> Loss:
        generator = torch.Generator().manual_seed(seed)
        anchors = choose_anchors(batch.supervised, self._anchoring.anchors, generator)
        blocks = self._blocks(batch, anchors)
        labels = label(self.module.config, batch.tokens, batch.supervised, anchors)
        said = batch.tokens[batch.supervised]
        sample = draw(self._taught, said, self._anchoring.sampled, seed)
        slots = self._slots(batch, labels, sample)
        if isinstance(self.module, DSparkHead):
            return self._dspark(self.module, blocks, slots)
        return self._dflash(blocks, slots, labels)

    def _dflash(self, blocks: Blocks, slots: _Slots, labels: Labels) -> Loss:
        hidden = self.module(blocks, self._tables.embed)[slots.block]
        own, sample = self.module.lm_head, slots.sample
        shared = sample.vocabulary.rows(self._tables.head)
        weight = shared if own is None else own.weight[sample.rows]
        a = self._anchoring
        weights = position_decay(slots.depth, a.gamma)
        if a.pace:
            with torch.no_grad():
                sure = self._losses_by_slot(hidden.detach(), weight, slots, labels)
                weights = pace_weights(sure, labels.supervised)[slots.block]
        weights = weights / weights.sum().clamp_min(1e-6)
        goals = Goals(slots.soft, slots.rows, a.hard, weights, sample.lift)
        found = projected_loss(hidden, weight, goals)
        return Loss(found.loss, _right(found.right, slots.depth), len(slots.rows))

    def _losses_by_slot(
        self, hidden: Tensor, weight: Tensor, slots: _Slots, labels: Labels
    ) -> Tensor:
        even = torch.full((len(slots.rows),), 1.0, device=hidden.device)
        goals = Goals(slots.soft, slots.rows, 1.0, even, slots.sample.lift)
        found = projected_loss(hidden, weight.detach(), goals)
        losses = hidden.new_zeros(labels.tokens.shape, dtype=torch.float32)
        losses[slots.block] = found.each
        return losses

    def _dspark(self, head: DSparkHead, blocks: Blocks, slots: _Slots) -> Loss:
        a, states = self._anchoring, head.states(blocks, self._tables.embed)
        latent = None if states.latent is None else states.latent[slots.block]
        logits = self._some_logits(head, states.hidden[slots.block], latent, slots.sample)
        ce, distance, rate = dspark_losses(logits, slots.rows, slots.soft)
        weights = position_decay(slots.depth, a.gamma)
        total = weighted_mean(a.ce * ce + a.l1 * distance, weights)
        parts = {"CE": float(weighted_mean(ce, weights).detach())}
        parts["L1"] = float(weighted_mean(distance, weights).detach())
        if states.confidence is not None:
            unsure = weighted_mean(doubt(states.confidence[slots.block], rate), weights)
            total = total + a.bce * unsure
            parts["BCE"] = float(unsure.detach())
        right = logits.detach().argmax(dim=-1) == slots.rows
        return Loss(total, parts | _right(right, slots.depth), len(slots.rows))

    def _some_logits(
        self, head: DSparkHead, hidden: Tensor, latent: Tensor | None, sample: Sample
    ) -> Tensor:
        own, shared = head.lm_head, sample.vocabulary.rows(self._tables.head)
        weight = shared.to(hidden.dtype) if own is None else own.weight[sample.rows]
        logits = F.linear(hidden, weight).float() + sample.lift
        if head.markov_head is None or latent is None:
            return logits
        return logits + F.linear(latent, head.markov_head.markov_w2.weight[sample.rows])

    @torch.no_grad()
    def hits(self, batch: Batch) -> Tensor:
        """Every position where a round could begin is the anchor of one block."""
        found = torch.zeros(*batch.tokens.shape, self.depth, dtype=torch.bool)
        found = found.to(batch.tokens.device)
        first = 0 if self.module.config.anchor_predicts else 1
        for row in range(len(batch.tokens)):
            one = batch.text(row)
            starts = F.pad(one.supervised[:, 1:], (0, 1))[0].nonzero()[:, 0]
            for anchors in torch.split(starts, MEASURED):
                labels = label(self.module.config, one.tokens, one.supervised, anchors[None])
                said = self._said(self._blocks(one, anchors[None]))
                right = (said == labels.tokens) & labels.supervised
                found[row, anchors] = right[0, :, first:].int().cumprod(dim=-1).bool()
        return found

    def _said(self, blocks: Blocks) -> Tensor:
        """Greedy drafts [1, blocks, rows], each told the true token before it."""
        head, table = self.module, self._tables.head
        if isinstance(head, DSparkHead):
            states = head.states(blocks, self._tables.embed)
            hidden, latent = states.hidden.flatten(0, 2), states.latent
            latent = None if latent is None else latent.flatten(0, 2)
            said = []
            for start in range(0, len(hidden), CHUNK):
                part = slice(start, start + CHUNK)
                slots = None if latent is None else latent[part]
                said.append(head.slot_logits(hidden[part], slots, table).argmax(dim=-1))
            return self._drafted.tokens(torch.cat(said)).view(states.hidden.shape[:-1])
        hidden = head(blocks, self._tables.embed)
        said_all = favourites(lambda h: head.logits(h, table), hidden.flatten(0, 2), self._drafted)
        return said_all.view(hidden.shape[:-1])

    def save(self, folder: Path) -> None:
        save(self.module, folder, self._layout)

    def _blocks(self, batch: Batch, anchors: Tensor) -> Blocks:
        features = batch.select(self.module.taps)
        if not torch.is_autocast_enabled(features.device.type):
            features = features.to(next(self.module.parameters()).dtype)
        return Blocks(features, batch.tokens, anchors)

    def _slots(self, batch: Batch, labels: Labels, sample: Sample) -> _Slots:
        rows = sample.vocabulary.index(labels.tokens)
        text, block, slot = (labels.supervised & (rows >= 0)).nonzero(as_tuple=True)
        ahead = F.pad(batch.supervised[:, 1:], (0, 1))
        place = (ahead.flatten().cumsum(0) - 1).view(ahead.shape)
        shared = sample.vocabulary.rows(self._tables.head)
        soft = teacher(batch.final[ahead], shared, sample.lift)
        at = labels.teacher[text, block, slot]
        depth = labels.depth.expand(labels.tokens.shape)[text, block, slot]
        where = text, block, slot
        return _Slots(where, rows[where], depth, soft[place[text, at]], sample)


def _right(right: Tensor, depth: Tensor) -> dict[str, float]:
    return dict(_right_parts(right, depth))


def _right_parts(right: Tensor, depth: Tensor) -> Iterator[tuple[str, float]]:
    for slot in (0, 1, 3):
        here = right[depth == slot]
        if len(here):
            yield f"right at {slot + 1}", float(here.float().mean())
