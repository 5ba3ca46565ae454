"""The compiled loop over samples, time steps and instructions: one call for a whole chunk.

A program is a table of integers, one row for each instruction, over a flat memory of floats (plan.py makes both).
Networks are data to the compiled code. It is compiled in up to three forms, with the kinds of rows that dense networks
have, those with convolutions, and all: the first network of a kind waits for it, the next finds it on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.conv import conv
from axonnx.runtime.engines.numba.events import scan, scan_input
from axonnx.runtime.engines.numba.general import fire_general, leaky_current
from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import floats_at, ints_at, longs_at
from axonnx.runtime.engines.numba.neurons import (
    arithmetic,
    average_pool,
    fire,
    fire_noisy,
    leaky_sum,
    max_pool,
    pool_pairs,
    recurrent_activity,
)
from axonnx.runtime.engines.numba.synapses import linear
from axonnx.runtime.engines.numba.vectors import LANES, load, store, zeros16
from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.rows import (
    ACTIVITY,
    ARITHMETIC,
    AVERAGE_POOL,
    COLUMNS,
    CONV,
    COPY,
    FIRE,
    FIRE_GENERAL,
    FIRE_NOISY,
    LEAKY_CURRENT,
    LEAKY_SUM,
    LINEAR,
    LOAD,
    MAX_POOL,
    MOVE,
    POOL_PAIRS,
    ROW,
    SCAN,
    SCAN_INPUT,
    columns,
)

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

LOAD_AT, SCAN_AT, SCAN_INPUT_AT = columns(kinds.Load), columns(kinds.Scan), columns(kinds.ScanInput)
FIRE_AT, LEAKY_SUM_AT, ARITHMETIC_AT = columns(kinds.Fire), columns(kinds.LeakySum), columns(kinds.Arithmetic)
MOVE_AT, ACTIVITY_AT, POOL_PAIRS_AT = columns(kinds.Move), columns(kinds.Activity), columns(kinds.PoolPairs)
GENERAL_AT, LEAKY_CURRENT_AT = columns(kinds.General), columns(kinds.LeakyCurrent)
WINDOW_POOL_AT, ROW_AT, COPY_AT = columns(kinds.WindowPool), columns(kinds.StepRow), columns(kinds.Copy)


@compiled
def load_outside(g: Table, r: Long, memory: Floats, outside: Floats, begin: Long) -> Any:
    """Bring one step's input or noise in: as it is, or from [C, H, W] to channels last."""
    at, out = begin + g[r + LOAD_AT.at], g[r + LOAD_AT.out]
    channels, pixels, pitch = g[r + LOAD_AT.channels], g[r + LOAD_AT.pixels], g[r + LOAD_AT.pitch]
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
    table, size, out = g[r + MOVE_AT.table], g[r + MOVE_AT.size], g[r + MOVE_AT.out]
    for i in range(size):
        source = tables[table + i]
        memory[out + i] = memory[source] if source >= 0 else np.float32(0.0)


@compiled
def copy_row(to: Floats, at: Long, source: Floats, start: Long, size: Long) -> Any:
    """size floats, a multiple of sixteen, from one memory to another."""
    for i in range(0, size, LANES):
        store(to, at + i, load(zeros16(), source, start + i))


@compiled
def list_events(g: Table, r: Long, memory: Floats, events: Ints, tables: Ints) -> Any:
    """``scan`` of one row."""
    scan(
        memory, g[r + SCAN_AT.source], g[r + SCAN_AT.size], events, g[r + SCAN_AT.listed], g[r + SCAN_AT.starts], tables
    )


@compiled
def list_input(g: Table, r: Long, memory: Floats, events: Ints, tables: Ints, scale: Long, largest: Long) -> Any:
    """``scan_input`` of one row."""
    source, size = g[r + SCAN_INPUT_AT.source], g[r + SCAN_INPUT_AT.size]
    listed, starts = g[r + SCAN_INPUT_AT.listed], g[r + SCAN_INPUT_AT.starts]
    return scan_input(memory, source, size, events, listed, starts, tables, scale, largest)


