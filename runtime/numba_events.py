"""Event lists: which elements of a buffer are not zero, in order, and how many come before each sixteen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.numba_compile import compiled, inlined
from axonnx.runtime.numba_vectors import LANES, active, bits_set, list_bits, load, zeros16

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@inlined
def append(events: Ints, at: int, count: int, tables: Ints, mask: int, base: int) -> Any:
    """Add the set lanes of a mask to the list at ``at``; the new count."""
    low = mask & 255
    list_bits(events, at + count, tables, low, base)
    count += bits_set(low)
    high = mask >> 8
    list_bits(events, at + count, tables, high, base + 8)
    return count + bits_set(high)


@compiled
def scan(memory: Floats, source: int, size: int, events: Ints, at: int, starts: int, tables: Ints) -> Any:
    """List the active elements of a buffer; their number."""
    count, like = np.int64(0), zeros16()
    for i in range(0, size, LANES):
        events[starts + i // LANES] = count
        count = append(events, at, count, tables, active(load(like, memory, source + i)), i)
    events[starts + size // LANES] = count
    return count


@compiled
def admitted(memory: Floats, source: int, events: Ints, at: int, count: int, scale: int, largest: int) -> Any:
    """Whether all listed values are multiples of 1/scale up to largest/scale; nan is not."""
    for k in range(count):
        units = np.float64(memory[source + events[at + k]]) * scale
        if not (abs(units) <= largest and units == np.floor(units)):
            return False
    return True
