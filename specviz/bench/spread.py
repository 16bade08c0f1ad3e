"""Repeated measurements: the median and how far they lie apart."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

BUSY = 0.25  # (highest - lowest) / median above this: something else was using the machine


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, lowest and highest of `n` repeats."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Summarise at least one value."""
        found = sorted(values)
        return cls(median(found), found[0], found[-1], len(found))

    @property
    def relative(self) -> float:
        """Width as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    @property
    def busy(self) -> bool:
        """Whether the repeats lie too far apart to be believed."""
        return self.relative > BUSY

    def text(self, digits: int = 1) -> str:
        """Return `median (low-high)`."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}-{self.high:.{digits}f})"
