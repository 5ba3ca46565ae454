"""The compiled loop over samples, time steps and instructions: one call for a whole chunk.

A program is a table of integers, one row for each instruction, over a flat memory of floats (numba_plan makes both).
The same compiled code runs every network, so it is compiled once and then found on disk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba import neurons
from axonnx.runtime.engines.numba.conv import conv
from axonnx.runtime.engines.numba.events import scan, scan_input
from axonnx.runtime.engines.numba.jit import Long, compiled
from axonnx.runtime.engines.numba.lists import floats_at, ints_at, longs_at
from axonnx.runtime.engines.numba.neurons import (
    arithmetic,
    average_pool,
    fire,
    fire_noisy,
    leaky_sum,
    pool_pairs,
    recurrent_activity,
)
from axonnx.runtime.engines.numba.opcodes import (
    ACTIVITY,
    ARITHMETIC,
    AVERAGE_POOL,
    COLUMNS,
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
    SCAN_INPUT,
)
from axonnx.runtime.engines.numba.synapses import linear
from axonnx.runtime.engines.numba.vectors import LANES, load, store, zeros16

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]


@compiled
def load_outside(g: Table, r: Long, memory: Floats, outside: Floats, begin: Long) -> Any:
    """Bring one step's input or noise in: as it is, or from [C, H, W] to channels last."""
    at, channels, pixels, pitch, out = begin + g[r + 1], g[r + 2], g[r + 3], g[r + 4], g[r + 5]
    if pitch == 1:
        whole = pixels // LANES * LANES
        for p in range(0, whole, LANES):
            store(memory, out + p, load(zeros16(), outside, at + p))
        for p in range(whole, pixels):
            memory[out + p] = outside[at + p]
        return
    for c in range(channels):
        for p in range(pixels):
            memory[out + p * pitch + c] = outside[at + c * pixels + p]


@compiled
def move(g: Table, r: Long, memory: Floats, tables: Ints) -> Any:
    """Gather by a table of addresses; −1 is zero."""
    table, size, out = g[r + 1], g[r + 2], g[r + 3]
    for i in range(size):
        source = tables[table + i]
        memory[out + i] = memory[source] if source >= 0 else np.float32(0.0)


@compiled
def copy_row(to: Floats, at: Long, source: Floats, start: Long, size: Long) -> Any:
    """size floats, a multiple of sixteen, from one memory to another."""
    for i in range(0, size, LANES):
        store(to, at + i, load(zeros16(), source, start + i))


@compiled
def operate(g: Table, r: Long, memory: Floats, constants: Floats) -> Any:
    """Element-wise arithmetic; each operand is in memory or among the constants."""
    kind, out, size = g[r + 1], g[r + 2], g[r + 3]
    if g[r + 4] and g[r + 7]:
        arithmetic(kind, memory, out, size, constants, g[r + 5], g[r + 6], constants, g[r + 8], g[r + 9])
    elif g[r + 4]:
        arithmetic(kind, memory, out, size, constants, g[r + 5], g[r + 6], memory, g[r + 8], g[r + 9])
    elif g[r + 7]:
        arithmetic(kind, memory, out, size, memory, g[r + 5], g[r + 6], constants, g[r + 8], g[r + 9])
    else:
        arithmetic(kind, memory, out, size, memory, g[r + 5], g[r + 6], memory, g[r + 8], g[r + 9])


@compiled
def rest(g: Table, r: Long, memory: Floats, constants: Floats, tables: Ints, step: Long) -> Any:
    """Instructions other than synapses and neurons."""
    op = g[r + 0]
    if op == ARITHMETIC:
        operate(g, r, memory, constants)
    elif op == MOVE:
        move(g, r, memory, tables)
    elif op == LEAKY_SUM:
        leaky_sum(memory, constants, g[r + 1], g[r + 2], g[r + 3], g[r + 4], g[r + 5], g[r + 6], g[r + 7], g[r + 8])
    elif op == POOL_PAIRS:
        pool_pairs(memory, g[r + 1], g[r + 2], g[r + 3], g[r + 4], g[r + 5])
    elif op == AVERAGE_POOL:
        average_pool(memory, g[r + 1], g[r + 2], g[r + 3], g[r + 4], g[r + 5], g[r + 6], g[r + 7])
    elif op == ACTIVITY:
        recurrent_activity(memory, g[r + 1], g[r + 2], g[r + 3], g[r + 4])
    elif op == ROW:
        copy_row(memory, g[r + 1], constants, g[r + 2] + step * g[r + 3], g[r + 3])
    elif op == COPY:
        copy_row(memory, g[r + 1], memory, g[r + 2], g[r + 3])


