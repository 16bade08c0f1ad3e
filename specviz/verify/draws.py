"""Randomness as a function of (seed, position, purpose): replay and rewind repeat exactly."""

import hashlib
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Purpose = Literal["draft", "accept", "sample"]


@dataclass(frozen=True, slots=True)
class Draws:
    """Uniforms keyed by position, not by order, so changing D does not shift later draws.

    `epoch` is 0, except in block verification: there the fate of one position depends on the draws
    of later ones, which a next round must not see again, so each round has its own epoch.
    """

    seed: int
    epoch: int = 0

    def uniform(self, position: int, purpose: Purpose, index: int = 0) -> float:
        """A float in [0, 1) with 53 random bits; `index` tells siblings apart."""
        key = f"{self.seed}/{self.epoch}/{position}/{purpose}/{index}".encode()
        word = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "big")
        return (word >> 11) / (1 << 53)


def pick(probs: Tensor, u: float) -> int:
    """Draw a token from probs [vocab] by inverting its CDF at u; zero-mass tokens never."""
    cdf = probs.double().cumsum(0)
    at = int(torch.searchsorted(cdf, u * float(cdf[-1]), right=True))
    if at < len(probs):
        return at
    return int(probs.nonzero()[-1])  # u * total rounded up to the total itself
