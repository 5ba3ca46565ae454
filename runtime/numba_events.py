"""Event lists: which elements of a buffer are not zero, in order, and how many come before each sixteen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.numba_compile import Long, compiled, inlined
from axonnx.runtime.numba_lists import bits_set, list_bits
from axonnx.runtime.numba_vectors import LANES, active, load, zeros16

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@inlined
def append(events: Ints, at: Long, count: Long, tables: Ints, mask: Long, base: Long) -> Any:
    """Add the set lanes of a mask to the list at ``at``; the new count."""
    low = mask & 255
    list_bits(events, at + count, tables, low, base)
    count += bits_set(low)
    high = mask >> 8
    list_bits(events, at + count, tables, high, base + 8)
    return count + bits_set(high)


@compiled
def scan(memory: Floats, source: Long, size: Long, events: Ints, at: Long, starts: Long, tables: Ints) -> Any:
    """List the active elements of a buffer; their number."""
    count, like = np.int64(0), zeros16()
    for i in range(0, size, LANES):
        events[starts + i // LANES] = count
        count = append(events, at, count, tables, active(load(like, memory, source + i)), i)
    events[starts + size // LANES] = count
    return count


@compiled
def admitted(memory: Floats, source: Long, events: Ints, at: Long, count: Long, scale: Long, largest: Long) -> Any:
    """Whether all listed values are multiples of 1/scale up to largest/scale; nan is not."""
    for k in range(count):
        units = np.float64(memory[source + events[at + k]]) * scale
        if not (abs(units) <= largest and units == np.floor(units)):
            return False
    return True