@compiled
def keep_trace(g: Table, r: Long, memory: Floats, trace: Floats, begin: Long) -> Any:
    """Copy a layer's spikes and membranes to the trace."""
    size = g[r + neurons.SIZE]
    copy_row(trace, begin + g[r + neurons.TRACE_SPIKES], memory, g[r + neurons.NEXT_SPIKES], size)
    if g[r + neurons.TRACE_MEMBRANE] >= 0:
        copy_row(trace, begin + g[r + neurons.TRACE_MEMBRANE], memory, g[r + neurons.NEXT_MEMBRANE], size)


# What is the same in every call of one thread: addresses and sizes, the first row of a step, limits of the input.
TABLE, ROWS, MEMORY, MEMORY_SIZE, CONSTANTS, CONSTANTS_SIZE, EVENTS, EVENTS_SIZE, TABLES, TABLES_SIZE = range(10)
AT_START, SCALE, LARGEST, FIXED = range(10, 14)


@compiled
def run(
    fixed: Table,
    outside: Floats,
    state: Floats,
    counts: Table,
    trace: Floats,
    steps: Long,
    step: Long,
    low: Long,
    high: Long,
    resident: Long,
) -> Any:
    """Carry the states of samples low … high − 1 through all steps; the first sample refused, or −1.

    Of one call are outside (flat, of [T, B, …]), state [B, kept], counts [B, rows] and trace (flat, of [T, B, …], or
    empty); the rest is handed over by address, for every array that numba is given costs time at each call.
    A ``resident`` state is in memory already, with its events listed, and stays there.
    """
    g, rows = longs_at(fixed[TABLE], fixed[ROWS] * COLUMNS), fixed[ROWS]
    memory = floats_at(fixed[MEMORY], fixed[MEMORY_SIZE])
    constants = floats_at(fixed[CONSTANTS], fixed[CONSTANTS_SIZE])
    events, tables = ints_at(fixed[EVENTS], fixed[EVENTS_SIZE]), ints_at(fixed[TABLES], fixed[TABLES_SIZE])
    batch, kept, at_start = state.shape[0], state.shape[1], fixed[AT_START]
    frames = max(steps * batch, 1)
    entering, traced = outside.size // frames, trace.size // frames
    for b in range(low, high):
        if not resident:
            copy_row(memory, np.int64(0), state, b * kept, kept)
        for r in range(0, 0 if resident else at_start * COLUMNS, COLUMNS):
            scan(memory, g[r + 1], g[r + 2], events, g[r + 3], g[r + 4], tables)
        for t in range(steps):
            sample = t * batch + b
            for row in range(at_start, rows):
                r = row * COLUMNS
                op, count = g[r], np.int64(0)
                if op == LINEAR:
                    count = linear(g, r, memory, constants, events)
                elif op == CONV:
                    count = conv(g, r, memory, constants, events)
                elif op == FIRE:
                    count = fire(g, r, memory, constants, events, tables)
                elif op == FIRE_NOISY:
                    count = fire_noisy(g, r, memory, constants, events, tables)
                elif op == LOAD:
                    load_outside(g, r, memory, outside, sample * entering)
                elif op == SCAN:
                    scan(memory, g[r + 1], g[r + 2], events, g[r + 3], g[r + 4], tables)
                elif op == SCAN_INPUT:
                    at, size, listed, starts = g[r + 1], g[r + 2], g[r + 3], g[r + 4]
                    plain = scan_input(memory, at, size, events, listed, starts, tables, fixed[SCALE], fixed[LARGEST])
                    if plain < 0:
                        return b
                    events[g[r + 5]] = plain
                else:
                    rest(g, r, memory, constants, tables, step + t)
                counts[b, row] += count
                if traced > 0 and FIRE <= op <= FIRE_NOISY:
                    keep_trace(g, r, memory, trace, sample * traced)
        if not resident:
            copy_row(state, b * kept, memory, np.int64(0), kept)
    return -1
