"""The loop that trains any head: steps, checkpoints, held-out E[L], and an end."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from specviz.errors import NumericsError
from specviz.train.batches import collate, plan
from specviz.train.checkpointing import Mark, RunState, load_state, save_state
from specviz.train.course import Course
from specviz.train.evaluate import Acceptance, held_out, measure
from specviz.train.features import Source
from specviz.train.memory import give_back
from specviz.train.optimizer import Optimizer
from specviz.train.recipe import Recipe
from specviz.train.schedule import Cosine
from specviz.words import _

TRIM = 8  # steps between returns of freed memory
BEST = "best"  # folder of the head with the largest held-out E[L]


@dataclass(frozen=True, slots=True)
class Report:
    """What the loop says after a step."""

    step: int
    steps: int
    loss: float
    parts: dict[str, float]
    tokens_per_second: float  # supervised tokens, since this process began
    left: float  # seconds
    acceptance_length: float | None  # held-out, where it was measured at this step


class Trainer:
    """One head on its way. `run` goes on from wherever the folder says it stopped."""

    def __init__(self, course: Course, source: Source, recipe: Recipe, folder: Path) -> None:
        """Prepare to train `course.module` on the examples of `source` that are not held out."""
        self.course, self.source, self.recipe, self.folder = course, source, recipe, folder
        self.module = course.module
        self.device = next(self.module.parameters()).device
        cast_norms(self.module)
        self.optimizer = Optimizer(self.module, recipe.optimizer, recipe.betas, recipe.weight_decay)
        self._rate = Cosine(peak=recipe.rate, steps=recipe.steps, warmup=recipe.warmup)
        self._trained = [i for i, e in enumerate(source.examples) if not e.held_out]
        self._held_out = held_out(source.examples, recipe.measure_on)
        found = load_state(folder, self.module, self.optimizer)
        self.state = found or RunState()
        self.state.recipe = recipe.as_dict()
        self._began, self._seen = time.monotonic(), 0

    def run(self, tell: Callable[[Report], None], until: int | None = None) -> bool:
        """Train to the end of the recipe, or to step `until`; say whether the end was reached.

        Raises:
            NumericsError: the loss is no longer a number.
        """
        state, recipe = self.state, self.recipe
        self.module.train()
        last = recipe.steps if until is None else min(until, recipe.steps)
        for indices in self._batches():
            if state.step >= last:
                break
            loss, parts = self._step(indices)
            at_end = state.step == recipe.steps
            measured = None
            if state.step % recipe.measure_every == 0 or at_end:
                measured = self._mark()
            if state.step % recipe.save_every == 0 or state.step == last:
                save_state(self.folder, state, self.module, self.optimizer)
            tell(self._report(loss, parts, measured))
        return state.step >= recipe.steps

    def measure(self) -> dict[str, Acceptance]:
        """Walk through the held-out texts with the weights of now."""
        lengths = [len(self.source.examples[i]) for i in self._held_out]
        batches = plan(lengths, self.recipe.batch_tokens, seed=0)
        picked = ([self._held_out[i] for i in batch] for batch in batches)
        with torch.no_grad(), self._autocast():
            return measure(self.course, self.source, picked, self.device)

    def _batches(self) -> Iterator[Sequence[int]]:
        """Batches from where the state stands, pass after pass."""
        lengths = [len(self.source.examples[i]) for i in self._trained]
        state, recipe = self.state, self.recipe
        while True:
            batches = plan(lengths, recipe.batch_tokens, recipe.seed * 100_003 + state.epoch)
            for batch in batches[state.cursor :]:
                yield [self._trained[i] for i in batch]
            state.epoch, state.cursor = state.epoch + 1, 0

    def _step(self, indices: Sequence[int]) -> tuple[float, dict[str, float]]:
        state, recipe = self.state, self.recipe
        batch = collate(self.source, indices, self.device)
        with self._autocast():
            loss = self.course.loss(batch, seed=recipe.seed * 1_000_003 + state.step)
        value = float(loss.total.detach())
        if not math.isfinite(value):
            raise NumericsError(
                _(
                    "the loss is {value} at step {step}; start again with a smaller rate than "
                    "{rate:g}, or without autocast"
                ).format(value=value, step=state.step, rate=recipe.rate)
            )
        loss.total.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.module.parameters(), recipe.clip)
        self.optimizer.step(self._rate(state.step))
        if state.step % TRIM == 0:
            give_back()
        state.step, state.cursor = state.step + 1, state.cursor + 1
        state.tokens += loss.tokens
        self._seen += loss.tokens
        state.loss_sum, state.loss_count = state.loss_sum + value, state.loss_count + 1
        return value, loss.parts

    def _mark(self) -> float:
        """Measure, note it, and keep the weights if they are the best so far."""
        state, found = self.state, self.measure()
        length = found["all"].length if "all" in found else 0.0
        mean = state.loss_sum / max(1, state.loss_count)
        state.marks.append(Mark(state.step, state.tokens, mean, length))
        state.loss_sum, state.loss_count = 0.0, 0
        if length > state.best:
            self.course.save(self.folder / BEST)
            state.best, state.best_step = length, state.step
            state.best_counts = {kind: asdict(counts) for kind, counts in found.items()}
        return length

    def _report(self, loss: float, parts: dict[str, float], measured: float | None) -> Report:
        state, steps = self.state, self.recipe.steps
        spent = time.monotonic() - self._began
        rate = self._seen / spent if spent else 0.0
        per_step = state.tokens / max(1, state.step)
        left = (steps - state.step) * per_step / rate if rate else 0.0
        return Report(state.step, steps, loss, parts, rate, left, measured)

    def _autocast(self) -> torch.autocast:
        on = self.recipe.autocast
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=on)


def cast_norms(module: nn.Module) -> None:
    """Let autocast reach the norms of a module, which it leaves in the dtype they are given."""
    for part in module.modules():
        if isinstance(part, nn.RMSNorm):
            part.register_forward_pre_hook(_widen)
            part.register_forward_hook(_narrow)


def _widen(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Norm in the dtype of the weights: autocast leaves norms alone, and mixed dtypes are slow."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return tuple(x.to(weight.dtype) for x in inputs)


def _narrow(module: nn.Module, inputs: tuple[Tensor, ...], normed: Tensor) -> Tensor:
    """Hand on what the products after a norm read, cast once for all of them."""
    kind = normed.device.type
    return normed.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else normed
