"""Constants of a plan, one after the other, and cache-line-aligned buffers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.table.layout import LANES

CACHE_LINE = 64  # bytes; where weights begin, in whichever width


@dataclass
class Pool:
    """Constants of one kind, one after the other."""

    parts: list[NDArray[Any]] = field(default_factory=list)
    size: int = 0

    def add(self, values: NDArray[Any], step: int = LANES) -> int:
        """Where the values begin, a multiple of ``step``; sixteen floats keep rows on cache lines."""
        before = -self.size % step
        begin = self.size + before
        filler = -values.size % LANES
        self.parts += [np.zeros(before, values.dtype), values.ravel(), np.zeros(filler, values.dtype)]
        self.size = begin + values.size + filler
        return begin


def aligned(size: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Zeros that begin on a cache line."""
    width = np.dtype(dtype).itemsize
    raw = np.zeros(size + CACHE_LINE // width, dtype)
    skip = (-raw.ctypes.data % CACHE_LINE) // width
    return raw[skip : skip + size]


def bit_positions() -> NDArray[np.int32]:
    """For each byte the positions of its set bits, eight numbers each."""
    table = np.zeros((256, 8), np.int32)
    for byte in range(256):
        found = [bit for bit in range(8) if byte >> bit & 1]
        table[byte, : len(found)] = found
    return table
