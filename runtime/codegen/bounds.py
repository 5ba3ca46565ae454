"""Check every address that the native core will use, once, before the first call; kernels check no bounds.

Each instruction's row states where it reads and writes. This module computes how far each row reaches, from the same
named columns that the kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen import rows as kinds
from axonnx.runtime.codegen.weights import COARSEST_UNIT, FINEST_UNIT

ADDRESSES = 2**31  # tables and event lists hold 32-bit integers
CACHE_LINE = 64
BYTES_OF = {kinds.FLOATS: 4, kinds.SHORTS: 2, kinds.BYTES: 1}


class Reach(NamedTuple):
    """A range of ``size`` elements of a pool, from ``begin`` on."""

    pool: str
    begin: int
    size: int


@dataclass(frozen=True)
class Pools:
    """Number of elements in each pool (weights: in cache lines), and number of rows in tables that the clock selects.

    ``slack`` is the number of elements that may be written after a list's end.
    """

    memory: int
    constants: int
    weights: int
    events: int
    packed: int
    tables: int
    outside: int
    trace: int
    steps: int
    slack: int


def check_rows(rows: Sequence[tuple[int, ...]], pools: Pools, tables: NDArray[np.int32], where: str) -> None:
    """Refuse a program whose rows have the wrong width for their kernels, or reach beyond a pool."""
    for size in (pools.memory, pools.events, pools.tables, pools.constants, pools.weights, pools.packed):
        if size >= ADDRESSES:
            raise AxonnxError(
                f"{where}: its buffers or weights hold {size} numbers; expected less than 2³¹. Export a smaller network"
            )
    for number, row in enumerate(rows):
        kind = kinds.KINDS[row[0]]
        if len(row) != len(kind._fields) or len(row) > kinds.COLUMNS:
            raise _fault(where, number, row, f"it has {len(row)} numbers; expected {len(kind._fields)}")
        named = kind(*row)
        for pool, begin, size in REACHES[kind](named, pools):
            if begin < 0 or size < 0 or begin + size > getattr(pools, pool):
                reach = f"it reaches {pool} {begin} … {begin + size} of {getattr(pools, pool)}"
                raise _fault(where, number, row, reach)
        if isinstance(named, kinds.Move):
            sources = tables[named.table : named.table + named.size]
            furthest = int(sources.max(initial=-1)) + named.shift
            if sources.min(initial=-1) < -1 or named.shift < 0 or furthest >= pools.memory:
                raise _fault(where, number, row, "it gathers from beyond its memory")


def _fault(where: str, number: int, row: tuple[int, ...], text: str) -> AxonnxError:
    return AxonnxError(
        f"{where}: instruction {number} of the compiled program (code {row[0]}) is wrong: {text}. This is a fault of "
        f"axonnx; "
        f"please report it"
    )


def _load(row: kinds.Load, pools: Pools) -> Iterator[Reach]:
    yield Reach("outside", row.at, row.channels * row.pixels)
    yield Reach("memory", row.out, (row.pixels - 1) * row.pitch + row.channels)


def _events(listed: int, starts: int, size: int, pitch: int, pools: Pools) -> Iterator[Reach]:
    """Yield the ranges of a list of at most ``size`` events, and of its counts: one more than there are pixels."""
    yield Reach("events", listed, size + pools.slack)
    yield Reach("events", starts, size // pitch + 1 if pitch > 0 and size % pitch == 0 else ADDRESSES)


def _scan(row: kinds.Scan | kinds.ScanInput, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.source, row.size)
    yield from _events(row.listed, row.starts, row.size, row.pitch, pools)
    if isinstance(row, kinds.ScanInput):
        yield Reach("events", row.plain, 1)


def _synapse(row: kinds.Linear | kinds.Conv, rows: int, outputs: int, dense: int, pools: Pools) -> Iterator[Reach]:
    """Yield the ranges of ``rows`` of weights for event lists (plus one of zeros), and of ``dense`` rows."""
    valid = row.stored in BYTES_OF and row.dense_stored in BYTES_OF
    if not valid or not COARSEST_UNIT <= row.unit <= FINEST_UNIT or not 0 <= row.bits < 24:
        yield Reach("weights", 0, ADDRESSES)
        return
    yield Reach("weights", row.weights, -(-(rows + 1) * outputs * BYTES_OF[row.stored] // CACHE_LINE))
    if row.dense != kinds.NOWHERE:
        yield Reach("weights", row.dense, -(-dense * outputs * BYTES_OF[row.dense_stored] // CACHE_LINE))
    if row.bias >= 0:
        yield Reach("constants", row.bias, outputs)
    for place in (row.counted, row.plain):
        yield Reach("events", place, 1)


def _linear(row: kinds.Linear, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.source, row.inputs)
    yield Reach("memory", row.out, row.size)
    yield from _events(row.listed, row.starts, row.inputs, row.inputs, pools)
    yield from _synapse(row, row.inputs, row.size, row.inputs, pools)
    if row.dense != kinds.NOWHERE:
        yield Reach("packed", 0, row.inputs * kinds.SLOTS)


def _conv(row: kinds.Conv, pools: Pools) -> Iterator[Reach]:
    for number in (row.stride_y, row.stride_x, row.top, row.left, row.dilation_y, row.dilation_x):
        if not 0 <= number < ADDRESSES:
            yield Reach("memory", 0, ADDRESSES)
    size, taps = row.height * row.width * row.pitch, row.window_height * row.window_width
    yield Reach("memory", row.source, size)
    yield Reach("memory", row.out, row.out_height * row.out_width * row.out_pitch)
    yield Reach("memory", row.scratch, 2 * row.out_width * row.out_pitch)
    yield from _events(row.listed, row.starts, size, row.pitch, pools)
    yield from _synapse(row, taps * row.pitch, row.out_pitch, taps * row.dense_channels, pools)
    for place in (row.rows, row.sources):
        yield Reach("events", place, taps * row.pitch + pools.slack)
    if row.dense == kinds.NOWHERE:
        return
    yield Reach("packed", 0, row.dense_height * row.dense_width * row.dense_channels)
    down = (row.out_height - 1) * row.stride_y + (row.window_height - 1) * row.dilation_y
    across = (row.out_width - 1) * row.stride_x + (row.window_width - 1) * row.dilation_x
    if down >= row.dense_height or across >= row.dense_width or row.channels > row.dense_channels:
        yield Reach("packed", 0, ADDRESSES)
    yield Reach("tables", row.offsets, taps)


def _neurons(row: kinds.Neurons, pools: Pools) -> Iterator[Reach]:
    op = kinds.NEURONS[row.op] if 0 <= row.op < len(kinds.NEURONS) else None
    if op is None or row.fires != int(op.spikes is not None):
        yield Reach("memory", 0, ADDRESSES)
        return
    operands, results = len(op.operands), len(op.outputs)
    first, after = kinds.Neurons._fields.index("in_0"), kinds.Neurons._fields.index("out_0")
    for place in (
        *row[first : first + operands],
        *row[after : after + results],
        row.spikes,
        row.next_spikes,
        row.membrane,
    ):
        yield Reach("memory", place, row.size)
    yield Reach("constants", row.constants, len(op.parameters) * row.period)
    reach = row.period if row.same else row.pitch if not row.each else row.size
    yield Reach("constants", 0, ADDRESSES if reach > row.period or row.size % max(row.pitch, 1) else 0)
    if row.fires:
        yield from _events(row.listed, row.starts, row.size, row.pitch, pools)
    for place in (row.trace_spikes, row.trace_membrane):
        if place >= 0:
            yield Reach("trace", place, row.size)


def _arithmetic(row: kinds.Arithmetic, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.out, row.size)
    yield Reach("constants" if row.a_constant else "memory", row.a, row.a_period)
    yield Reach("constants" if row.b_constant else "memory", row.b, row.b_period)


def _pool(row: kinds.Pool, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row.source, row.height * row.width * row.rows * row.columns * row.pitch)
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
    kinds.Neurons: _neurons,
    kinds.Arithmetic: _arithmetic,
    kinds.Move: _move,
    kinds.Activity: _activity,
    kinds.Pool: _pool,
    kinds.StepRow: _row,
    kinds.Copy: _copy,
}
