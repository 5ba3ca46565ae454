"""Convolutions, channels last: for each output pixel, the rows of weights of all events in its window.

Events are listed pixel by pixel, so those in one row of a window are neighbours in the list, and the row of weights
of event e is e plus a number that belongs to the window. Where most inputs are active, a dense kernel takes four
pixels at a time instead, so that each weight is read once for all four; both give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.numba_compile import compiled, inlined
from axonnx.runtime.numba_synapses import begin
from axonnx.runtime.numba_vectors import add, load, mul, shift_list, splat, store, zeros16, zeros32, zeros64

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

# Where a convolution's numbers stand in its row of the table; see numba_plan.
SOURCE, LIST, STARTS, GRADED, WEIGHTS, OUT, BIAS = 1, 2, 3, 4, 5, 6, 7
HEIGHT, WIDTH, CHANNELS, PITCH, OUT_HEIGHT, OUT_WIDTH, OUT_PITCH = 8, 9, 10, 11, 12, 13, 14
WINDOW_HEIGHT, WINDOW_WIDTH, STRIDE_Y, STRIDE_X, TOP, LEFT, DILATION_Y, DILATION_X = 15, 16, 17, 18, 19, 20, 21, 22
COUNT, DENSE_ABOVE, OUTPUTS = 23, 24, 25
ROWS, INPUTS = 26, 27  # where the rows of one window are listed, and the inputs they belong to


@compiled
def window_rows(g: Table, r: int, events: Ints, y: int, x: int) -> Any:
    """List the rows of weights that the events in the window of output pixel (y, x) use; their number."""
    found, pitch, width, height = np.int64(0), g[r + PITCH], g[r + WIDTH], g[r + HEIGHT]
    starts, listed, to, taps = g[r + STARTS], g[r + LIST], g[r + ROWS], g[r + WINDOW_WIDTH]
    blocks = pitch // 16
    joined = g[r + DILATION_X] == 1  # the pixels of a window's row are neighbours
    span, parts = (taps, 1) if joined else (1, taps)
    for ky in range(g[r + WINDOW_HEIGHT]):
        row = y * g[r + STRIDE_Y] - g[r + TOP] + ky * g[r + DILATION_Y]
        if 0 <= row < height:
            for part in range(parts):
                first = x * g[r + STRIDE_X] - g[r + LEFT] + part * g[r + DILATION_X]
                low, high = row * width + max(first, 0), row * width + min(first + span, width)
                if low < high:
                    start, end = np.int64(events[starts + low * blocks]), np.int64(events[starts + high * blocks])
                    offset = ((ky * taps + part) - (row * width + first)) * pitch
                    for k in range(start, end, 8):
                        shift_list(events, to + found + k - start, listed + k, offset)
                    if g[r + GRADED]:
                        for k in range(start, end, 8):
                            shift_list(events, g[r + INPUTS] + found + k - start, listed + k, np.int64(0))
                    found += end - start
    return found


@compiled
def sparse_pixels(
    like: Any,
    width: int,
    g: Table,
    r: int,
    memory: Floats,
    weights: Floats,
    events: Ints,
    done: int,
    y: int,
    low: int,
    high: int,
) -> Any:
    """One block of outputs at the pixels low … high − 1 of a row; the events that reached them."""
    seen = np.int64(0)
    base = g[r + WEIGHTS] + done * g[r + WINDOW_HEIGHT] * g[r + WINDOW_WIDTH] * g[r + PITCH]
    out = g[r + OUT] + (y * g[r + OUT_WIDTH] + low) * g[r + OUT_PITCH] + done
    pitch, bias, rows, graded = g[r + OUT_PITCH], g[r + BIAS], g[r + ROWS], g[r + GRADED]
    for x in range(low, high):
        found = window_rows(g, r, events, y, x)
        total = begin(like, bias, done, memory, weights, out)
        if graded:
            inputs = g[r + INPUTS]
            for k in range(found):
                value = splat(total, memory[g[r + SOURCE] + events[inputs + k]])
                total = add(total, mul(value, load(total, weights, base + width * np.int64(events[rows + k]))))
        else:
            for k in range(rows, rows + found):
                total = add(total, load(total, weights, base + width * np.int64(events[k])))
        store(memory, out, total)
        out += pitch
        seen += found
    return seen


@compiled
def four_pixels(
    width: int, g: Table, r: int, memory: Floats, weights: Floats, done: int, lane: int, y: int, x: int
) -> Any:
    """Sixteen outputs of four pixels side by side, whose windows lie inside the input's columns."""
    like, bias = zeros16(), g[r + BIAS]
    pitch, channels, taps, into = g[r + PITCH], g[r + CHANNELS], g[r + WINDOW_WIDTH], g[r + OUT_PITCH]
    ahead = g[r + STRIDE_X] * pitch
    base = g[r + WEIGHTS] + done * g[r + WINDOW_HEIGHT] * taps * pitch + lane
    out = g[r + OUT] + (y * g[r + OUT_WIDTH] + x) * into + done + lane
    a = begin(like, bias, done + lane, memory, weights, out)
    b = begin(like, bias, done + lane, memory, weights, out + into)
    c = begin(like, bias, done + lane, memory, weights, out + 2 * into)
    d = begin(like, bias, done + lane, memory, weights, out + 3 * into)
    for ky in range(g[r + WINDOW_HEIGHT]):
        row = y * g[r + STRIDE_Y] - g[r + TOP] + ky * g[r + DILATION_Y]
        if 0 <= row < g[r + HEIGHT]:
            for kx in range(taps):
                column = x * g[r + STRIDE_X] - g[r + LEFT] + kx * g[r + DILATION_X]
                at = base + width * (ky * taps + kx) * pitch
                source = g[r + SOURCE] + (row * g[r + WIDTH] + column) * pitch
                for channel in range(channels):
                    w = load(like, weights, at + width * channel)
                    here = source + channel
                    a = add(a, mul(splat(like, memory[here]), w))
                    b = add(b, mul(splat(like, memory[here + ahead]), w))
                    c = add(c, mul(splat(like, memory[here + 2 * ahead]), w))
                    d = add(d, mul(splat(like, memory[here + 3 * ahead]), w))
    store(memory, out, a)
    store(memory, out + into, b)
    store(memory, out + 2 * into, c)
    store(memory, out + 3 * into, d)


