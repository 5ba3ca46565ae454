"""Convolutions, channels last: for each output pixel, the rows of weights of all events in its window.

Events are listed pixel by pixel, so those in one row of a window are neighbours in the list, and the row of weights
of event e is e plus a number that belongs to the window. Where most inputs are active, a dense kernel takes four
pixels at a time instead, so that each weight is read once for all four; both give the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.events import close
from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import item, shift_list
from axonnx.runtime.engines.numba.synapses import add_listed, begin, row_of
from axonnx.runtime.engines.numba.vectors import add_product, load, splat, store, zeros16, zeros32, zeros64
from axonnx.runtime.engines.table.rows import Conv, columns

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

AT = columns(Conv)


@inlined
def _list_rows(events: Ints, start: Long, end: Long, listed: Long, to: Long, offset: Long) -> Any:
    """Copy a part of an event list, sixteen at a time, as the rows of weights that its events use; the new end."""
    for k in range(start, end, 16):
        shift_list(events, to + k - start, listed + k, offset)
    return to + end - start


@compiled
def sparse_pixels(
    like: Any,
    width: Long,
    g: Table,
    r: Long,
    memory: Floats,
    weights: Floats,
    events: Ints,
    done: Long,
    y: Long,
) -> Any:
    """One block of outputs at the pixels of a row; the events that reached them.

    All numbers of the table are read before the loop: what it writes could, for all the compiler knows, change them.
    """
    seen, source, graded, listed, starts = (
        np.int64(0),
        g[r + AT.source],
        g[r + AT.graded],
        g[r + AT.listed],
        g[r + AT.starts],
    )
    if events[g[r + AT.plain]]:
        graded = np.int64(0)
    height, columns, pitch, rows, inputs = (
        g[r + AT.height],
        g[r + AT.width],
        g[r + AT.pitch],
        g[r + AT.rows],
        g[r + AT.inputs],
    )
    taps, window, stride, left = g[r + AT.window_width], g[r + AT.window_height], g[r + AT.stride_x], g[r + AT.left]
    ahead, down, bias, step = g[r + AT.dilation_x], g[r + AT.dilation_y], g[r + AT.bias], g[r + AT.out_pitch]
    top = y * g[r + AT.stride_y] - g[r + AT.top]
    nothing = window * taps * pitch  # the row of zeros
    base = g[r + AT.weights] + done * (nothing + 1)
    out = g[r + AT.out] + y * g[r + AT.out_width] * step + done
    blocks = pitch // 16
    span, parts = taps, np.int64(1)
    if ahead != 1:  # the pixels of a window's row are no neighbours
        span, parts = np.int64(1), taps
    for x in range(g[r + AT.out_width]):
        end = rows
        for ky in range(window):
            row = top + ky * down
            if 0 <= row < height:
                for part in range(parts):
                    first = x * stride - left + part * ahead
                    begin_at, end_at = row * columns + max(first, 0), row * columns + min(first + span, columns)
                    if begin_at < end_at:
                        this = np.int64(item(events, starts + begin_at * blocks))
                        that = np.int64(item(events, starts + end_at * blocks))
                        offset = ((ky * taps + part) - (row * columns + first)) * pitch
                        if graded:
                            _list_rows(events, this, that, listed, inputs + end - rows, np.int64(0))
                        end = _list_rows(events, this, that, listed, end, offset)
        total = begin(like, bias, done, memory, weights, out)
        if graded:
            for k in range(rows, end):
                value = splat(total, item(memory, source + np.int64(item(events, inputs + k - rows))))
                total = add_product(total, value, row_of(total, width, weights, events, k, base))
        else:
            close(events, end, nothing)
            total = add_listed(total, width, weights, events, rows, end, base)
        store(memory, out, total)
        out += step
        seen += end - rows
    return seen


@inlined
def _pixel(row: Long, column: Long, columns: Long, pitch: Long, source: Long, zeros: Long) -> Any:
    """Where an input pixel begins; beyond the image's sides are zeros."""
    return source + (row * columns + column) * pitch if 0 <= column < columns else zeros


@inlined
def _four_pixels(
    memory: Floats,
    weights: Floats,
    width: Long,
    channels: Long,
    at: Long,
    p: Long,
    q: Long,
    s: Long,
    t: Long,
    out: Long,
    into: Long,
) -> Any:
    """One tap's weights on four pixels p, q, s, t, added to sixteen outputs of each."""
    like = zeros16()
    a, b = load(like, memory, out), load(like, memory, out + into)
    c, d = load(like, memory, out + 2 * into), load(like, memory, out + 3 * into)
    for i in range(channels):
        w = load(like, weights, at + width * i)
        a = add_product(a, splat(like, item(memory, p + i)), w)
        b = add_product(b, splat(like, item(memory, q + i)), w)
        c = add_product(c, splat(like, item(memory, s + i)), w)
        d = add_product(d, splat(like, item(memory, t + i)), w)
    store(memory, out, a)
    store(memory, out + into, b)
    store(memory, out + 2 * into, c)
    store(memory, out + 3 * into, d)


