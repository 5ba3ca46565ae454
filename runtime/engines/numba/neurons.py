"""Neurons and arithmetic over whole buffers, sixteen elements at a time, in exactly the order of the definitions.

A parameter repeats with a period: 16 for one number, the channels' pitch for one a channel, the size for one each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.events import append, close
from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import put
from axonnx.runtime.engines.numba.vectors import (
    LANES,
    absolute,
    add,
    at_least,
    load,
    mul,
    negative,
    ones_at_least,
    splat,
    store,
    sub,
    zeros16,
)
from axonnx.runtime.engines.table.rows import ADD, STATELESS, SUB, SUBTRACT, Fire, columns

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

AT = columns(Fire)


@inlined
def after_lanes(k: Long, period: Long) -> Any:
    """The next place in a parameter that repeats."""
    k += LANES
    return k if k < period else 0


@compiled
def fire(g: Table, r: Long, memory: Floats, constants: Floats, events: Ints, tables: Ints) -> Any:
    """LIF, LIFToZero or Heaviside; spikes are listed as they come. Their number."""
    like, count, kd, kt = zeros16(), np.int64(0), np.int64(0), np.int64(0)
    one = splat(like, np.float32(1.0))
    kind, size, listed, starts = g[r + AT.kind], g[r + AT.size], g[r + AT.listed], g[r + AT.starts]
    currents, membranes, fired = g[r + AT.current], g[r + AT.membrane], g[r + AT.spikes]
    next_membranes, next_spikes = g[r + AT.next_membrane], g[r + AT.next_spikes]
    decays, decay_period = g[r + AT.decay], g[r + AT.decay_period]
    thresholds, threshold_period = g[r + AT.threshold], g[r + AT.threshold_period]
    for i in range(0, size, LANES):
        current = load(like, memory, currents + i)
        threshold = load(like, constants, thresholds + kt)
        if kind == STATELESS:
            membrane = current
        else:
            decay = load(like, constants, decays + kd)
            membrane, spikes = load(like, memory, membranes + i), load(like, memory, fired + i)
            if kind == SUBTRACT:
                membrane = sub(add(mul(decay, membrane), current), mul(threshold, spikes))
            else:
                membrane = add(mul(decay, mul(membrane, sub(one, spikes))), current)
            store(memory, next_membranes + i, membrane)
            kd = after_lanes(kd, decay_period)
        store(memory, next_spikes + i, ones_at_least(membrane, threshold))
        put(events, starts + i // LANES, count)
        count = append(events, listed, count, tables, at_least(membrane, threshold), i)
        kt = after_lanes(kt, threshold_period)
    put(events, starts + size // LANES, count)
    close(events, listed + count, size)
    return count


@compiled
def fire_noisy(g: Table, r: Long, memory: Floats, constants: Floats, events: Ints, tables: Ints) -> Any:
    """StochasticLIF, StochasticLIFToZero or StochasticHeaviside; as ``fire``."""
    like, count = zeros16(), np.int64(0)
    kd, kt, kb = np.int64(0), np.int64(0), np.int64(0)
    one = splat(like, np.float32(1.0))
    kind, size, listed, starts = g[r + AT.kind], g[r + AT.size], g[r + AT.listed], g[r + AT.starts]
    for i in range(0, size, LANES):
        membrane, total = load(like, memory, g[r + AT.current] + i), load(like, memory, g[r + AT.arriving] + i)
        noise = load(like, memory, g[r + AT.noise] + i)
        threshold = load(like, constants, g[r + AT.threshold] + kt)
        if kind != STATELESS:
            decay = load(like, constants, g[r + AT.decay] + kd)
            before, variance = load(like, memory, g[r + AT.membrane] + i), load(like, memory, g[r + AT.variance] + i)
            spikes = load(like, memory, g[r + AT.spikes] + i)
            if kind == SUBTRACT:
                membrane = sub(add(mul(decay, before), membrane), mul(threshold, spikes))
            else:
                kept = sub(one, spikes)
                membrane = add(mul(decay, mul(before, kept)), membrane)
                variance = mul(variance, kept)
            total = add(mul(mul(decay, decay), variance), total)
            store(memory, g[r + AT.next_membrane] + i, membrane)
            store(memory, g[r + AT.next_variance] + i, total)
            total = add(total, load(like, constants, g[r + AT.base] + kb))
            kd, kb = after_lanes(kd, g[r + AT.decay_period]), after_lanes(kb, g[r + AT.base_period])
        gap = sub(membrane, threshold)
        needed = negative(mul(gap, absolute(gap)))
        push = mul(total, mul(noise, absolute(noise)))
        store(memory, g[r + AT.next_spikes] + i, ones_at_least(push, needed))
        put(events, starts + i // LANES, count)
        count = append(events, listed, count, tables, at_least(push, needed), i)
        kt = after_lanes(kt, g[r + AT.threshold_period])
    put(events, starts + size // LANES, count)
    close(events, listed + count, size)
    return count


@compiled
def leaky_sum(
    memory: Floats,
    constants: Floats,
    size: Long,
    current: Long,
    membrane: Long,
    total: Long,
    after: Long,
    sum_: Long,
    decay: Long,
    period: Long,
) -> Any:
    """h' = β h + I;   s' = s + h'"""
    like, k = zeros16(), 0
    for i in range(0, size, LANES):
        decayed = mul(load(like, constants, decay + k), load(like, memory, membrane + i))
        next_membrane = add(decayed, load(like, memory, current + i))
        store(memory, sum_ + i, add(load(like, memory, total + i), next_membrane))
        store(memory, after + i, next_membrane)
        k = after_lanes(k, period)


