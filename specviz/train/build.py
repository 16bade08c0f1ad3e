"""From a recipe and a target to something that can be trained."""

from collections.abc import Iterator

import torch
from torch import Tensor

from specviz.errors import ConfigError
from specviz.models.llama import LlamaTarget
from specviz.train.batches import Batch, collate, plan
from specviz.train.block import Anchoring, BlockCourse
from specviz.train.corpus import frequent_ids
from specviz.train.course import Course
from specviz.train.draft_model import (
    DraftModelCourse,
    make_small_llama,
    own_layers,
    small_llama_settings,
)
from specviz.train.eagle3 import Eagle3Shape, default_taps, make_eagle3
from specviz.train.features import Source
from specviz.train.fresh_block import BlockShape, make_block_head
from specviz.train.linear_start import Guesser, fit_guesser, start_eagle3
from specviz.train.mtp import make_mtp, start_mtp
from specviz.train.recipe import Recipe
from specviz.train.recurrent import RecurrentCourse, Unrolling
from specviz.train.tables import LlamaDonor, Tables
from specviz.words import _

FITTED = 200  # texts the linear start is fitted on
FIT_TOKENS = 2048  # of one batch of it


def taps_to_cache(layers: int) -> tuple[int, ...]:
    """Return the hidden states that heads of any scheme are trained on here."""
    return (*default_taps(layers), layers)


class Builder:
    """Makes heads for one target, each begun from the target's own rows and layers."""

    def __init__(
        self, target: LlamaTarget, source: Source, recipe: Recipe, ids: Tensor | None = None
    ) -> None:
        """Take the draft vocabulary `ids`, or choose it from the texts of `source`.

        Raises:
            ConfigError: `source` lacks a hidden state that heads read.
        """
        torch.manual_seed(recipe.seed)
        self._target, self._source, self._recipe = target, source, recipe
        self._layers = target.config.layers
        missing = set(taps_to_cache(self._layers)) - set(source.taps)
        if missing or source.taps[-1] != self._layers:
            raise ConfigError(
                _(
                    "the features hold hidden states {taps}; heads are trained on {layers}. "
                    "Extract them again."
                ).format(taps=source.taps, layers=taps_to_cache(self._layers))
            )
        self._donor, self._tables = LlamaDonor(target), Tables.of(target)
        size = min(recipe.draft_vocab, target.config.vocab)
        self.ids = frequent_ids(source.examples, size, target.config.eos) if ids is None else ids

    def course(self) -> Course:
        """Make the head of the recipe's scheme and what teaches it."""
        makers = {
            "eagle3": self._eagle3,
            "mtp": self._mtp,
            "dflash": self._block,
            "dspark": self._block,
            "draft_model": self._draft_model,
        }
        course = makers[self._recipe.scheme]()
        course.module.to(self._target.device)
        return course

    def _eagle3(self) -> Course:
        r, taps = self._recipe, default_taps(self._layers)
        shape = Eagle3Shape(kv_heads=r.kv_heads, intermediate=r.intermediate)
        head = make_eagle3(self._donor, self._tables, self.ids, taps, shape)
        start_eagle3(head, self._guesser(taps))
        return RecurrentCourse(
            head, self._tables, self.ids, self._unrolling(), "speculators-eagle3"
        )

    def _mtp(self) -> Course:
        r = self._recipe
        head = make_mtp(self._donor, self._tables, self.ids, self._layers, r.unrolled)
        start_mtp(head, self._guesser(head.taps))
        return RecurrentCourse(head, self._tables, self.ids, self._unrolling(), "speculators-mtp")

    def _block(self) -> Course:
        r, spark = self._recipe, self._recipe.scheme == "dspark"
        shape = BlockShape(
            layers=r.layers,
            block=r.block,
            rank=r.rank if spark else None,
            first_row=r.first_row,
            intermediate=r.intermediate,
        )
        taps = default_taps(self._layers)
        head = make_block_head(self._donor, self._tables, self.ids, taps, shape)
        anchoring = Anchoring(
            anchors=r.anchors, gamma=r.gamma, pace=r.slot_weights == "pace", hard=r.hard
        )
        return BlockCourse(head, self._tables, self.ids, anchoring, "speculators-block")

    def _draft_model(self) -> Course:
        chosen = own_layers(self._layers, self._recipe.layers)
        model = make_small_llama(self._donor, chosen)
        settings = small_llama_settings(self._target.llama, chosen)
        return DraftModelCourse(model, self._tables, self.ids, settings)

    def _unrolling(self) -> Unrolling:
        r = self._recipe
        return Unrolling(steps=r.unrolled, decay=r.step_decay, hard=r.hard, depth=r.depth)

    def _guesser(self, taps: tuple[int, ...]) -> Guesser:
        return fit_guesser(self._some(), taps, self._tables, self._donor.final_norm())

    def _some(self) -> Iterator[Batch]:
        examples = self._source.examples
        chosen = [i for i, e in enumerate(examples) if not e.held_out][:FITTED]
        for batch in plan([len(examples[i]) for i in chosen], FIT_TOKENS, seed=0):
            yield collate(self._source, [chosen[i] for i in batch], self._target.device)