@compiled
def _reached(g: Table, r: int, events: Ints, y: int, low: int, high: int) -> Any:
    """The events in the windows of these pixels, whose columns all exist."""
    seen, blocks = np.int64(0), g[r + PITCH] // 16
    for x in range(low, high):
        for ky in range(g[r + WINDOW_HEIGHT]):
            row = y * g[r + STRIDE_Y] - g[r + TOP] + ky * g[r + DILATION_Y]
            if 0 <= row < g[r + HEIGHT]:
                for kx in range(g[r + WINDOW_WIDTH]):
                    at = row * g[r + WIDTH] + x * g[r + STRIDE_X] - g[r + LEFT] + kx * g[r + DILATION_X]
                    seen += events[g[r + STARTS] + (at + 1) * blocks] - events[g[r + STARTS] + at * blocks]
    return seen


@inlined
def _inside(g: Table, r: int) -> Any:
    """The columns, a multiple of four of them, whose windows lie inside the input."""
    reach = (g[r + WINDOW_WIDTH] - 1) * g[r + DILATION_X]
    first = min(-(-g[r + LEFT] // g[r + STRIDE_X]), g[r + OUT_WIDTH])
    last = min((g[r + WIDTH] - 1 - reach + g[r + LEFT]) // g[r + STRIDE_X] + 1, g[r + OUT_WIDTH])
    return first, first + max(last - first, 0) // 4 * 4


@compiled
def sparse_row(
    width: int, g: Table, r: int, memory: Floats, weights: Floats, events: Ints, done: int, y: int, low: int, high: int
) -> Any:
    """``sparse_pixels`` for a block of any width."""
    if width == 64:
        return sparse_pixels(zeros64(), width, g, r, memory, weights, events, done, y, low, high)
    if width == 32:
        return sparse_pixels(zeros32(), width, g, r, memory, weights, events, done, y, low, high)
    return sparse_pixels(zeros16(), width, g, r, memory, weights, events, done, y, low, high)


@compiled
def conv(g: Table, r: int, memory: Floats, weights: Floats, events: Ints) -> Any:
    """W ∗ x + b, block by block; the operations it took."""
    done, seen, first, last = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    if events[g[r + COUNT]] > g[r + DENSE_ABOVE]:
        first, last = _inside(g, r)
    while done < g[r + OUT_PITCH]:
        left = g[r + OUT_PITCH] - done
        width = np.int64(64 if left >= 64 else 32 if left >= 32 else 16)
        seen = np.int64(0)
        for y in range(g[r + OUT_HEIGHT]):
            seen += sparse_row(width, g, r, memory, weights, events, done, y, np.int64(0), first)
            for x in range(first, last, 4):
                for lane in range(0, width, 16):
                    four_pixels(width, g, r, memory, weights, done, lane, y, x)
            seen += _reached(g, r, events, y, first, last)
            seen += sparse_row(width, g, r, memory, weights, events, done, y, last, g[r + OUT_WIDTH])
        done += width
    return seen * g[r + OUTPUTS]
