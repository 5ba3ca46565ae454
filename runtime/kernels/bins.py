"""One pass over the events of a stream: checked, counted into the open bin, complete bins listed by their cells."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from axonnx.runtime.events.arrays import Events
from axonnx.runtime.kernels.bin_slots import (
    AFTER,
    BAD_POLARITY,
    BEFORE,
    BEYOND,
    BIN,
    BIN_US,
    BUSY,
    CELLS,
    CLIPPED,
    COUNTED,
    FULL,
    HEIGHT,
    KNOWN,
    LAST,
    LATE,
    LIMIT,
    LOW,
    OFF_SENSOR,
    ORIGIN,
    PLANE,
    POLARITIES,
    SPAN,
    SURPLUS,
    TOUCHED,
    WIDTH,
)
from axonnx.runtime.kernels.jit import RECORD, compiled, given, inlined, kept

Longs = NDArray[np.int64]
Words = NDArray[np.uint64]
Indices = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
U = np.uint64  # indices without a sign: numba looks for negative ones otherwise
ONE = U(1)


@inlined
def list_cell(cell: Any, counts: Bytes, s: Longs, cells: Indices, values: Bytes) -> None:
    """Move one count from the open bin to the list, cut to the limit."""
    count = np.int64(counts[cell])
    counts[cell] = 0
    value = min(count, s[LIMIT])
    at = U(s[CELLS])
    cells[at], values[at] = cell, value
    s[CELLS] += 1
    s[COUNTED] += value
    s[CLIPPED] += count - value


@inlined
def take_frame(counts: Bytes, s: Longs, frame: Bytes) -> None:
    """Move all counts from the open bin to a frame, cut to the limit."""
    limit, total, kept_ = np.uint8(s[LIMIT]), np.int64(0), np.int64(0)
    for cell in range(U(len(counts))):
        count = counts[cell]
        value = min(count, limit)
        frame[cell], counts[cell] = value, np.uint8(0)
        total += count
        kept_ += value
    s[COUNTED] += kept_
    s[CLIPPED] += total - kept_


@inlined
def list_all(counts: Bytes, s: Longs, cells: Indices, values: Bytes) -> None:
    """The open bin's cells that are not zero."""
    for cell in range(U(len(counts))):
        if counts[cell]:
            list_cell(cell, counts, s, cells, values)


@inlined
def list_seen(
    events: Events,
    first: Any,
    stop: Any,
    columns: Indices,
    rows: Indices,
    counts: Bytes,
    s: Longs,
    cells: Indices,
    values: Bytes,
) -> None:
    """The same where all of them were counted from events first … stop − 1: quicker than a look at a large sensor."""
    for i in range(first, stop):
        e = events[i]
        x, y, p = U(e.x), U(e.y), U(e.p)
        if x < U(s[WIDTH]) and y < U(s[HEIGHT]) and p < U(s[POLARITIES]):
            cell = p * U(s[PLANE]) + U(rows[y]) + U(columns[x])
            if counts[cell]:
                list_cell(cell, counts, s, cells, values)


@compiled(
    types.int64,
    given(RECORD),
    types.int64,
    given(types.uint32),
    given(types.uint32),
    kept(types.uint8),
    kept(types.int64),
    kept(types.uint8),
    kept(types.uint64),
    kept(types.int64),
    kept(types.uint32),
    kept(types.uint8),
)
def push(
    events: Events,
    start: int,
    columns: Indices,
    rows: Indices,
    counts: Bytes,
    s: Longs,
    frame: Bytes,
    busy: Words,
    starts: Longs,
    cells: Indices,
    values: Bytes,
) -> Any:
    """Count events from ``start`` on; their number, or the first that ends a bin for which there is no room.

    The bin that is open at the start goes to ``frame`` once it is complete. Those that follow go to the lists: ``busy``
    gets the bins that are not silent, and ``starts`` where each one's cells begin.
    """
    n, i = U(len(events)), U(start)
    width, height, polarities, plane = U(s[WIDTH]), U(s[HEIGHT]), U(s[POLARITIES]), U(s[PLANE])
    bin_us, last = U(s[BIN_US]), s[LAST]
    off_sensor = bad_polarity = before = late = surplus = 0
    known, touched = s[KNOWN], s[TOUCHED]
    origin, low, span = s[ORIGIN], U(s[LOW]), U(s[SPAN])
    framed = len(frame) > 0  # the next bin to end goes to the frame
    entered, whole = i, False  # the open bin's events are from here on, where it is whole in this call
    while i < n:
        e = events[i]
        x, y, p, t = U(e.x), U(e.y), U(e.p), e.t
        if x >= width or y >= height:
            off_sensor += 1
        elif p >= polarities:
            bad_polarity += 1
        else:
            if known == 0:
                origin, known = t, 1
            elapsed = U(t) - U(origin)  # modulo 2^64: exact where t ≥ origin
            if t < origin:
                before += 1
            elif elapsed >= low and elapsed - low < span:
                cell = p * plane + U(rows[y]) + U(columns[x])
                count = counts[cell]
                touched = 1
                if count < FULL:
                    counts[cell] = count + np.uint8(1)
                else:
                    surplus += 1
            else:
                index = elapsed // bin_us
                after = last >= 0 and index >= U(last)
                if after:
                    index = U(last)
                if s[BEYOND] or index < U(s[BIN]) or (after and index == U(s[BIN])):
                    s[AFTER] += after
                    late += not after
                elif not framed and len(busy) == 0:
                    break
                else:
                    s[SURPLUS] += surplus
                    surplus = 0
                    at = s[CELLS]
                    if framed:
                        take_frame(counts, s, frame)
                    elif whole and U(8) * (i - entered) < U(len(counts)):
                        list_seen(events, entered, i, columns, rows, counts, s, cells, values)
                    else:
                        list_all(counts, s, cells, values)
                    if s[CELLS] > at:
                        busy[U(s[BUSY])], starts[U(s[BUSY])] = U(s[BIN]), at
                        s[BUSY] += 1
                    s[CLIPPED] += s[SURPLUS]
                    s[SURPLUS] = 0
                    low, span, touched = index * bin_us, U(0) if after else bin_us, 0
                    s[BIN] = np.int64(index)
                    framed, entered, whole = False, i, True
                    continue  # the event that ended the bin is the next one's
        i += ONE
    s[OFF_SENSOR] += off_sensor
    s[BAD_POLARITY] += bad_polarity
    s[BEFORE] += before
    s[LATE] += late
    s[SURPLUS] += surplus
    s[ORIGIN], s[KNOWN], s[TOUCHED] = origin, known, touched
    s[LOW], s[SPAN] = np.int64(low), np.int64(span)
    return np.int64(i)
