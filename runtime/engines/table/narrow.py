"""Weights as whole numbers of units: exact on the grid, with half or a quarter of the bytes to move.

On the sum-exact grid a weight is n · 2^−s. Where every n of a synapse fits 16 bits, sums of the n in 32 bits are exact,
and so is their product with the unit: the same bits as sums of floats. Where n fits 8 bits and no sum leaves 16 bits,
sums in 16 bits do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.table.layout import weight_rows
from axonnx.runtime.format.values import UNITS
from axonnx.runtime.program.instructions import Conv, Linear, Program

FLOATS, SHORTS, BYTES = range(3)  # how a kernel finds the weights of a synapse
FINEST_UNIT = 120  # 2^−s is a normal float32


class Narrow(NamedTuple):
    """Weights as numbers of 2^−unit."""

    stored: int
    unit: int
    numbers: NDArray[Any]


def integer_weights(program: Program) -> dict[str, Narrow]:
    """The weights that can be taken as integers, as rows, by the name of their synapse."""
    found = {}
    for i in program.instructions:
        if isinstance(i, Linear | Conv):
            narrow = narrowed(weight_rows(i, program.constants[i.weight]))
            if narrow is not None:
                found[i.name] = narrow
    return found


def narrowed(rows: NDArray[np.float32]) -> Narrow | None:
    """Weights [inputs, outputs] as small integers; None where they are none, or their sums are not exact."""
    unit = finest_unit(rows)
    if unit is None:
        return None
    numbers = np.ldexp(rows.astype(np.float64), unit)
    largest, most = np.abs(numbers).max(initial=0.0), np.abs(numbers).sum(0).max(initial=0.0)
    if largest <= np.iinfo(np.int8).max and most <= np.iinfo(np.int16).max:
        return Narrow(BYTES, unit, numbers.astype(np.int8))
    if largest <= np.iinfo(np.int16).max and most < UNITS:
        return Narrow(SHORTS, unit, numbers.astype(np.int16))
    return None


def finest_unit(values: NDArray[np.float32]) -> int | None:
    """The least s for which all values are multiples of 2^−s; None beyond what a kernel takes."""
    mantissas, exponents = np.frexp(values[values != 0.0])
    whole = np.ldexp(mantissas, 24).astype(np.int64)  # a float32 has 24 bits
    lowest = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)  # trailing zeros, exact for powers of two
    unit = int(np.max(24 - exponents - lowest, initial=0))
    return unit if unit <= FINEST_UNIT else None
