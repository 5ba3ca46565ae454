"""The open bin of a stream and its counters, in arrays that compiled and plain passes share."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.kernels.bin_slots import (
    AFTER,
    BAD_POLARITY,
    BEFORE,
    BEYOND,
    BIN,
    BIN_US,
    FULL,
    HEIGHT,
    KNOWN,
    LAST,
    LATE,
    LIMIT,
    LOW,
    OFF_SENSOR,
    ORIGIN,
    PLANE,
    POLARITIES,
    SLOTS,
    SPAN,
    SURPLUS,
    TOUCHED,
    WIDTH,
)

END = 2**64  # µs since the origin that no time of int64 reaches
Indices = NDArray[np.uint32]


class OpenBin:
    """Counts of one byte a cell, which stay at 255, and `numbers`: see `axonnx.runtime.kernels.bin_slots`.

    The surplus of full cells is kept as one number: only its sum is ever asked for.
    """

    __slots__ = ("_ended", "binning", "columns", "counts", "numbers", "rows", "spare")

    def __init__(self, binning: Binning, last: int | None) -> None:
        self.binning, self._ended = binning, False
        self.columns, self.rows = _places(binning)
        self.counts = np.zeros(binning.cells, np.uint8)
        self.spare: NDArray[np.uint8] | None = None  # a frame that nobody has been given yet
        self.numbers = np.zeros(SLOTS, np.int64)
        sensor, plane = binning.sensor, binning.height * binning.width if binning.channels > 1 else 0
        self.numbers[[WIDTH, HEIGHT, POLARITIES, PLANE]] = sensor.width, sensor.height, sensor.polarities, plane
        self.numbers[[LIMIT, BIN_US, LAST]] = binning.limit, binning.bin_us, -1 if last is None else last

    def __getitem__(self, slot: int) -> int:
        return int(self.numbers[slot])

    @property
    def origin(self) -> int | None:
        """The time at which bin 0 begins; None before the first event where that is the origin."""
        return self[ORIGIN] if self.numbers[KNOWN] else None

    @origin.setter
    def origin(self, origin: int | None) -> None:
        self.numbers[ORIGIN], self.numbers[KNOWN] = origin or 0, origin is not None

    @property
    def bin(self) -> int:
        """Its index: all bins before it are complete."""
        return END if self._ended else self[BIN] % END

    @property
    def last(self) -> int | None:
        """The bin after the last one, where there is a last one."""
        return None if self.numbers[LAST] < 0 else self[LAST]

    @property
    def outside(self) -> Outside:
        """Events that are in no bin."""
        return Outside(self[OFF_SENSOR], self[BAD_POLARITY], self[BEFORE], self[AFTER], self[LATE])

    def open(self, index: int) -> None:
        """Make bin `index` the open one, in which nothing is counted yet."""
        bits, low = self.numbers.view(np.uint64), index * self.binning.bin_us
        self._ended, beyond = index == END, low >= END
        bits[BIN], bits[LOW] = index % END, low % END
        self.numbers[BEYOND] = beyond
        self.numbers[SPAN] = 0 if beyond or index == self.last else self.binning.bin_us
        self.numbers[TOUCHED] = 0

    def all_counts(self) -> NDArray[np.int64]:
        """The counts with their surplus, which is shown at the first full cell."""
        counts = self.counts.astype(np.int64)
        counts[int(self.counts.argmax())] += self[SURPLUS]
        return counts

    def take_counts(self, counts: NDArray[np.int64]) -> None:
        """Hold these counts instead."""
        self.counts[:] = np.minimum(counts, FULL)
        self.numbers[SURPLUS] = int(np.maximum(counts - FULL, 0).sum())


@lru_cache(maxsize=64)
def _places(binning: Binning) -> tuple[Indices, Indices]:
    """What x and what y add to an event's cell: many streams of one network share it."""
    columns = np.arange(binning.sensor.width, dtype=np.uint32) // np.uint32(binning.downsample)
    rows = np.arange(binning.sensor.height, dtype=np.uint32) // np.uint32(binning.row_step) * np.uint32(binning.width)
    return columns, rows
