"""The noise that stochastic files ship with, drawn again one number at a time: Philox-4x32-10 and the Normal quantile.

Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011) turns a counter of four words of 32 bits and
a key of two into four random words. Here the counter is (number // 4, layer, step, sample), the key is the seed; a
word's top bit is the sign, its other bits m the tail probability (2m + 1) / 2³³. The quantile is Python's own.
"""

from __future__ import annotations

from binascii import crc32
from statistics import NormalDist

WORD = 32
MASK = (1 << WORD) - 1
QUANTILES = 2e-6  # by which the shipped quantiles may differ from those of N(0, 1), rounded to float32


def plain_normal(seed: int, sample: int, step: int, layer: str, number: int) -> float:
    """Return ε of one neuron of a layer at one step of one sample."""
    counter = number // 4, crc32(layer.encode()), step, sample
    word = philox_words(counter, (seed & MASK, seed >> WORD))[number % 4]
    tail = (2 * (word & (MASK >> 1)) + 1) / 2**33
    size = -NormalDist().inv_cdf(tail)
    return -size if word >> (WORD - 1) else size


def philox_words(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Return the four words of Philox-4x32 after ten rounds."""
    a, b, c, d = counter
    low, high = key
    for _ in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (right >> WORD) ^ b ^ low, right & MASK, (left >> WORD) ^ d ^ high, left & MASK
        low, high = (low + 0x9E3779B9) & MASK, (high + 0xBB67AE85) & MASK
    return a, b, c, d