@compiled
def sum_up(g: Table, r: Long, memory: Floats, constants: Floats) -> Any:
    """``leaky_sum`` of one row."""
    size, current, membrane, total = (
        g[r + LEAKY_SUM_AT.size],
        g[r + LEAKY_SUM_AT.current],
        g[r + LEAKY_SUM_AT.membrane],
        g[r + LEAKY_SUM_AT.total],
    )
    after, sum_ = g[r + LEAKY_SUM_AT.next_membrane], g[r + LEAKY_SUM_AT.next_total]
    decay, period = g[r + LEAKY_SUM_AT.decay], g[r + LEAKY_SUM_AT.decay_period]
    leaky_sum(memory, constants, size, current, membrane, total, after, sum_, decay, period)


@compiled
def charge_synapses(g: Table, r: Long, memory: Floats, constants: Floats) -> Any:
    """``leaky_current`` of one row."""
    size, current = g[r + LEAKY_CURRENT_AT.size], g[r + LEAKY_CURRENT_AT.current]
    synaptic, after = g[r + LEAKY_CURRENT_AT.synaptic], g[r + LEAKY_CURRENT_AT.next_synaptic]
    decay, period = g[r + LEAKY_CURRENT_AT.decay], g[r + LEAKY_CURRENT_AT.decay_period]
    leaky_current(memory, constants, size, current, synaptic, after, decay, period)


@compiled
def pool_squares(g: Table, r: Long, memory: Floats) -> Any:
    """``pool_pairs`` of one row."""
    source, out = g[r + POOL_PAIRS_AT.source], g[r + POOL_PAIRS_AT.out]
    pool_pairs(memory, source, out, g[r + POOL_PAIRS_AT.height], g[r + POOL_PAIRS_AT.width], g[r + POOL_PAIRS_AT.pitch])


@compiled
def pool_windows(g: Table, r: Long, memory: Floats) -> Any:
    """``average_pool`` or ``max_pool`` of one row."""
    source, out, pitch = g[r + WINDOW_POOL_AT.source], g[r + WINDOW_POOL_AT.out], g[r + WINDOW_POOL_AT.pitch]
    height, width = g[r + WINDOW_POOL_AT.height], g[r + WINDOW_POOL_AT.width]
    rows, columns_ = g[r + WINDOW_POOL_AT.rows], g[r + WINDOW_POOL_AT.columns]
    if g[r] == MAX_POOL:
        max_pool(memory, source, out, height, width, pitch, rows, columns_)
    else:
        average_pool(memory, source, out, height, width, pitch, rows, columns_)


@compiled
def operate(g: Table, r: Long, memory: Floats, constants: Floats) -> Any:
    """Element-wise arithmetic; each operand is in memory or among the constants."""
    kind, out, size = g[r + ARITHMETIC_AT.kind], g[r + ARITHMETIC_AT.out], g[r + ARITHMETIC_AT.size]
    a_constant, a, a_period = g[r + ARITHMETIC_AT.a_constant], g[r + ARITHMETIC_AT.a], g[r + ARITHMETIC_AT.a_period]
    b_constant, b, b_period = g[r + ARITHMETIC_AT.b_constant], g[r + ARITHMETIC_AT.b], g[r + ARITHMETIC_AT.b_period]
    if a_constant and b_constant:
        arithmetic(kind, memory, out, size, constants, a, a_period, constants, b, b_period)
    elif a_constant:
        arithmetic(kind, memory, out, size, constants, a, a_period, memory, b, b_period)
    elif b_constant:
        arithmetic(kind, memory, out, size, memory, a, a_period, constants, b, b_period)
    else:
        arithmetic(kind, memory, out, size, memory, a, a_period, memory, b, b_period)


@compiled
def rest(g: Table, r: Long, memory: Floats, constants: Floats, tables: Ints, step: Long) -> Any:
    """Instructions other than synapses and neurons."""
    op = g[r]
    if op == ARITHMETIC:
        operate(g, r, memory, constants)
    elif op == MOVE:
        move(g, r, memory, tables)
    elif op == LEAKY_SUM:
        sum_up(g, r, memory, constants)
    elif op == LEAKY_CURRENT:
        charge_synapses(g, r, memory, constants)
    elif op == POOL_PAIRS:
        pool_squares(g, r, memory)
    elif op in (AVERAGE_POOL, MAX_POOL):
        pool_windows(g, r, memory)
    elif op == ACTIVITY:
        recurrent_activity(
            memory,
            g[r + ACTIVITY_AT.source],
            g[r + ACTIVITY_AT.out],
            g[r + ACTIVITY_AT.neurons],
            g[r + ACTIVITY_AT.size],
        )
    elif op == ROW:
        size = g[r + ROW_AT.size]
        copy_row(memory, g[r + ROW_AT.out], constants, g[r + ROW_AT.table] + step * size, size)
    elif op == COPY:
        copy_row(memory, g[r + COPY_AT.out], memory, g[r + COPY_AT.source], g[r + COPY_AT.size])


