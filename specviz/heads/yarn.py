"""YaRN: positions stretched for the slow pairs of a head only (arXiv:2309.00071)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from specviz.models.rope import Rope


@dataclass(frozen=True, slots=True, kw_only=True)
class Yarn(Rope):
    """Turns of a head trained on `original_context` positions and served on `factor` times more.

    Pairs that turn more than `beta_fast` times within the original context stay as they are, those
    that turn less than `beta_slow` times are slowed in full, those between in part.
    """

    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True  # the ends of the ramp are whole pairs
    amplitude: float = 1.0  # of the turned queries and keys

    def frequencies(self, head_dim: int) -> Tensor:
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        kept = 1.0 / (self.theta**exponent)
        low, high = self._pair(head_dim, self.beta_fast), self._pair(head_dim, self.beta_slow)
        if self.truncate:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, head_dim - 1)
        ramp = torch.arange(head_dim // 2, dtype=torch.float32) - low
        slowed = (ramp / max(high - low, 0.001)).clamp(0, 1)
        return kept * (1 - slowed) + kept / self.factor * slowed

    def _pair(self, head_dim: int, turns: float) -> float:
        """Which pair turns so often within the original context."""
        ratio = self.original_context / (turns * 2 * math.pi)
        return head_dim * math.log(ratio) / (2 * math.log(self.theta))


def yarn_amplitude(factor: float, strength: float = 1.0) -> float:
    """Return what YaRN multiplies queries and keys by, 0.1 ln(factor) + 1 (section 3.4)."""
    return 1.0 if factor <= 1 else 0.1 * strength * math.log(factor) + 1.0
