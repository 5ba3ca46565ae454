"""Neurons of every reset and with adaptation, sixteen at a time, in exactly the order of the definitions.

Their constants stand one after another, in the order of the operator's inputs, and repeat together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numba.events import append, close
from axonnx.runtime.engines.numba.jit import Long, compiled, inlined
from axonnx.runtime.engines.numba.lists import put
from axonnx.runtime.engines.numba.neurons import after_lanes
from axonnx.runtime.engines.numba.vectors import (
    LANES,
    add,
    at_least,
    load,
    mul,
    ones_at_least,
    splat,
    store,
    sub,
    zeros16,
)
from axonnx.runtime.engines.table.rows import ADAPTIVE, General, columns

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Table = NDArray[np.int64]

AT = columns(General)
DECAY, THRESHOLD, ZEROED, TAKEN, LATE_ZEROED, LATE_TAKEN = range(6)
ADAPTATION_DECAY, MEMBRANE_SHARE, SPIKE_SHARE, CURRENT_GAIN, THRESHOLD_GAIN = range(6, 11)


@inlined
def _adapted(constants: Floats, at: Long, period: Long, adaptation: Any, membrane: Any, spikes: Any) -> Any:
    """a' = δ a + c h + b o"""
    like = zeros16()
    remembered = mul(load(like, constants, at + ADAPTATION_DECAY * period), adaptation)
    raised = add(remembered, mul(load(like, constants, at + MEMBRANE_SHARE * period), membrane))
    return add(raised, mul(load(like, constants, at + SPIKE_SHARE * period), spikes))


@inlined
def _charged(constants: Floats, at: Long, period: Long, current: Any, membrane: Any, spikes: Any) -> Any:
    """β (h (1 − z o) − r o) + I"""
    like = zeros16()
    one = splat(like, np.float32(1.0))
    kept = mul(membrane, sub(one, mul(load(like, constants, at + ZEROED * period), spikes)))
    left = sub(kept, mul(load(like, constants, at + TAKEN * period), spikes))
    return add(mul(load(like, constants, at + DECAY * period), left), current)


@inlined
def _reset_late(constants: Floats, at: Long, period: Long, charged: Any, spikes: Any) -> Any:
    """x (1 − Z o) − R o"""
    like = zeros16()
    one = splat(like, np.float32(1.0))
    remaining = mul(charged, sub(one, mul(load(like, constants, at + LATE_ZEROED * period), spikes)))
    return sub(remaining, mul(load(like, constants, at + LATE_TAKEN * period), spikes))


@compiled
def fire_general(g: Table, r: Long, memory: Floats, constants: Floats, events: Ints, tables: Ints) -> Any:
    """GeneralLIF or AdaptiveLIF; spikes are listed as they come. Their number."""
    like, count, k = zeros16(), np.int64(0), np.int64(0)
    kind, size, listed, starts = g[r + AT.kind], g[r + AT.size], g[r + AT.listed], g[r + AT.starts]
    first, period = g[r + AT.constants], g[r + AT.period]
    for i in range(0, size, LANES):
        at = first + k
        before, spikes = load(like, memory, g[r + AT.membrane] + i), load(like, memory, g[r + AT.spikes] + i)
        current = load(like, memory, g[r + AT.current] + i)
        membrane = _charged(constants, at, period, current, before, spikes)
        level = load(like, constants, at + THRESHOLD * period)
        if kind == ADAPTIVE:
            adapted = load(like, memory, g[r + AT.adaptation] + i)
            adapted = _adapted(constants, at, period, adapted, before, spikes)
            membrane = sub(membrane, mul(load(like, constants, at + CURRENT_GAIN * period), adapted))
            level = add(level, mul(load(like, constants, at + THRESHOLD_GAIN * period), adapted))
            store(memory, g[r + AT.next_adaptation] + i, adapted)
        membrane = _reset_late(constants, at, period, membrane, spikes)
        store(memory, g[r + AT.next_membrane] + i, membrane)
        store(memory, g[r + AT.next_spikes] + i, ones_at_least(membrane, level))
        put(events, starts + i // LANES, count)
        count = append(events, listed, count, tables, at_least(membrane, level), i)
        k = after_lanes(k, period)
    put(events, starts + size // LANES, count)
    close(events, listed + count, size)
    return count


@compiled
def leaky_current(
    memory: Floats, constants: Floats, size: Long, current: Long, synaptic: Long, after: Long, decay: Long, period: Long
) -> Any:
    """i' = α i + I"""
    like, k = zeros16(), np.int64(0)
    for i in range(0, size, LANES):
        decayed = mul(load(like, constants, decay + k), load(like, memory, synaptic + i))
        store(memory, after + i, add(decayed, load(like, memory, current + i)))
        k = after_lanes(k, period)
