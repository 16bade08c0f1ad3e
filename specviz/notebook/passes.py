"""What a pass of the embedded model costs here, by rows, and how much it reads."""

from collections.abc import Sequence
from math import prod

from specviz.bench.sweep_plan import Passes
from specviz.bench.sweep_points import pass_times
from specviz.bench.sweep_time import model_passes
from specviz.models.llama import LlamaTarget
from specviz.notebook.runs import model

CONTEXT = 128  # cached tokens under the pass: short, so that the weights are what is read


def pass_seconds(rows: Sequence[int]) -> dict[int, float]:
    """Time one pass over each number of rows, the median of three; 1 + D rows verify D drafts."""
    target = model().target
    group = target.config.group_size
    task = Passes("exact", group, tuple(rows), 0, context=CONTEXT)
    return pass_times(model_passes(target, task, lambda: False), "exact", group)


def weight_count() -> int:
    """Return how many weights the embedded model has; the embedding is also the output head."""
    target = model().target
    assert isinstance(target, LlamaTarget)
    return sum(prod(shape) for shape in target.llama.shapes().values())
