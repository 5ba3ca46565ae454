"""Every place that a compiled kernel will touch, checked once, before the first call: kernels look at no bounds.

Each instruction's row says where it reads and writes. Here it is worked out how far that reaches, row by row, from
the same named columns that the kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.table import rows as kinds
from axonnx.runtime.engines.table.layout import LANES
from axonnx.runtime.engines.table.narrow import BYTES, FINEST_UNIT, FLOATS, SHORTS

ADDRESSES = 2**31  # event lists and tables hold integers of 32 bits


class Reach(NamedTuple):
    """So many elements of a pool from ``begin`` on."""

    pool: str
    begin: int
    size: int


@dataclass(frozen=True)
class Pools:
    """How many elements each pool has; ``steps`` rows of tables that follow the clock."""

    memory: int
    constants: int
    events: int
    tables: int
    outside: int
    trace: int
    steps: int


def check_rows(rows: Sequence[tuple[int, ...]], pools: Pools, tables: NDArray[np.int32], where: str) -> None:
    """Refuse a program whose rows are not as wide as their kernels read, or reach beyond a pool."""
    for size in (pools.memory, pools.events, pools.tables, pools.constants):
        if size >= ADDRESSES:
            raise AxonnxError(f"{where}: its buffers or weights hold {size} numbers; less than 2³¹ can be addressed")
    for number, row in enumerate(rows):
        kind = kinds.KINDS[row[0]]
        if len(row) != len(kind._fields) or len(row) > kinds.COLUMNS:
            raise _fault(where, number, row, f"{len(row)} numbers wide; expected {len(kind._fields)}")
        named = kind(*row)
        for pool, begin, size in REACHES[kind](named, pools):
            if begin < 0 or size < 0 or begin + size > getattr(pools, pool):
                reach = f"reaches {pool} {begin} … {begin + size} of {getattr(pools, pool)}"
                raise _fault(where, number, row, reach)
        if isinstance(named, kinds.Move):
            sources = tables[named.table : named.table + named.size]
            furthest = int(sources.max(initial=-1)) + named.shift
            if sources.min(initial=-1) < -1 or named.shift < 0 or furthest >= pools.memory:
                raise _fault(where, number, row, "gathers from beyond its memory")


def _fault(where: str, number: int, row: tuple[int, ...], text: str) -> AxonnxError:
    return AxonnxError(
        f"{where}: instruction {number} of the compiled program (code {row[0]}) is or does too much: {text}"
    )


def _load(row: kinds.Load, pools: Pools) -> Iterator[Reach]:
    yield Reach("outside", row.at, row.channels * row.pixels)
    strided = (row.pixels - 1) * row.pitch + row.channels
    yield Reach("memory", row.out, row.pixels if row.pitch == 1 else strided)


def _events(listed: int, starts: int, size: int) -> Iterator[Reach]:
    """A list of so many at most, written eight and read sixteen at a time, and its counts."""
    yield Reach("events", listed, size + LANES)
    yield Reach("events", starts, size // LANES + 1)


def _scan(row: kinds.Scan | kinds.ScanInput, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.source, row.size)
    yield from _events(row.listed, row.starts, row.size)
    if isinstance(row, kinds.ScanInput):
        yield Reach("events", row.plain, 1)


def _begin(bias: int, size: int) -> Iterator[Reach]:
    if bias >= 0:
        yield Reach("constants", bias, size)


def _stored(row: kinds.Linear | kinds.Conv) -> Iterator[Reach]:
    """Integer weights lie where floats do, in pools as long; their unit is a float."""
    if row.stored not in (FLOATS, SHORTS, BYTES) or not 0 <= row.unit <= FINEST_UNIT:
        yield Reach("constants", row.weights, ADDRESSES)


def _linear(row: kinds.Linear, pools: Pools) -> Iterator[Reach]:
    inputs, size = row.inputs - 1, row.size
    yield Reach("memory", row.source, inputs)
    yield Reach("memory", row.out, size)
    yield from _events(row.listed, row.starts, inputs)
    yield Reach("constants", row.weights, (inputs + 1) * size)
    yield from _stored(row)
    yield from _begin(row.bias, size)
    for place in (row.counted, row.plain):
        yield Reach("events", place, 1)


def _conv(row: kinds.Conv, pools: Pools) -> Iterator[Reach]:
    size = row.height * row.width * row.pitch
    window = row.window_height * row.window_width * row.pitch
    yield Reach("memory", row.source, size)
    yield Reach("memory", row.out, row.out_height * row.out_width * row.out_pitch)
    yield Reach("memory", row.zeros, row.pitch)
    yield from _events(row.listed, row.starts, size)
    yield Reach("constants", row.weights, (window + 1) * row.out_pitch)
    yield from _stored(row)
    yield from _begin(row.bias, row.out_pitch)
    for place in (row.rows, row.inputs):
        yield Reach("events", place, window + LANES)
    for place in (row.counted, row.plain):
        yield Reach("events", place, 1)
    for number in (row.stride_y, row.stride_x, row.top, row.left, row.dilation_y, row.dilation_x):
        if not 0 <= number < ADDRESSES:  # products with sizes stay within 64 bits
            yield Reach("memory", 0, number if number < 0 else ADDRESSES)


def _fire(row: kinds.Fire, pools: Pools) -> Iterator[Reach]:
    places, constants = [row.current, row.next_spikes], [(row.threshold, row.threshold_period)]
    if row.kind != kinds.STATELESS:
        places += [row.membrane, row.spikes, row.next_membrane]
        constants += [(row.decay, row.decay_period)]
    if row.code == kinds.FIRE_NOISY:
        places += [row.arriving, row.noise]
        places += [row.variance, row.next_variance] if row.kind != kinds.STATELESS else []
        constants += [(row.base, row.base_period)] if row.kind != kinds.STATELESS else []
    yield from (Reach("memory", place, row.size) for place in places)
    yield from (Reach("constants", place, period) for place, period in constants)
    yield from _events(row.listed, row.starts, row.size)
    for place in (row.trace_spikes, row.trace_membrane):
        if place >= 0:
            yield Reach("trace", place, row.size)


def _general(row: kinds.General, pools: Pools) -> Iterator[Reach]:
    places, numbers = [row.current, row.membrane, row.spikes, row.next_membrane, row.next_spikes], kinds.CONSTANTS
    if row.kind == kinds.ADAPTIVE:
        places, numbers = [*places, row.adaptation, row.next_adaptation], kinds.CONSTANTS + kinds.ADAPTIVE_CONSTANTS
    yield from (Reach("memory", place, row.size) for place in places)
    yield Reach("constants", row.constants, numbers * row.period)
    yield from _events(row.listed, row.starts, row.size)
    for place in (row.trace_spikes, row.trace_membrane):
        yield Reach("trace", place, row.size)


def _leaky_current(row: kinds.LeakyCurrent, pools: Pools) -> Iterator[Reach]:
    for place in (row.current, row.synaptic, row.next_synaptic):
        yield Reach("memory", place, row.size)
    yield Reach("constants", row.decay, row.decay_period)


def _leaky_sum(row: kinds.LeakySum, pools: Pools) -> Iterator[Reach]:
    for place in (row.current, row.membrane, row.total, row.next_membrane, row.next_total):
        yield Reach("memory", place, row.size)
    yield Reach("constants", row.decay, row.decay_period)


def _arithmetic(row: kinds.Arithmetic, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.out, row.size)
    yield Reach("constants" if row.a_constant else "memory", row.a, row.a_period)
    yield Reach("constants" if row.b_constant else "memory", row.b, row.b_period)


def _pool(row: kinds.PoolPairs | kinds.WindowPool, pools: Pools) -> Iterator[Reach]:
    window = row.rows * row.columns if isinstance(row, kinds.WindowPool) else 2 * 2
    yield Reach("memory", row.source, row.height * row.width * window * row.pitch)
    yield Reach("memory", row.out, row.height * row.width * row.pitch)


def _activity(row: kinds.Activity, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.source, row.neurons)
    yield Reach("memory", row.out, row.size)


def _move(row: kinds.Move, pools: Pools) -> Iterator[Reach]:
    yield Reach("tables", row.table, row.size)
    yield Reach("memory", row.out, row.size)


def _row(row: kinds.StepRow, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.out, row.size)
    yield Reach("constants", row.table, pools.steps * row.size)


def _copy(row: kinds.Copy, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.out, row.size)
    yield Reach("memory", row.source, row.size)


REACHES: dict[type, Callable[[Any, Pools], Iterator[Reach]]] = {
    kinds.Load: _load,
    kinds.Scan: _scan,
    kinds.ScanInput: _scan,
    kinds.Linear: _linear,
    kinds.Conv: _conv,
    kinds.Fire: _fire,
    kinds.General: _general,
    kinds.LeakyCurrent: _leaky_current,
    kinds.LeakySum: _leaky_sum,
    kinds.Arithmetic: _arithmetic,
    kinds.Move: _move,
    kinds.Activity: _activity,
    kinds.PoolPairs: _pool,
    kinds.WindowPool: _pool,
    kinds.StepRow: _row,
    kinds.Copy: _copy,
}
