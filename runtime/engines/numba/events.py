"""Event lists: which elements of a buffer are not zero, in order, and how many come before each sixteen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import bits_set, list_bits, put
from axonnx.runtime.engines.numba.vectors import (
    LANES,
    absolute,
    active,
    at_least,
    equal,
    load,
    mul,
    nearest,
    splat,
    zeros16,
)

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
ALL = 2**LANES - 1  # a bit for each lane


@inlined
def append(events: Ints, at: Long, count: Long, tables: Ints, mask: Long, base: Long) -> Any:
    """Add the set lanes of a mask to the list at ``at``; the new count."""
    low = mask & 255
    list_bits(events, at + count, tables, low, base)
    count += bits_set(low)
    high = mask >> 8
    list_bits(events, at + count, tables, high, base + 8)
    return count + bits_set(high)


@inlined
def close(events: Ints, end: Long, row: Long) -> Any:
    """Rows of zeros behind the last, so that whoever takes four at a time need not look where the list ends."""
    for k in range(3):
        put(events, end + k, row)


@compiled
def scan(memory: Floats, source: Long, size: Long, events: Ints, at: Long, starts: Long, tables: Ints) -> Any:
    """List the active elements of a buffer; their number."""
    count, like = np.int64(0), zeros16()
    for i in range(0, size, LANES):
        put(events, starts + i // LANES, count)
        count = append(events, at, count, tables, active(load(like, memory, source + i)), i)
    put(events, starts + size // LANES, count)
    close(events, at + count, size)
    return count


@compiled
def scan_input(
    memory: Floats,
    source: Long,
    size: Long,
    events: Ints,
    at: Long,
    starts: Long,
    tables: Ints,
    scale: Long,
    largest: Long,
) -> Any:
    """``scan``, with a look at the values: 1 where all are 0 or 1, else 0; −1 where the contract does not admit one.

    It admits multiples of 1/scale up to largest/scale.
    """
    count, plain, like = np.int64(0), np.int64(1), zeros16()
    scales, limit, one = splat(like, np.float32(scale)), splat(like, np.float32(largest)), splat(like, np.float32(1))
    for i in range(0, size, LANES):
        values = load(like, memory, source + i)
        there = active(values)
        if equal(values, one) != there or largest < scale:
            plain = np.int64(0)
            units = mul(values, scales)  # exact: a power of two
            if at_least(limit, absolute(units)) & equal(units, nearest(units)) != ALL:
                return np.int64(-1)
        put(events, starts + i // LANES, count)
        count = append(events, at, count, tables, there, i)
    put(events, starts + size // LANES, count)
    close(events, at + count, size)
    return plain
