"""Binary words to events in one pass: the twins of the plain passes in `axonnx.runtime.readers` (evt2, dat)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from axonnx.runtime.events.arrays import Events
from axonnx.runtime.kernels.clock_slots import KNOWN, LAST, TURNS
from axonnx.runtime.kernels.jit import RECORD, compiled, given, inlined, kept

Words = NDArray[np.uint32]
Longs = NDArray[np.int64]
U = np.uint64  # indices without a sign: numba looks for negative ones otherwise
ONE, TIME_HIGH = U(1), 8


@inlined
def turned(raw: Any, clock: Longs, span: Any) -> Any:
    """How often a clock of ``span`` values has begun anew once it shows ``raw``; see `readers.clock`."""
    turns, step = clock[TURNS], raw - clock[LAST]
    if clock[KNOWN]:
        if step < -(span // 2):
            turns += 1
        elif step >= span - span // 128 and turns > 0:
            turns -= 1
    clock[KNOWN], clock[LAST], clock[TURNS] = 1, raw, turns
    return turns


@compiled(types.int64, given(types.uint32), types.int64, kept(types.int64), kept(types.int64), kept(RECORD))
def evt2(words: Words, bits: int, clock: Longs, counts: Longs, events: Events) -> Any:
    """Decode words; how many events there are. ``counts`` gets words by kind, and last events without a time."""
    span, found = np.int64(1) << bits, U(0)
    base = clock[LAST] + clock[TURNS] * span
    for i in range(U(len(words))):
        word = words[i]
        kind = word >> np.uint32(28)
        if kind <= 1:
            if clock[KNOWN]:
                event = events[found]
                event.t = base << 6 | np.int64(word >> np.uint32(22) & np.uint32(0x3F))
                event.x = np.uint16(word >> np.uint32(11) & np.uint32(0x7FF))
                event.y = np.uint16(word & np.uint32(0x7FF))
                event.p = np.uint8(kind)
                found += ONE
            else:
                counts[U(len(counts)) - ONE] += 1
        elif kind == TIME_HIGH:
            raw = np.int64(word & np.uint32(0x0FFF_FFFF))
            base = raw + turned(raw, clock, span) * span
        else:
            counts[U(kind)] += 1
    return np.int64(found)


@compiled(types.void, given(types.uint32), types.int64, types.int64, types.int64, kept(types.int64), kept(RECORD))
def dat(words: Words, bits: int, x_bits: int, y_bits: int, clock: Longs, events: Events) -> None:
    """Decode pairs of time and data, an event each."""
    span = np.int64(1) << bits
    x_shift, p_shift = np.uint32(x_bits), np.uint32(x_bits + y_bits)
    x_mask, y_mask = np.uint32((1 << x_bits) - 1), np.uint32((1 << y_bits) - 1)
    for i in range(U(len(events))):
        raw, data = np.int64(words[U(2) * i]), words[U(2) * i + ONE]
        event = events[i]
        event.t = raw + turned(raw, clock, span) * span
        event.x = np.uint16(data & x_mask)
        event.y = np.uint16(data >> x_shift & y_mask)
        event.p = np.uint8(data >> p_shift & np.uint32(1))
