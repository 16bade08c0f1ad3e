"""Uniform numbers as a function of (seed, position, purpose, sibling): Philox 4x32-10, on the host.

The kernels draw the same bits on the device (Salmon et al., SC 2011, section 3).
"""

from typing import Literal

Purpose = Literal["draft", "accept", "sample"]
PURPOSES: tuple[Purpose, ...] = ("draft", "accept", "sample")  # the index is the counter word

_WORD = 0xFFFFFFFF
_A, _B = 0xD2511F53, 0xCD9E8D57
_KEY_A, _KEY_B = 0x9E3779B9, 0xBB67AE85


def uniform(seed: int, position: int, purpose: Purpose, sibling: int = 0) -> float:
    """Return a float in [0, 1) with 53 random bits."""
    c = [position & _WORD, PURPOSES.index(purpose), sibling & _WORD, 0]
    key_a, key_b = seed & _WORD, (seed >> 32) & _WORD
    for _ in range(10):
        a, b = c[0] * _A, c[2] * _B
        c = [(b >> 32) ^ c[1] ^ key_a, b & _WORD, (a >> 32) ^ c[3] ^ key_b, a & _WORD]
        key_a, key_b = (key_a + _KEY_A) & _WORD, (key_b + _KEY_B) & _WORD
    return float(((c[0] >> 5) << 26) + (c[1] >> 6)) / (1 << 53)