@compiled
def arithmetic(
    kind: Long,
    memory: Floats,
    out: Long,
    size: Long,
    a_in: Floats,
    a: Long,
    a_period: Long,
    b_in: Floats,
    b: Long,
    b_period: Long,
) -> Any:
    """a + b, a − b or a · b; either may repeat."""
    like, ka, kb = zeros16(), 0, 0
    for i in range(0, size, LANES):
        left, right = load(like, a_in, a + ka), load(like, b_in, b + kb)
        if kind == ADD:
            store(memory, out + i, add(left, right))
        elif kind == SUB:
            store(memory, out + i, sub(left, right))
        else:
            store(memory, out + i, mul(left, right))
        ka, kb = after_lanes(ka, a_period), after_lanes(kb, b_period)


@compiled
def recurrent_activity(memory: Floats, source: Long, out: Long, neurons: Long, size: Long) -> Any:
    """a_i = Σ_k x_k² − x_i²; exact, for x are spikes or counts. Zero beyond the neurons."""
    total = np.float32(0.0)
    for i in range(neurons):
        total += memory[source + i] * memory[source + i]
    for i in range(neurons):
        memory[out + i] = total - memory[source + i] * memory[source + i]
    for i in range(neurons, size):
        memory[out + i] = np.float32(0.0)


@compiled
def pool_pairs(memory: Floats, source: Long, out: Long, height: Long, width: Long, pitch: Long) -> Any:
    """((a + b) + (c + d)) · ¼ over squares of 2 × 2, for outputs of height × width."""
    like = zeros16()
    quarter = splat(like, np.float32(0.25))
    for y in range(height):
        for x in range(width):
            at = source + (2 * y * 2 * width + 2 * x) * pitch
            below = at + 2 * width * pitch
            for lane in range(0, pitch, LANES):
                top = add(load(like, memory, at + lane), load(like, memory, at + pitch + lane))
                bottom = add(load(like, memory, below + lane), load(like, memory, below + pitch + lane))
                store(memory, out + (y * width + x) * pitch + lane, mul(add(top, bottom), quarter))


@compiled
def max_pool(
    memory: Floats, source: Long, out: Long, height: Long, width: Long, pitch: Long, rows: Long, columns: Long
) -> Any:
    """The largest of each window of rows × columns, for outputs of height × width."""
    for y in range(height):
        for x in range(width):
            for lane in range(pitch):
                first = source + (y * rows * width * columns + x * columns) * pitch + lane
                largest = memory[first]
                for ky in range(rows):
                    for kx in range(columns):
                        value = memory[first + (ky * width * columns + kx) * pitch]
                        if value > largest:
                            largest = value
                memory[out + (y * width + x) * pitch + lane] = largest


@compiled
def average_pool(
    memory: Floats, source: Long, out: Long, height: Long, width: Long, pitch: Long, rows: Long, columns: Long
) -> Any:
    """Means over windows of rows × columns, for outputs of height × width."""
    like = zeros16()
    share = splat(like, np.float32(1.0 / (rows * columns)))
    for y in range(height):
        for x in range(width):
            for lane in range(0, pitch, LANES):
                total = zeros16()
                for ky in range(rows):
                    at = source + ((y * rows + ky) * width * columns + x * columns) * pitch + lane
                    for kx in range(columns):
                        total = add(total, load(like, memory, at + kx * pitch))
                store(memory, out + (y * width + x) * pitch + lane, mul(total, share))