@compiled
def dense_tap(
    g: Table, r: Long, memory: Floats, weights: Floats, width: Long, at: Long, ky: Long, kx: Long, lane: Long
) -> Any:
    """One tap of the window on all pixels, for sixteen outputs: its few weights stay in the nearest cache."""
    pitch, channels, into, zeros = g[r + AT.pitch], g[r + AT.channels], g[r + AT.out_pitch], g[r + AT.zeros]
    columns, stride, source, across = g[r + AT.width], g[r + AT.stride_x], g[r + AT.source], g[r + AT.out_width]
    left = kx * g[r + AT.dilation_x] - g[r + AT.left]
    height, down, top = g[r + AT.height], g[r + AT.stride_y], ky * g[r + AT.dilation_y] - g[r + AT.top]
    begins, rows, like = g[r + AT.out] + lane, g[r + AT.out_height], zeros16()
    for y in range(rows):
        row = y * down + top
        if 0 <= row < height:
            whole = across // 4 * 4
            for x in range(0, whole, 4):
                column, out = x * stride + left, begins + (y * across + x) * into
                p = _pixel(row, column, columns, pitch, source, zeros)
                q = _pixel(row, column + stride, columns, pitch, source, zeros)
                s = _pixel(row, column + 2 * stride, columns, pitch, source, zeros)
                t = _pixel(row, column + 3 * stride, columns, pitch, source, zeros)
                _four_pixels(memory, weights, width, channels, at, p, q, s, t, out, into)
            for x in range(whole, across):
                p = _pixel(row, x * stride + left, columns, pitch, source, zeros)
                out = begins + (y * across + x) * into
                total = load(like, memory, out)
                for i in range(channels):
                    total = add_product(total, splat(like, item(memory, p + i)), load(like, weights, at + width * i))
                store(memory, out, total)


@compiled
def dense_conv(g: Table, r: Long, memory: Floats, weights: Floats) -> Any:
    """W ∗ x + b of all inputs."""
    like, pixels, into, bias = (
        zeros16(),
        g[r + AT.out_height] * g[r + AT.out_width],
        g[r + AT.out_pitch],
        g[r + AT.bias],
    )
    taps = g[r + AT.window_height] * g[r + AT.window_width]
    for lane in range(0, into, 16):
        for pixel in range(pixels):
            out = g[r + AT.out] + pixel * into + lane
            store(memory, out, begin(like, bias, lane, memory, weights, out))
    done = np.int64(0)
    while done < into:
        width = np.int64(64 if into - done >= 64 else 32 if into - done >= 32 else 16)
        base = g[r + AT.weights] + done * (taps * g[r + AT.pitch] + 1)
        for lane in range(0, width, 16):
            for tap in range(taps):
                ky, kx = tap // g[r + AT.window_width], tap % g[r + AT.window_width]
                at = base + width * tap * g[r + AT.pitch] + lane
                dense_tap(g, r, memory, weights, width, at, ky, kx, done + lane)
        done += width


@compiled
def reached(g: Table, r: Long, events: Ints) -> Any:
    """How many (event, output pixel) pairs there are."""
    seen, blocks, columns = np.int64(0), g[r + AT.pitch] // 16, g[r + AT.width]
    for y in range(g[r + AT.out_height]):
        for ky in range(g[r + AT.window_height]):
            row = y * g[r + AT.stride_y] - g[r + AT.top] + ky * g[r + AT.dilation_y]
            if 0 <= row < g[r + AT.height]:
                for x in range(g[r + AT.out_width]):
                    for kx in range(g[r + AT.window_width]):
                        column = x * g[r + AT.stride_x] - g[r + AT.left] + kx * g[r + AT.dilation_x]
                        if 0 <= column < columns:
                            at = g[r + AT.starts] + (row * columns + column) * blocks
                            seen += events[at + blocks] - events[at]
    return seen


@compiled
def sparse_row(
    width: Long,
    g: Table,
    r: Long,
    memory: Floats,
    weights: Floats,
    events: Ints,
    done: Long,
    y: Long,
) -> Any:
    """``sparse_pixels`` for a block of any width."""
    if width == 64:
        return sparse_pixels(zeros64(), width, g, r, memory, weights, events, done, y)
    if width == 32:
        return sparse_pixels(zeros32(), width, g, r, memory, weights, events, done, y)
    return sparse_pixels(zeros16(), width, g, r, memory, weights, events, done, y)


@compiled
def conv(g: Table, r: Long, memory: Floats, weights: Floats, events: Ints) -> Any:
    """W ∗ x + b, the faster way; the operations that events took, or would have."""
    if events[g[r + AT.counted]] > g[r + AT.dense_above]:
        dense_conv(g, r, memory, weights)
        return reached(g, r, events) * g[r + AT.outputs]
    done, seen = np.int64(0), np.int64(0)
    while done < g[r + AT.out_pitch]:
        left = g[r + AT.out_pitch] - done
        width = np.int64(64 if left >= 64 else 32 if left >= 32 else 16)
        seen = np.int64(0)
        for y in range(g[r + AT.out_height]):
            seen += sparse_row(width, g, r, memory, weights, events, done, y)
        done += width
    return seen * g[r + AT.outputs]
