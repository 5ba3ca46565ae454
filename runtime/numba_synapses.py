"""Synapses on event lists: every active input adds its row of weights to sums that stay in registers.

Weights lie in blocks of 64, 32 or 16 outputs, [rows][width] each, so that a row is contiguous and a block's rows stay
in the cache. Sums are exact on the grid, so the order in which events come cannot show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.numba_compile import Long, compiled, inlined
from axonnx.runtime.numba_vectors import add, load, mul, splat, store, zeros16, zeros32, zeros64

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

# Where a linear synapse's numbers stand in its row of the table; see numba_plan.
SOURCE, LIST, STARTS, GRADED, WEIGHTS, OUT, BIAS, INPUTS, SIZE, COUNT, OUTPUTS = range(1, 12)


@inlined
def add_rows(
    total: Any,
    width: Long,
    memory: Floats,
    weights: Floats,
    events: Ints,
    begin: Long,
    end: Long,
    row: Long,
    source: Long,
) -> Any:
    """total + Σ_e w[row + width·e]; with ``source`` ≥ 0 each row times the value of its input."""
    if source < 0:
        for k in range(begin, end):
            total = add(total, load(total, weights, row + width * np.int64(events[k])))
    else:
        for k in range(begin, end):
            e = np.int64(events[k])
            total = add(total, mul(splat(total, memory[source + e]), load(total, weights, row + width * e)))
    return total


@inlined
def begin(like: Any, bias: Long, done: Long, memory: Floats, constants: Floats, out: Long) -> Any:
    """What a sum begins at: a bias, or nothing (−1), or what is there already (−2)."""
    if bias >= 0:
        return load(like, constants, bias + done)
    return load(like, memory, out) if bias == -2 else like


@inlined
def _linear_block(
    like: Any, width: Long, g: Table, r: Long, memory: Floats, weights: Floats, events: Ints, count: Long, done: Long
) -> Any:
    row, out = g[r + WEIGHTS] + done * g[r + INPUTS], g[r + OUT] + done
    total = begin(like, g[r + BIAS], done, memory, weights, out)
    source = g[r + SOURCE] if g[r + GRADED] else np.int64(-1)
    total = add_rows(total, width, memory, weights, events, g[r + LIST], g[r + LIST] + count, row, source)
    store(memory, out, total)


@compiled
def linear(g: Table, r: Long, memory: Floats, weights: Floats, events: Ints) -> Any:
    """W·x + b, block by block; the operations it took."""
    count = np.int64(events[g[r + COUNT]])
    done = np.int64(0)  # typed, so that one compiled form serves every call
    while g[r + SIZE] - done >= 64:
        _linear_block(zeros64(), np.int64(64), g, r, memory, weights, events, count, done)
        done += 64
    if g[r + SIZE] - done >= 32:
        _linear_block(zeros32(), np.int64(32), g, r, memory, weights, events, count, done)
        done += 32
    if g[r + SIZE] - done >= 16:
        _linear_block(zeros16(), np.int64(16), g, r, memory, weights, events, count, done)
    return count * g[r + OUTPUTS]
