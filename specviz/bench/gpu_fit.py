"""Which shape a cost over rows has: flat, rising with rows, or a staircase over tiles."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Literal

Shape = Literal["constant", "linear", "step"]
TILES = (8, 16, 32, 64, 128, 192, 256)
BETTER = 6.0  # a richer model must beat a poorer one by this much of the criterion


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The chosen shape: seconds are base + slope * (rows, or tiles of `tile` rows)."""

    shape: Shape
    base: float
    slope: float = 0.0
    tile: int | None = None
    error: float  # root mean square, as a share of the mean
    steps: tuple[int, ...] = ()  # the first row count of each further tile, where measured

    @property
    def text(self) -> str:
        """Return a sentence."""
        if self.shape == "constant":
            return "flat: no step seen"
        if self.shape == "linear":
            return "rises with every row: no step seen"
        return f"steps of {self.tile} rows, at {', '.join(map(str, self.steps))}"


def fit(rows: Sequence[int], seconds: Sequence[float]) -> Fit:
    """Choose among the shapes by the Bayesian information criterion (Schwarz 1978).

    rows [n] are packed rows, rising; seconds [n] what they took.
    """
    flat = _line(rows, seconds, lambda row: 0.0)
    best, best_score = _fit("constant", None, flat, rows, seconds), _score(flat, seconds, 1)
    rising = _line(rows, seconds, float)
    score = _score(rising, seconds, 2)
    if rising[1] > 0 and score + BETTER < best_score:
        best, best_score = _fit("linear", None, rising, rows, seconds), score
    for tile in TILES:
        line = _line(rows, seconds, _stairs(tile))
        score = _score(line, seconds, 3)
        if line[1] > 0 and max(rows) > tile and score + BETTER < best_score:
            best, best_score = _fit("step", tile, line, rows, seconds), score
    return best


def _stairs(tile: int) -> Callable[[int], float]:
    return lambda row: float(-(-row // tile))


def _line(
    rows: Sequence[int], seconds: Sequence[float], of: Callable[[int], float]
) -> tuple[float, float, float]:
    """Least squares: base, slope, mean square of what is left."""
    x = [of(row) for row in rows]
    n, mean_x, mean_y = len(x), sum(x) / len(x), sum(seconds) / len(seconds)
    spread = sum((a - mean_x) ** 2 for a in x)
    shared = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, seconds, strict=True))
    slope = shared / spread if spread else 0.0
    base = mean_y - slope * mean_x
    left = sum((b - base - slope * a) ** 2 for a, b in zip(x, seconds, strict=True)) / n
    return base, slope, left


def _score(line: tuple[float, float, float], seconds: Sequence[float], free: int) -> float:
    """Return the criterion; what is left is never taken for less than a thousandth of the mean."""
    n, floor = len(seconds), (1e-3 * sum(seconds) / len(seconds)) ** 2
    return n * log(max(line[2], floor)) + free * log(n)


def _fit(
    shape: Shape,
    tile: int | None,
    line: tuple[float, float, float],
    rows: Sequence[int],
    seconds: Sequence[float],
) -> Fit:
    mean = sum(seconds) / len(seconds)
    steps = tuple(
        after for before, after in pairwise(rows) if tile and -(-after // tile) > -(-before // tile)
    )
    base, slope, left = line
    return Fit(shape=shape, base=base, slope=slope, tile=tile, error=left**0.5 / mean, steps=steps)
