"""The compiled loop over samples, time steps and instructions: one call for a whole chunk.

A program is a table of integers, one row for each instruction, over a flat memory of floats (numba_plan makes both).
The same compiled code runs every network, so it is compiled once and then found on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime import numba_neurons as neurons
from axonnx.runtime.numba_compile import compiled
from axonnx.runtime.numba_conv import conv
from axonnx.runtime.numba_events import admitted, scan
from axonnx.runtime.numba_neurons import (
    arithmetic,
    average_pool,
    fire,
    fire_noisy,
    leaky_sum,
    pool_pairs,
    recurrent_activity,
)
from axonnx.runtime.numba_opcodes import (
    ACTIVITY,
    ARITHMETIC,
    AVERAGE_POOL,
    CONV,
    COPY,
    FIRE,
    FIRE_NOISY,
    LEAKY_SUM,
    LINEAR,
    LOAD,
    MOVE,
    POOL_PAIRS,
    ROW,
    SCAN,
)
from axonnx.runtime.numba_synapses import linear
from axonnx.runtime.numba_vectors import LANES, load, store, zeros16

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]


@compiled
def load_outside(g: Table, r: int, memory: Floats, outside: Floats, t: int, b: int) -> Any:
    """Bring one step's input or noise in: as it is, or from [C, H, W] to channels last."""
    start, channels, pixels, pitch, out = g[r, 1], g[r, 2], g[r, 3], g[r, 4], g[r, 5]
    if pitch == 1:
        at = (t * outside.shape[1] + b) * outside.shape[2] + start
        whole = pixels // LANES * LANES
        for p in range(0, whole, LANES):
            store(memory, out + p, load(zeros16(), outside, at + p))
        for p in range(whole, pixels):
            memory[out + p] = outside[t, b, start + p]
        return
    for c in range(channels):
        for p in range(pixels):
            memory[out + p * pitch + c] = outside[t, b, start + c * pixels + p]


@compiled
def move(g: Table, r: int, memory: Floats, tables: Ints) -> Any:
    """Gather by a table of addresses; −1 is zero."""
    table, size, out = g[r, 1], g[r, 2], g[r, 3]
    for i in range(size):
        source = tables[table + i]
        memory[out + i] = memory[source] if source >= 0 else np.float32(0.0)


@compiled
def copy_row(to: Floats, at: int, source: Floats, start: int, size: int) -> Any:
    """size floats from one memory to another."""
    for i in range(size):
        to[at + i] = source[start + i]


@compiled
def operate(g: Table, r: int, memory: Floats, constants: Floats) -> Any:
    """Element-wise arithmetic; each operand is in memory or among the constants."""
    kind, out, size = g[r, 1], g[r, 2], g[r, 3]
    if g[r, 4] and g[r, 7]:
        arithmetic(kind, memory, out, size, constants, g[r, 5], g[r, 6], constants, g[r, 8], g[r, 9])
    elif g[r, 4]:
        arithmetic(kind, memory, out, size, constants, g[r, 5], g[r, 6], memory, g[r, 8], g[r, 9])
    elif g[r, 7]:
        arithmetic(kind, memory, out, size, memory, g[r, 5], g[r, 6], constants, g[r, 8], g[r, 9])
    else:
        arithmetic(kind, memory, out, size, memory, g[r, 5], g[r, 6], memory, g[r, 8], g[r, 9])


@compiled
def rest(g: Table, r: int, memory: Floats, constants: Floats, tables: Ints, step: int) -> Any:
    """The instructions that no synapse and no spike is in."""
    op = g[r, 0]
    if op == ARITHMETIC:
        operate(g, r, memory, constants)
    elif op == MOVE:
        move(g, r, memory, tables)
    elif op == LEAKY_SUM:
        leaky_sum(memory, constants, g[r, 1], g[r, 2], g[r, 3], g[r, 4], g[r, 5], g[r, 6], g[r, 7], g[r, 8])
    elif op == POOL_PAIRS:
        pool_pairs(memory, g[r, 1], g[r, 2], g[r, 3], g[r, 4], g[r, 5])
    elif op == AVERAGE_POOL:
        average_pool(memory, g[r, 1], g[r, 2], g[r, 3], g[r, 4], g[r, 5], g[r, 6], g[r, 7])
    elif op == ACTIVITY:
        recurrent_activity(memory, g[r, 1], g[r, 2], g[r, 3], g[r, 4])
    elif op == ROW:
        copy_row(memory, g[r, 1], constants, g[r, 2] + step * g[r, 3], g[r, 3])
    elif op == COPY:
        copy_row(memory, g[r, 1], memory, g[r, 2], g[r, 3])


@compiled
def keep_trace(g: Table, r: int, memory: Floats, trace: Floats, t: int, b: int) -> Any:
    """What a layer did, for whoever wants to see it."""
    size = g[r, neurons.SIZE]
    for i in range(size):
        trace[t, b, g[r, 20] + i] = memory[g[r, neurons.NEXT_SPIKES] + i]
    if g[r, 21] >= 0:
        for i in range(size):
            trace[t, b, g[r, 21] + i] = memory[g[r, neurons.NEXT_MEMBRANE] + i]


@compiled
def run(
    g: Table,
    at_start: Table,
    memory: Floats,
    constants: Floats,
    events: Ints,
    tables: Ints,
    outside: Floats,
    state: Floats,
    counts: Table,
    trace: Floats,
    limits: NDArray[np.float64],
    step: int,
    low: int,
    high: int,
) -> Any:
    """Carry the states of samples low … high − 1 through all steps of ``outside``; the first sample refused, or −1."""
    kept = state.shape[1]
    for b in range(low, high):
        for i in range(kept):
            memory[i] = state[b, i]
        for i in range(at_start.shape[0]):
            scan(memory, at_start[i, 1], at_start[i, 2], events, at_start[i, 3], at_start[i, 4], tables)
        for t in range(outside.shape[0]):
            for r in range(g.shape[0]):
                op = g[r, 0]
                if op == LINEAR:
                    count = np.int64(events[g[r, 10]])
                    linear(g, r, memory, constants, events, count)
                    counts[b, r] += count * g[r, 11]
                elif op == CONV:
                    dense = events[g[r, 23]] > g[r, 24]
                    counts[b, r] += conv(g, r, memory, constants, events, dense) * g[r, 25]
                elif op == FIRE:
                    counts[b, r] += fire(g, r, memory, constants, events, tables)
                elif op == FIRE_NOISY:
                    counts[b, r] += fire_noisy(g, r, memory, constants, events, tables)
                elif op == LOAD:
                    load_outside(g, r, memory, outside, t, b)
                elif op == SCAN:
                    count = scan(memory, g[r, 1], g[r, 2], events, g[r, 3], g[r, 4], tables)
                    if g[r, 5] and not admitted(memory, g[r, 1], events, g[r, 3], count, limits[0], limits[1]):
                        return b
                else:
                    rest(g, r, memory, constants, tables, step + t)
                if trace.shape[0] > 0 and FIRE <= op <= FIRE_NOISY:
                    keep_trace(g, r, memory, trace, t, b)
        for i in range(kept):
            state[b, i] = memory[i]
    return -1
