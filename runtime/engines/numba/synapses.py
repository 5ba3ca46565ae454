"""Synapses on event lists: every active input adds its row of weights to sums that stay in registers.

Weights lie in blocks of 64, 32 or 16 outputs, [rows][width] each, so that a row is contiguous and a block's rows stay
in the cache; the last row of a block is zeros. Sums are exact on the grid, so the order in which events come cannot
show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import item
from axonnx.runtime.engines.numba.vectors import add, add_product, load, splat, store, zeros16, zeros32, zeros64
from axonnx.runtime.engines.table.rows import ADD_TO_SUM, Linear, columns

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

AT = columns(Linear)


@inlined
def row_of(like: Any, width: Long, weights: Floats, events: Ints, k: Long, row: Long) -> Any:
    """The weights of the k-th event."""
    return load(like, weights, row + width * np.int64(item(events, k)))


@inlined
def add_listed(total: Any, width: Long, weights: Floats, events: Ints, low: Long, high: Long, row: Long) -> Any:
    """total + Σ_k w[row + width·e_k], four at a time: sums of pairs do not wait for each other.

    Behind ``high`` the list has rows of zeros.
    """
    for k in range(low, high, 4):
        a = row_of(total, width, weights, events, k, row)
        b = row_of(total, width, weights, events, k + 1, row)
        c = row_of(total, width, weights, events, k + 2, row)
        d = row_of(total, width, weights, events, k + 3, row)
        total = add(total, add(add(a, b), add(c, d)))
    return total


@inlined
def begin(like: Any, bias: Long, done: Long, memory: Floats, constants: Floats, out: Long) -> Any:
    """What a sum begins at: a bias, or nothing (−1), or what is there already (−2)."""
    if bias >= 0:
        return load(like, constants, bias + done)
    return load(like, memory, out) if bias == ADD_TO_SUM else like


@inlined
def _linear_block(
    like: Any, width: Long, g: Table, r: Long, memory: Floats, weights: Floats, events: Ints, count: Long, done: Long
) -> Any:
    row, out = g[r + AT.weights] + done * g[r + AT.inputs], g[r + AT.out] + done
    total = begin(like, g[r + AT.bias], done, memory, weights, out)
    low, high, source = g[r + AT.listed], g[r + AT.listed] + count, g[r + AT.source]
    if g[r + AT.graded] and not events[g[r + AT.plain]]:
        for k in range(low, high):
            value = splat(total, item(memory, source + np.int64(item(events, k))))
            total = add_product(total, value, row_of(total, width, weights, events, k, row))
    else:
        total = add_listed(total, width, weights, events, low, high, row)
    store(memory, out, total)


@compiled
def linear(g: Table, r: Long, memory: Floats, weights: Floats, events: Ints) -> Any:
    """W·x + b, block by block; the operations it took."""
    count = np.int64(events[g[r + AT.counted]])
    done = np.int64(0)  # typed, so that one compiled form serves every call
    while g[r + AT.size] - done >= 64:
        _linear_block(zeros64(), np.int64(64), g, r, memory, weights, events, count, done)
        done += 64
    if g[r + AT.size] - done >= 32:
        _linear_block(zeros32(), np.int64(32), g, r, memory, weights, events, count, done)
        done += 32
    if g[r + AT.size] - done >= 16:
        _linear_block(zeros16(), np.int64(16), g, r, memory, weights, events, count, done)
    return count * g[r + AT.outputs]
