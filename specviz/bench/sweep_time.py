"""Passes over 1 to 64 rows, timed: of a whole model, and of its attention operation alone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median

import torch

from specviz.bench.sweep_plan import KERNEL_HEADS, Passes
from specviz.events import Draft
from specviz.metrics.sweep import Pass
from specviz.models.attention import attend, pack_mask
from specviz.models.target import Target
from specviz.stopwatch import Stopwatch


def model_passes(target: Target, task: Passes, stop: Callable[[], bool]) -> Iterator[Pass]:
    """Yield the seconds of scoring each number of rows on a cache of its own.

    The tokens are arbitrary: a pass over rows of a dense model takes the same time for any.
    """
    vocab = target.config.vocab
    context = min(task.context, target.config.context // 2)
    model = target.fork(0)
    model.prefill([(7 * i + 1) % vocab for i in range(context)])
    model.score(1, Draft.chain(range(1, 2)))  # warms up, not counted
    times: dict[int, list[float]] = {rows: [] for rows in task.rows}
    for _call in range(
        task.calls
    ):  # all rows in turn, so that a busy moment does not hit one of them
        for rows, seen in times.items():
            if stop():
                return
            draft = Draft.chain((11 * i + 3) % vocab for i in range(rows - 1))
            seen.append(_seconds(target.device, partial(model.score, 5 % vocab, draft)))
    for rows, seen in times.items():
        yield replace(_pass(task, rows, median(seen)), context=context)


def kernel_passes(target: Target, task: Passes, stop: Callable[[], bool]) -> Iterator[Pass]:
    """Yield the seconds of one layer's attention over each number of rows, nothing else.

    A sequence of a batch is as many KV heads more: the operation treats them alike.
    """
    kv, group = KERNEL_HEADS // task.group_size * task.batch, task.group_size

    def random(*size: int) -> torch.Tensor:
        return torch.randn(*size, target.config.head_dim).to(target.device, target.dtype)

    keys, values = random(kv, task.context), random(kv, task.context)
    for rows in task.rows:
        if stop():
            return
        queries = random(rows, kv * group)
        seen = torch.ones(rows, task.context, dtype=torch.bool, device=target.device)
        mask = pack_mask(seen, group, target.dtype)
        work = partial(attend, queries, keys, values, mask)
        yield _pass(
            task, rows, median(_seconds(target.device, work) for _call in range(task.calls))
        )


def _pass(task: Passes, rows: int, seconds: float) -> Pass:
    return Pass(
        mode=task.mode,
        group_size=task.group_size,
        rows=rows,
        context=task.context,
        repeat=task.repeat,
        seconds=seconds,
        batch=task.batch,
    )


@torch.inference_mode()
def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    watch = Stopwatch(device)
    work()
    return watch.seconds()["total"]
