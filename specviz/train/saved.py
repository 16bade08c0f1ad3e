"""Held-out E[L] of heads and draft models that are saved, by class of prompt."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from specviz.heads import load as heads
from specviz.heads.dflash import DFlashHead
from specviz.heads.recurrent import RecurrentHead
from specviz.heads.small_llama import SomeRows, is_small_llama, load_small_llama
from specviz.models.llama import LlamaTarget
from specviz.models.store import Progress, silent
from specviz.train.batches import plan
from specviz.train.block import Anchoring, BlockCourse
from specviz.train.build import taps_to_cache
from specviz.train.corpus import read_corpora
from specviz.train.course import Course
from specviz.train.draft_model import DraftModelCourse, make_small_llama
from specviz.train.evaluate import Acceptance, held_out, measure
from specviz.train.features import Joined, Recomputed, Source, extract
from specviz.train.loop import cast_norms
from specviz.train.recurrent import RecurrentCourse, Unrolling
from specviz.train.tables import LlamaDonor, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Files of responses, of each at most `rows`, and where their features are kept."""

    data: tuple[Path, ...]
    rows: int | None = None
    features: Path | None = None  # one cache for each file in it; None: made anew each time

    def open(self, target: LlamaTarget, progress: Progress = silent) -> Source:
        """Read the texts, extracting those features that are not there yet.

        Raises:
            ConfigError: a file cannot be read, or the features are of another target.
        """
        taps = taps_to_cache(target.config.layers)
        sources: list[Source] = []
        for path in self.data:
            examples = read_corpora([path], self.rows)
            if self.features is None:
                sources.append(Recomputed(target, examples, taps))
            else:
                sources.append(extract(target, examples, self.features / path.stem, taps, progress))
        return Joined(sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is measured, and in what precision."""

    texts: int = 48  # held-out texts, spread over the corpus
    depth: int = 4  # drafts per round of chains; blocks are as long as they are
    batch_tokens: int = 2048
    autocast: bool = True  # bfloat16 for what is safe in it, as in training


def read_course(folder: Path, target: LlamaTarget, depth: int) -> Course:
    """Read a head or draft model in any layout as something whose drafts can be checked.

    Raises:
        ModelError: it cannot be read, or is not for this target.
    """
    tables = Tables.of(target)
    every = torch.arange(target.config.vocab)  # the ids count in the loss only
    if is_small_llama(folder):
        draft = load_small_llama(folder, target)
        model = make_small_llama(LlamaDonor(draft), range(draft.config.layers))
        rows = draft.weights.head
        ids = rows.ids.cpu() if isinstance(rows, SomeRows) else every
        course = DraftModelCourse(model.to(target.device), tables, ids, {})
        course.depth = depth
        return course
    head = heads.load(folder, target).to(target.device).float()
    if isinstance(head, RecurrentHead):
        return RecurrentCourse(head, tables, every, Unrolling(depth=depth), head.layout)
    assert isinstance(head, DFlashHead)
    return BlockCourse(head, tables, every, Anchoring(), head.layout)


def measure_saved(course: Course, source: Source, extent: Extent) -> dict[str, Acceptance]:
    """Walk through held-out greedy texts; return counts by class of prompt, and of "all"."""
    chosen = held_out(source.examples, extent.texts)
    batches = plan([len(source.examples[i]) for i in chosen], extent.batch_tokens, seed=0)
    picked: Sequence[list[int]] = [[chosen[i] for i in batch] for batch in batches]
    device = next(course.module.parameters()).device
    cast_norms(course.module)
    cast = torch.autocast(device.type, dtype=torch.bfloat16) if extent.autocast else nullcontext()
    with torch.no_grad(), cast:
        return measure(course, source, picked, device)
