"""Rotary position tables: default, linear and llama3 scaling."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """How fast each pair of a head turns with the position."""

    kind: Literal["default", "linear", "llama3"] = "default"
    theta: float = 10_000.0
    factor: float = 1.0
    low_freq_factor: float = 1.0  # llama3: wavelengths above original / low are slowed in full
    high_freq_factor: float = 4.0  # llama3: wavelengths below original / high stay as they are
    original_context: int = 8192

    def frequencies(self, head_dim: int) -> Tensor:
        """Return radians per position [head_dim / 2], float32, in the bits of transformers.

        At position 100,000 one unit in the last place is 0.006 radians, so the order of operations
        is theirs.
        """
        exponent = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
        frequency = 1.0 / (self.theta**exponent)
        if self.kind == "linear":
            return frequency / self.factor
        if self.kind == "default":
            return frequency
        low, high, wave = self.low_freq_factor, self.high_freq_factor, 2 * math.pi / frequency
        kept = (self.original_context / wave - low) / (high - low)
        mixed = (1 - kept) * frequency / self.factor + kept * frequency
        slow = torch.where(wave > self.original_context / low, frequency / self.factor, mixed)
        return torch.where(wave < self.original_context / high, frequency, slow)


class RopeTable:
    """cos and sin by position in float32, made once and extended by doubling.

    The first half of the sines is negated: turning a head x is then x * cos + swap(x) * sin, where
    `swap` exchanges the two halves.
    """

    def __init__(self, rope: Rope, head_dim: int, device: torch.device) -> None:
        self._frequencies = rope.frequencies(head_dim)
        self._device = device
        self.cos = self.sin = torch.empty(0, head_dim, device=device)

    def reserve(self, positions: int) -> None:
        """Make sure that rows 0 to `positions - 1` exist."""
        if positions <= len(self.cos):
            return
        positions = max(positions, 2 * len(self.cos), 256)
        angle = torch.arange(positions, dtype=torch.float32)[:, None] * self._frequencies
        cos, sin = angle.cos(), angle.sin()
        self.cos = torch.cat((cos, cos), dim=1).to(self._device)
        self.sin = torch.cat((-sin, sin), dim=1).to(self._device)
