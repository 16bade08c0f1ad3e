"""A sweep at work on the engine thread: the page only looks at what it has measured so far."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from specviz.bench.sweep_plan import Decode, Plan, Task
from specviz.errors import Cancelled, SpecvizError
from specviz.ui.weights import DEFAULT, Weights
from specviz.words import _

if TYPE_CHECKING:
    from specviz.bench.sweep_log import Log
    from specviz.metrics.sweep import Point
    from specviz.ui.runner import Engine

Status = Literal["queued", "running", "done", "stopped", "failed", "recorded"]


@dataclass(slots=True, eq=False, kw_only=True)
class Work:
    """One sweep of this tab. Its log grows by one thread; the rest is replaced whole."""

    plan: Plan | None  # None: a recording, which never runs
    log: "Log"
    spec: str = DEFAULT
    status: Status = "queued"
    failure: str = ""
    doing: str = ""
    total: int = 0
    before: int = 0  # measurements that were in the file already
    done: int = 0
    began: float = 0.0
    first: float | None = None  # seconds until the first point
    _points: "tuple[int, list[Point]]" = field(default_factory=lambda: (-1, []))

    @property
    def active(self) -> bool:
        return self.status in ("queued", "running")

    @property
    def fraction(self) -> float:
        return self.done / self.total if self.total else 0.0

    @property
    def left(self) -> float | None:
        """Seconds still to go, at the pace so far; None before there is a pace."""
        made = self.done - self.before
        if not self.active or made < 1:
            return None
        return (time.monotonic() - self.began) / made * (self.total - self.done)

    def points(self) -> "list[Point]":
        """Return the points of what is measured now, worked out once for each state."""
        from specviz.bench.sweep_points import points

        results = self.log.results
        length = results.length
        if self._points[0] != length:
            self._points = (length, points(list(results.samples), list(results.passes)))
        return self._points[1]

    def run(self, weights: Weights, stop: Callable[[], bool]) -> None:
        """Measure everything that is missing; called by the engine thread."""
        from specviz.bench.sweep import Sweep

        assert self.plan is not None
        self.status = "running"
        began = time.monotonic()
        try:
            self.doing = _("loading the models")
            sweep = Sweep(weights.get(self.spec), self.plan, self.log, weights.turn, stop)
            self.total, self.done = sweep.total, sweep.total - len(sweep.todo)
            self.before, self.began, self.status = self.done, time.monotonic(), "running"
            for task in sweep:
                self.done += 1
                self.doing = describe(task)
                if self.first is None and isinstance(task, Decode) and task.cell.draft_length:
                    self.first = time.monotonic() - began
            self.status = "stopped" if stop() and self.done < self.total else "done"
        except Cancelled:
            self.status = "stopped"
        except SpecvizError as error:
            self.failure, self.status = str(error), "failed"
        finally:
            if self.status == "running":  # a bug, which the engine tells of
                self.status = "failed"


def describe(task: Task) -> str:
    """Say in words what was measured last."""
    from specviz.cost.reasons import title

    if not isinstance(task, Decode):
        return _("passes, G = {g}").format(g=task.group_size)
    cell = task.cell
    text = _("{scheme}, D = {d}, {prompt}")
    return text.format(
        scheme=title(cell.scheme),
        d=cell.draft_length,
        prompt=_(task.prompt.title) or task.prompt.id,
    )


def start(engine: "Engine", work: Work) -> Work:
    """Hand a sweep to the engine of this tab; what it did before is cancelled."""
    engine.measure(lambda stop: work.run(engine.weights, stop))
    return work
