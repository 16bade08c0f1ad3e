"""How many drafts are worth verifying, given how likely each is to survive (arXiv:2607.05147, 5).

Whether draft j is verified may depend on drafts before it, never on its own token or a later one:
the confidence of slot j + 1 is a function of token j. So every rule here decides on slot j before
token j is drawn, and stops at the first refusal.
"""

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from specviz.config import require
from specviz.errors import ConfigError
from specviz.words import _

CALIBRATION = "calibration.json"  # beside a head
Speed = Callable[[int], float]  # verified rows of all requests together -> rounds per second


@dataclass(frozen=True, slots=True)
class StepTable:
    """Measured rounds per second by verified rows; between two points the lower one holds."""

    rows: tuple[int, ...]
    rounds_per_second: tuple[float, ...]

    def __post_init__(self) -> None:
        ascending = all(one < other for one, other in pairwise(self.rows))
        require(
            bool(self.rows) and self.rows[0] >= 1 and ascending,
            "rows of a step table",
            self.rows,
            _("ascending whole numbers from 1"),
        )
        speeds = self.rounds_per_second
        require(
            len(speeds) == len(self.rows) and all(speed > 0 for speed in speeds),
            "rounds per second of a step table",
            speeds,
            _("{count} numbers above 0").format(count=len(self.rows)),
        )

    def __call__(self, rows: int) -> float:
        return self.rounds_per_second[max(0, bisect_right(self.rows, rows) - 1)]

    @classmethod
    def from_json(cls, text: str) -> "StepTable":
        """Read SGLang's table: `sample_batch_tokens` and `sample_steps_per_sec`."""
        table = _object(text, "step table")
        rows = _numbers(table, "sample_batch_tokens")
        return cls(tuple(int(n) for n in rows), _numbers(table, "sample_steps_per_sec"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """What is made of a confidence head; by default nothing is cut.

    `temperatures` calibrate the logit of each slot (STS); `threshold` stops before the first slot
    less sure; `speed` admits drafts for as long as expected tokens per second rise.
    """

    threshold: float = 0.0
    temperatures: tuple[float, ...] = ()
    speed: Speed | None = None

    def __post_init__(self) -> None:
        require(0 <= self.threshold <= 1, "threshold", self.threshold, _("0 to 1"))
        warm = all(t > 0 for t in self.temperatures)
        require(warm, "temperatures", self.temperatures, _("numbers above 0, one per slot"))

    @property
    def cuts(self) -> bool:
        return self.threshold > 0 or self.speed is not None

    def temperature(self, slot: int) -> float:
        return self.temperatures[slot] if slot < len(self.temperatures) else 1.0


def read_temperatures(text: str) -> tuple[float, ...]:
    """Read SGLang's calibration file: {"temperatures": [one per slot], ...}."""
    return _numbers(_object(text, "calibration"), "temperatures")


def read_calibration(folder: Path) -> tuple[float, ...]:
    """Read the temperatures beside a head; none if it was never calibrated."""
    file = folder / CALIBRATION
    return read_temperatures(file.read_text("utf-8")) if file.is_file() else ()


class Admission:
    """Decides slot by slot, for one request, whether the next draft is made at all."""

    def __init__(self, confidence: Confidence) -> None:
        self._rule = confidence
        self._survival, self._expected = 1.0, 1.0  # of the path so far; tokens of the round
        self._best = confidence.speed(1) if confidence.speed else 0.0
        self._rows = 1

    def admits(self, confidence: float) -> bool:
        """Say whether a draft of this confidence (conditional, calibrated) is verified."""
        if confidence < self._rule.threshold:
            return False
        self._survival *= confidence
        self._expected += self._survival
        self._rows += 1
        if self._rule.speed is None:
            return True
        gain = self._expected * self._rule.speed(self._rows)
        if gain <= self._best:
            return False
        self._best = gain
        return True


def schedule(survival: Sequence[Sequence[float]], speed: Speed) -> tuple[int, ...]:
    """Return how many drafts of each request to verify together.

    survival[r][j] is the chance that drafts 0..j of request r are all accepted. Drafts are
    admitted from the likeliest down while expected tokens per second rise; the first that does
    not help ends it, so no later confidence can decide about an earlier draft.
    """
    lengths = [0] * len(survival)
    rows = expected = len(survival)
    best, total = expected * speed(rows), float(expected)
    for chance, request, slot in _ranked(survival):
        rows, total = rows + 1, total + chance
        gain = total * speed(rows)
        if gain <= best:
            break
        best, lengths[request] = gain, slot + 1
    return tuple(lengths)


def admit_up_to(survival: Sequence[Sequence[float]], drafts: int) -> tuple[int, ...]:
    """Return lengths that admit the `drafts` likeliest of all requests.

    `drafts` must come from older rounds: then a later slot, which always ranks below the earlier
    ones of its request, cannot decide about them.
    """
    lengths = [0] * len(survival)
    for _p, request, slot in _ranked(survival)[:drafts]:
        lengths[request] = slot + 1
    return tuple(lengths)


def _ranked(survival: Sequence[Sequence[float]]) -> list[tuple[float, int, int]]:
    """All (chance, request, slot), likeliest first, earlier slots first among equals."""
    every = [(a, r, j) for r, chances in enumerate(survival) for j, a in enumerate(chances)]
    return sorted(every, key=lambda entry: (-entry[0], entry[2], entry[1]))


def _object(text: str, what: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(
            _("the {what} is not JSON: {error}").format(what=what, error=error)
        ) from error
    if not isinstance(found, dict):
        raise ConfigError(
            _("the {what} is a JSON {kind}; an object is needed").format(
                what=what, kind=type(found).__name__
            )
        )
    return found


def _numbers(table: Mapping[str, object], key: str) -> tuple[float, ...]:
    values = table.get(key)
    if not isinstance(values, list) or not all(isinstance(v, int | float) for v in values):
        raise ConfigError(
            _("{key} is {values!r}; a list of numbers is needed").format(key=key, values=values)
        )
    return tuple(float(v) for v in values)
