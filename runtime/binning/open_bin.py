"""The open bin of a stream and its counters, shared by the native core and numpy."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from axonnx.native import address_of
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning

FULL = 255  # a count stops here, and the rest is added to the surplus
END = 2**64  # µs since the origin, beyond every int64 time
Indices = NDArray[np.uint32]

_FIELDS = (
    (ctypes.c_void_p, "columns rows cells frame busy starts listed_cells listed_values"),
    (ctypes.c_int64, "width height polarities plane size limit last"),
    (ctypes.c_uint64, "bin_us index"),
    (ctypes.c_int64, "origin known touched"),
    (ctypes.c_int64, "events off_sensor bad_polarity before after late"),
    (ctypes.c_int64, "surplus clipped"),
    (ctypes.c_int64, "bins_listed cells_listed counted"),
    (ctypes.c_void_p, "ends"),
    (ctypes.c_int64, "most in_bin anchor"),
    (ctypes.c_uint64, "base"),
    (ctypes.c_int64, "frame_end last_time"),
)


class OpenBin(ctypes.Structure):
    """``open_bin`` of native/events.c, where each field is explained.

    The fields are listed here as well because numpy needs them when there is no core. A test compares the two lists.
    """

    _fields_ = tuple((name, kind) for kind, names in _FIELDS for name in names.split())

    if TYPE_CHECKING:

        def __getattr__(self, field: str) -> int: ...
        def __setattr__(self, field: str, value: Any) -> None: ...

    def __init__(self, binning: Binning, last: int | None) -> None:
        sensor, plane = binning.sensor, binning.height * binning.width if binning.channels > 1 else 0
        super().__init__(
            width=sensor.width,
            height=sensor.height,
            polarities=sensor.polarities,
            plane=plane,
            size=binning.cells,
            limit=binning.limit,
            last=-1 if last is None else last,
            bin_us=binning.bin_us,
            known=binning.origin == "zero",
            most=binning.most_events or 0,
        )
        self.binning, self._ended = binning, False
        self.counts = np.zeros(binning.cells, np.uint8)
        self._places = _places(binning)
        self.columns, self.rows = map(address_of, self._places)
        self.cells, self.address = address_of(self.counts), ctypes.addressof(self)

    @property
    def bin(self) -> int:
        """Index of the open bin: all bins before it are complete."""
        return END if self._ended else self.index

    @property
    def begin(self) -> int:
        """Where the open bin begins, in microseconds."""
        return self.anchor + (self.bin - self.base) * self.bin_us

    @property
    def outside(self) -> Outside:
        """Events that are in no bin."""
        return Outside(self.off_sensor, self.bad_polarity, self.before, self.after, self.late)

    def open(self, index: int) -> None:
        """Make bin `index` the open one, with all counts at zero."""
        self.index, self._ended, self.touched = index % END, index == END, 0

    def all_counts(self) -> NDArray[np.int64]:
        """Return the counts; the surplus is added to the first full cell."""
        counts = self.counts.astype(np.int64)
        counts[int(self.counts.argmax())] += self.surplus
        return counts

    def take_counts(self, counts: NDArray[np.int64]) -> None:
        """Replace the counts."""
        self.counts[:] = np.minimum(counts, FULL)
        self.surplus = int(np.maximum(counts - FULL, 0).sum())
        self.in_bin = int(counts.sum())


@lru_cache(maxsize=64)
def _places(binning: Binning) -> tuple[Indices, Indices]:
    """Return what x and y add to an event's cell; all streams of a network share these arrays."""
    columns = np.arange(binning.sensor.width, dtype=np.uint32) // np.uint32(binning.downsample)
    rows = np.arange(binning.sensor.height, dtype=np.uint32) // np.uint32(binning.row_step) * np.uint32(binning.width)
    return columns, rows
