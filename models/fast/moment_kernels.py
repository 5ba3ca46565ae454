"""Compiled arithmetic of ``linear_moments`` and ``conv_moments``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.models.fast.compiling import compiled, inlined_sum

Floats = NDArray[np.float32]

ZERO = np.float32(0)


@compiled
def sums_of_squares(begin: int, end: int, x: Floats, out: Floats) -> None:
    """Σ_j x_j² of rows ``begin`` to ``end``; of spikes and other small integers exact, in any order."""
    for row in range(begin, end):
        out[row] = _sum_of_squares(x[row])


@inlined_sum
def _sum_of_squares(x: Floats) -> Any:
    total = ZERO
    for i in range(len(x)):
        total += x[i] * x[i]
    return total


@compiled
def squares_of_channels(begin: int, end: int, x: Any, out: Any) -> None:
    """Σ_c x_c² of maps ``begin`` to ``end``: x [N, C, positions], out [N, positions]."""
    for n in range(begin, end):
        row = out[n]
        row[:] = ZERO
        for c in range(x.shape[1]):
            values = x[n, c]
            for i in range(len(row)):
                row[i] += values[i] * values[i]
