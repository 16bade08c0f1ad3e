"""What a pass of the embedded model costs here, by rows, and how much it reads."""

from collections.abc import Sequence
from math import prod

from specviz.bench.sweep_plan import Passes
from specviz.bench.sweep_points import pass_times
from specviz.bench.sweep_time import model_passes
from specviz.models.llama import LlamaTarget
from specviz.notebook.runs import model

REPEATS = 2
CONTEXT = 128  # cached tokens under the pass: short, so that the weights are what is read


def pass_seconds(rows: Sequence[int]) -> dict[int, float]:
    """Time one pass over each number of rows; 1 + D rows verify D drafts.

    Each is the lesser of two medians of three: what else the machine does only makes it slower.
    """
    target = model().target
    group = target.config.group_size
    task = Passes("exact", group, tuple(rows), 0, context=CONTEXT)
    seen = [
        pass_times(model_passes(target, task, lambda: False), "exact", group)
        for _repeat in range(REPEATS)
    ]
    return {n: min(times[n] for times in seen) for n in task.rows}


def weight_count() -> int:
    """Return how many weights the embedded model has; the embedding is also the output head."""
    target = model().target
    assert isinstance(target, LlamaTarget)
    return sum(prod(shape) for shape in target.llama.shapes().values())
