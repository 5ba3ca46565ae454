"""Every place that a compiled kernel will touch, checked once, before the first call: kernels look at no bounds.

Each instruction's row says where it reads and writes. Here it is worked out how far that reaches, row by row, from
the same named columns that the kernels read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.numba import conv, neurons
from axonnx.runtime.engines.numba import opcodes as codes
from axonnx.runtime.engines.numba import synapses as linear
from axonnx.runtime.engines.numba.layout import LANES

Row = Sequence[int]
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


def check_rows(rows: Sequence[Row], pools: Pools, tables: NDArray[np.int32], where: str) -> None:
    """Refuse a program whose rows are not as wide as their kernels read, or reach beyond a pool."""
    for size in (pools.memory, pools.events, pools.tables, pools.constants):
        if size >= ADDRESSES:
            raise AxonnxError(f"{where}: its buffers or weights hold {size} numbers; less than 2³¹ can be addressed")
    for number, row in enumerate(rows):
        if len(row) != codes.WIDTHS[row[0]] or len(row) > codes.COLUMNS:
            raise _fault(where, number, row, f"{len(row)} numbers wide; expected {codes.WIDTHS[row[0]]}")
        for pool, begin, size in REACHES[row[0]](row, pools):
            if begin < 0 or size < 0 or begin + size > getattr(pools, pool):
                reach = f"reaches {pool} {begin} … {begin + size} of {getattr(pools, pool)}"
                raise _fault(where, number, row, reach)
        if row[0] == codes.MOVE:
            sources = tables[row[1] : row[1] + row[2]]
            if sources.min(initial=-1) < -1 or sources.max(initial=-1) >= pools.memory:
                raise _fault(where, number, row, "gathers from beyond its memory")


def _fault(where: str, number: int, row: Row, text: str) -> AxonnxError:
    return AxonnxError(
        f"{where}: instruction {number} of the compiled program (code {row[0]}) is or does too much: {text}"
    )


def _load(row: Row, pools: Pools) -> Iterator[Reach]:
    _, at, channels, pixels, pitch, out = row
    yield Reach("outside", at, channels * pixels)
    yield Reach("memory", out, pixels if pitch == 1 else (pixels - 1) * pitch + channels)


def _events(at: int, starts: int, size: int) -> Iterator[Reach]:
    """A list of so many at most, written eight and read sixteen at a time, and its counts."""
    yield Reach("events", at, size + LANES)
    yield Reach("events", starts, size // LANES + 1)


def _scan(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row[1], row[2])
    yield from _events(row[3], row[4], row[2])
    if row[0] == codes.SCAN_INPUT:
        yield Reach("events", row[5], 1)


def _begin(bias: int, size: int) -> Iterator[Reach]:
    if bias >= 0:
        yield Reach("constants", bias, size)


def _linear(row: Row, pools: Pools) -> Iterator[Reach]:
    inputs, size = row[linear.INPUTS] - 1, row[linear.SIZE]
    yield Reach("memory", row[linear.SOURCE], inputs)
    yield Reach("memory", row[linear.OUT], size)
    yield from _events(row[linear.LIST], row[linear.STARTS], inputs)
    yield Reach("constants", row[linear.WEIGHTS], (inputs + 1) * size)
    yield from _begin(row[linear.BIAS], size)
    for place in (linear.COUNT, linear.PLAIN):
        yield Reach("events", row[place], 1)


def _conv(row: Row, pools: Pools) -> Iterator[Reach]:
    pitch, into = row[conv.PITCH], row[conv.OUT_PITCH]
    size = row[conv.HEIGHT] * row[conv.WIDTH] * pitch
    window = row[conv.WINDOW_HEIGHT] * row[conv.WINDOW_WIDTH] * pitch
    yield Reach("memory", row[conv.SOURCE], size)
    yield Reach("memory", row[conv.OUT], row[conv.OUT_HEIGHT] * row[conv.OUT_WIDTH] * into)
    yield Reach("memory", row[conv.ZEROS], pitch)
    yield from _events(row[conv.LIST], row[conv.STARTS], size)
    yield Reach("constants", row[conv.WEIGHTS], (window + 1) * into)
    yield from _begin(row[conv.BIAS], into)
    for place in (conv.ROWS, conv.INPUTS):
        yield Reach("events", row[place], window + LANES)
    for place in (conv.COUNT, conv.PLAIN):
        yield Reach("events", row[place], 1)
    for place in (conv.STRIDE_Y, conv.STRIDE_X, conv.TOP, conv.LEFT, conv.DILATION_Y, conv.DILATION_X):
        if not 0 <= row[place] < ADDRESSES:  # products with sizes stay within 64 bits
            yield Reach("memory", 0, row[place] if row[place] < 0 else ADDRESSES)


def _fire(row: Row, pools: Pools) -> Iterator[Reach]:
    size, kind = row[neurons.SIZE], row[neurons.KIND]
    places, periods = [neurons.CURRENT, neurons.NEXT_SPIKES], [neurons.THRESHOLD]
    if kind != neurons.STATELESS:
        places += [neurons.MEMBRANE, neurons.SPIKES, neurons.NEXT_MEMBRANE]
        periods += [neurons.DECAY]
    if row[0] == codes.FIRE_NOISY:
        places += [neurons.ARRIVING, neurons.NOISE]
        places += [neurons.VARIANCE, neurons.NEXT_VARIANCE] if kind != neurons.STATELESS else []
        periods += [neurons.BASE] if kind != neurons.STATELESS else []
    yield from (Reach("memory", row[place], size) for place in places)
    yield from (Reach("constants", row[place], row[place + 1]) for place in periods)
    yield from _events(row[neurons.LIST], row[neurons.STARTS], size)
    for place in (neurons.TRACE_SPIKES, neurons.TRACE_MEMBRANE):
        if row[place] >= 0:
            yield Reach("trace", row[place], size)


def _leaky_sum(row: Row, pools: Pools) -> Iterator[Reach]:
    yield from (Reach("memory", at, row[1]) for at in row[2:7])
    yield Reach("constants", row[7], row[8])


def _arithmetic(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row[2], row[3])
    for constant, at, period in (row[4:7], row[7:10]):
        yield Reach("constants" if constant else "memory", at, period)


def _pool(row: Row, pools: Pools) -> Iterator[Reach]:
    _, source, out, height, width, pitch, *window = row
    rows, columns = window or (2, 2)
    yield Reach("memory", source, height * rows * width * columns * pitch)
    yield Reach("memory", out, height * width * pitch)


def _activity(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row[1], row[3])
    yield Reach("memory", row[2], row[4])


def _move(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("tables", row[1], row[2])
    yield Reach("memory", row[3], row[2])


def _row(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row[1], row[3])
    yield Reach("constants", row[2], pools.steps * row[3])


def _copy(row: Row, pools: Pools) -> Iterator[Reach]:
    yield Reach("memory", row[1], row[3])
    yield Reach("memory", row[2], row[3])


REACHES: dict[int, Callable[[Row, Pools], Iterator[Reach]]] = {
    codes.LOAD: _load,
    codes.SCAN: _scan,
    codes.SCAN_INPUT: _scan,
    codes.LINEAR: _linear,
    codes.CONV: _conv,
    codes.FIRE: _fire,
    codes.FIRE_NOISY: _fire,
    codes.LEAKY_SUM: _leaky_sum,
    codes.ARITHMETIC: _arithmetic,
    codes.MOVE: _move,
    codes.ACTIVITY: _activity,
    codes.POOL_PAIRS: _pool,
    codes.AVERAGE_POOL: _pool,
    codes.ROW: _row,
    codes.COPY: _copy,
}
