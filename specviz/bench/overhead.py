"""What recording costs: the same run with no, light and full detail, in turn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from specviz.bench.speed import Plan, Report, Run, config_of, run_once
from specviz.bench.spread import Spread
from specviz.config import Detail
from specviz.models.load import Loaded

ALLOWED: Mapping[Detail, float] = MappingProxyType({"light": 0.03, "full": 0.10})
TURNS: tuple[tuple[Detail, ...], ...] = (("off", "light", "full"), ("full", "light", "off"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Extra time of one level of detail, as a share of the run without any.

    `paired` compares neighbouring runs and carries all their noise. `recorded` is the time the
    session itself counted while it kept details, which has little noise.
    """

    detail: Detail
    paired: Spread
    recorded: Spread

    @property
    def allowed(self) -> float:
        return ALLOWED[self.detail]


def overhead(loaded: Loaded, plan: Plan, scheme: str, report: Report) -> tuple[Overhead, ...]:
    """Measure light and full detail on all prompts of the plan."""
    seen: dict[Detail, list[list[Run]]] = {"off": [], "light": [], "full": []}
    for repeat in range(-1, plan.repeats):
        for detail in TURNS[repeat % 2]:
            report(f"overhead of detail {detail}, {max(0, repeat + 1)} of {plan.repeats}")
            config = replace(config_of(scheme, plan), detail=detail)
            step = plan.warming_up(repeat)
            runs = [run_once(loaded, prompt, step, config) for prompt in plan.prompts]
            if repeat >= 0:
                seen[detail].append(runs)
    return tuple(_compare(detail, seen[detail], seen["off"]) for detail in ALLOWED)


def _compare(detail: Detail, with_it: list[list[Run]], without: list[list[Run]]) -> Overhead:
    pairs = list(zip(with_it, without, strict=True))
    return Overhead(
        detail=detail,
        paired=Spread.of(_seconds(a) / _seconds(b) - 1 for a, b in pairs),
        recorded=Spread.of((_recording(a) - _recording(b)) / _seconds(b) for a, b in pairs),
    )


def _seconds(runs: list[Run]) -> float:
    return sum(run.decode for run in runs)


def _recording(runs: list[Run]) -> float:
    return sum(event.timing.record for run in runs for event in run.rounds)
