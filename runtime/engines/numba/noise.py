"""``axonnx.runtime.engines.reference.noise`` compiled: the same integers, the same products and sums, the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.jit import compiled, inlined
from axonnx.runtime.engines.numba.lists import bit_length
from axonnx.runtime.engines.reference.noise import MULTIPLY, ROUNDS, WEYL
from axonnx.runtime.engines.reference.normal_table import DEGREE

MULTIPLY_A, MULTIPLY_B = np.uint64(MULTIPLY[0]), np.uint64(MULTIPLY[1])
WEYL_A, WEYL_B = np.uint64(WEYL[0]), np.uint64(WEYL[1])
LOW, SHIFT, TOP, REST = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(31), np.uint64(0x7FFFFFFF)
ONE, TWO = np.uint64(1), np.uint64(2)
UNIT = 2.0**-30


@inlined
def philox(a: Any, b: Any, c: Any, d: Any, seed: Any) -> Any:
    """Four words of 32 random bits."""
    low, high = seed & LOW, seed >> SHIFT
    for _ in range(ROUNDS):
        first, second = a * MULTIPLY_A, c * MULTIPLY_B
        a, b, c, d = (second >> SHIFT) ^ b ^ low, second & LOW, (first >> SHIFT) ^ d ^ high, first & LOW
        low, high = (low + WEYL_A) & LOW, (high + WEYL_B) & LOW
    return a, b, c, d


@inlined
def to_normal(word: Any, table: NDArray[np.float64]) -> Any:
    """One normal from one word."""
    odd = (word & REST) * TWO + ONE
    octave = bit_length(odd) - 1
    v = np.float64(odd << (TOP - np.uint64(octave))) * UNIT - 3.0
    value = table[octave, DEGREE]
    for power in range(DEGREE - 1, -1, -1):
        value = value * v + table[octave, power]
    return np.float32(-value if word >> TOP else value)


@compiled
def fill_normals(
    out: NDArray[np.float32],
    seed: Any,
    samples: NDArray[np.uint64],
    first_step: Any,
    layer: Any,
    table: NDArray[np.float64],
) -> Any:
    """Fill [steps, samples, count]."""
    count = out.shape[2]
    for t in range(out.shape[0]):
        for s in range(out.shape[1]):
            for block in range((count + 3) // 4):
                words = philox(np.uint64(block), layer, first_step + np.uint64(t), samples[s], seed)
                for lane in range(min(4, count - 4 * block)):
                    out[t, s, 4 * block + lane] = to_normal(words[lane], table)
