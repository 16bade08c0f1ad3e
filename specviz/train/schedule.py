"""Learning rate over steps."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """Rises linearly over `warmup` steps, then falls as a half cosine to `floor` of the peak."""

    peak: float
    steps: int
    warmup: int
    floor: float = 0.05

    def __call__(self, step: int) -> float:
        """Return the rate of step 0, 1, ..."""
        if step < self.warmup:
            return self.peak * (step + 1) / self.warmup
        span = max(1, self.steps - self.warmup)
        done = min(1.0, (step - self.warmup) / span)
        return self.peak * (self.floor + (1 - self.floor) * (1 + math.cos(math.pi * done)) / 2)
