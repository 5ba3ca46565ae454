"""Complete bins of a stream: the previously open bin as a frame, all later bins as lists of their non-zero cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Blocks of a stream hold at most this many bins and this many bytes (but always one bin).
BLOCK_BINS = 256
BLOCK_BYTES = 2**24


class Block(NamedTuple):
    """Consecutive complete bins of a stream."""

    first: int  # index of the first bin
    frames: NDArray[np.uint8]  # [k, C, H, W]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive complete bins of a stream; `frames` is None if all of them are silent."""

    first: int
    count: int
    frames: NDArray[np.uint8] | None


class CellList(NamedTuple):
    """The non-zero cells of bins: the cells starts[k] … starts[k + 1] − 1 belong to bin busy[k]."""

    busy: NDArray[np.uint64]  # bins that are not silent, in ascending order
    starts: NDArray[np.int64]  # of each busy bin
    cell: NDArray[np.uint32]
    value: NDArray[np.uint8]
    ends: NDArray[np.int64] = np.empty(0, np.int64)  # of each busy bin in microseconds, if events can end it


NOTHING = CellList(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint8))


class BinContents(NamedTuple):
    """What a chunk of events completed: the open bin, and bins that began and ended within the chunk."""

    frame: NDArray[np.uint8] | None = None  # [cells] of the previously open bin; None if it is silent
    listed: CellList = NOTHING
    counted: int = 0  # sum of all values
    frame_end: int = 0  # where the previously open bin ended


class CompletedBins:
    """Bins first … stop − 1 of a stream.

    Iteration yields blocks `(first, frames)` of limited size, including silence of any length. `stretches` returns a
    silence of at least a block's length as one item without frames, so that hours of silence cost nothing.
    """

    __slots__ = ("begin", "counted", "first", "frame", "frame_end", "frame_shape", "listed", "stop")

    def __init__(
        self, first: int, stop: int, frame_shape: tuple[int, int, int], ended: BinContents, begin: int = 0
    ) -> None:
        self.first, self.stop, self.frame_shape, self.begin = first, stop, frame_shape, begin
        self.frame, self.listed, self.counted, self.frame_end = ended

    @property
    def block_bins(self) -> int:
        """The largest number of bins in a block."""
        return _block_bins(self.frame_shape)

    @property
    def count(self) -> int:
        """The number of complete bins."""
        return self.stop - self.first

    def __bool__(self) -> bool:
        return self.stop > self.first

    def __iter__(self) -> Iterator[Block]:
        for stretch in self.stretches():
            if stretch.frames is not None:
                yield Block(stretch.first, stretch.frames)
                continue
            for first in range(stretch.first, stretch.first + stretch.count, self.block_bins):
                count = min(self.block_bins, stretch.first + stretch.count - first)
                yield Block(first, np.zeros((count, *self.frame_shape), np.uint8))

    def stretches(self) -> Iterator[Stretch]:
        """Yield the bins in order, as blocks of frames and long silences."""
        at = self.first
        while at < self.stop:
            busy = self.next_busy(at)
            if busy - at >= self.block_bins or busy == self.stop:
                yield Stretch(at, busy - at, None)
                at = busy
            else:
                count = min(self.block_bins, self.stop - at)
                yield Stretch(at, count, self.frames(at, count))
                at += count

    def end_us(self, at: int, bin_us: int) -> int:
        """Return where bin `at` ended, if events can end bins: silent bins last `bin_us` after the last busy one."""
        if entry := int(self.listed.busy.searchsorted(np.uint64(at), "right")):
            return int(self.listed.ends[entry - 1]) + (at - int(self.listed.busy[entry - 1])) * bin_us
        if self.frame is not None:
            return self.frame_end + (at - self.first) * bin_us
        return self.begin + (at + 1 - self.first) * bin_us

    def next_busy(self, at: int) -> int:
        """Return the first bin from `at` on that is not silent, or `stop`."""
        if at == self.first and self.frame is not None:
            return at
        busy = self.listed.busy
        entry = int(busy.searchsorted(np.uint64(at))) if len(busy) else 0
        return int(busy[entry]) if entry < len(busy) else self.stop

    def frames(self, first: int, count: int) -> NDArray[np.uint8]:
        """Return `count` complete bins from bin `first` on, [count, C, H, W]."""
        if count == 1 and first == self.first and self.frame is not None:
            return self.frame.reshape(1, *self.frame_shape)
        frames = np.zeros((count, *self.frame_shape), np.uint8)
        flat, cells = frames.reshape(-1), frames[0].size
        if first == self.first and self.frame is not None:
            flat[:cells] = self.frame
        place, value = self._places(first, count, cells)
        flat[place] = value
        return frames

    def _places(self, first: int, count: int, cells: int) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Return the positions of the listed cells in frames of `count` bins, and their values."""
        busy, starts, cell, value, _ = self.listed
        if len(busy) == 0:
            return starts, value
        low = int(busy.searchsorted(np.uint64(first)))
        high = int(busy.searchsorted(np.uint64(first + count - 1), "right"))
        begin = [*starts[low:high].tolist(), len(cell) if high == len(busy) else int(starts[high])]
        bins = (busy[low:high] - np.uint64(first)).view(np.int64) * cells
        return bins.repeat(np.diff(begin)) + cell[begin[0] : begin[-1]], value[begin[0] : begin[-1]]


@cache
def _block_bins(frame_shape: tuple[int, int, int]) -> int:
    return max(1, min(BLOCK_BINS, BLOCK_BYTES // prod(frame_shape)))