@compiled
def keep_trace(g: Table, r: Long, memory: Floats, trace: Floats, begin: Long) -> Any:
    """Copy a layer's spikes and membranes to the trace."""
    if g[r] == FIRE_GENERAL:
        size = g[r + GENERAL_AT.size]
        copy_row(trace, begin + g[r + GENERAL_AT.trace_spikes], memory, g[r + GENERAL_AT.next_spikes], size)
        copy_row(trace, begin + g[r + GENERAL_AT.trace_membrane], memory, g[r + GENERAL_AT.next_membrane], size)
        return
    size = g[r + FIRE_AT.size]
    copy_row(trace, begin + g[r + FIRE_AT.trace_spikes], memory, g[r + FIRE_AT.next_spikes], size)
    if g[r + FIRE_AT.trace_membrane] >= 0:
        copy_row(trace, begin + g[r + FIRE_AT.trace_membrane], memory, g[r + FIRE_AT.next_membrane], size)


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
            list_events(g, r, memory, events, tables)
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
                elif op == FIRE_GENERAL:
                    count = fire_general(g, r, memory, constants, events, tables)
                elif op == LOAD:
                    load_outside(g, r, memory, outside, sample * entering)
                elif op == SCAN:
                    list_events(g, r, memory, events, tables)
                elif op == SCAN_INPUT:
                    plain = list_input(g, r, memory, events, tables, fixed[SCALE], fixed[LARGEST])
                    if plain < 0:
                        return b
                    events[g[r + SCAN_INPUT_AT.plain]] = plain
                else:
                    rest(g, r, memory, constants, tables, step + t)
                counts[b, row] += count
                if traced > 0 and FIRE <= op <= FIRE_GENERAL:
                    keep_trace(g, r, memory, trace, sample * traced)
        if not resident:
            copy_row(state, b * kept, memory, np.int64(0), kept)
    return -1


# Who takes which rows: in ``run``, and in ``rest``.
MAIN = {LINEAR: "linear", CONV: "conv", FIRE: "fire", FIRE_NOISY: "fire_noisy", FIRE_GENERAL: "fire_general"}
OTHERS = {
    ARITHMETIC: "operate",
    MOVE: "move",
    LEAKY_SUM: "sum_up",
    LEAKY_CURRENT: "charge_synapses",
    POOL_PAIRS: "pool_squares",
    AVERAGE_POOL: "pool_windows",
    MAX_POOL: "pool_windows",
    ACTIVITY: "recurrent_activity",
}


@inlined
def nothing(*_: Any) -> Any:
    """In place of a kernel that no row asks for."""
    return np.int64(0)


DENSE = frozenset({LINEAR, FIRE, LEAKY_SUM, ARITHMETIC, MOVE})
IMAGES = DENSE | {CONV, POOL_PAIRS, AVERAGE_POOL, MAX_POOL}


def run_for(codes: frozenset[int]) -> Callable[..., Any]:
    """``run`` for rows of these kinds: for dense networks, for convolutions too, or for everything."""
    asked = codes & {*MAIN, *OTHERS}
    return _run_with("_dense", DENSE) if asked <= DENSE else _run_with("_images", IMAGES) if asked <= IMAGES else run


@cache
def _run_with(name: str, codes: frozenset[int]) -> Callable[..., Any]:
    return _with(run, name, MAIN, codes, {"rest": _with(rest, name, OTHERS, codes, {})})


def _with(
    function: Any, name: str, kernels: dict[int, str], codes: frozenset[int], more: dict[str, Any]
) -> Callable[..., Any]:
    """A compiled function once more, under another name and with only the kernels that are needed."""
    plain = function.py_func
    needed = {kernel for code, kernel in kernels.items() if code in codes}
    left_out = {kernel: nothing for kernel in kernels.values() if kernel not in needed}
    code = plain.__code__.replace(co_name=plain.__name__ + name, co_qualname=plain.__qualname__ + name)
    return compiled(FunctionType(code, {**plain.__globals__, **left_out, **more}))
