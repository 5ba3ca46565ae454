"""Streams to frames: bins come out as soon as they are complete, whatever the chunks."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.rules import Outside, bin_index, cells_of, clip_counts, count_outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events, check_events

# Blocks of a stream hold at most this many bins and this many bytes (but always one bin).
BLOCK_BINS = 256
BLOCK_BYTES = 2**24

LAST_BIN = 2**64 - 1  # of one microsecond, from the first time of int64 to the last

_NO_INDEX: Final = np.empty(0, np.uint64)
_NO_CELL: Final = np.empty(0, np.int64)
_NO_VALUE: Final = np.empty(0, np.uint8)


class Block(NamedTuple):
    """Consecutive complete bins of a stream."""

    first: int  # index of the first bin
    frames: NDArray[np.uint8]  # [k, C, H, W]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive complete bins of a stream; `frames` is None where all of them are silent."""

    first: int
    count: int
    frames: NDArray[np.uint8] | None


@dataclass(frozen=True)
class Completed:
    """Bins first … stop − 1 of a stream, held as their non-zero cells only.

    Iterating gives blocks `(first, frames)` of bounded size, silence included, however long. `stretches` gives a silent
    stretch of a block's length or more as one item without frames, so that hours of it cost nothing.
    """

    first: int
    stop: int
    frame_shape: tuple[int, int, int]
    bin: NDArray[np.uint64]  # of each non-zero cell, in rising order
    cell: NDArray[np.int64]
    value: NDArray[np.uint8]
    block_bins: int

    @property
    def count(self) -> int:
        """How many bins are complete."""
        return self.stop - self.first

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[Block]:
        for stretch in self.stretches():
            if stretch.frames is not None:
                yield Block(stretch.first, stretch.frames)
                continue
            for first in range(stretch.first, stretch.first + stretch.count, self.block_bins):
                count = min(self.block_bins, stretch.first + stretch.count - first)
                yield Block(first, np.zeros((count, *self.frame_shape), np.uint8))

    def stretches(self) -> Iterator[Stretch]:
        """The bins in order, in blocks of frames and long silences."""
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

    def next_busy(self, at: int) -> int:
        """The first bin from `at` on that is not silent, or stop."""
        entry = np.searchsorted(self.bin, np.uint64(at))
        return int(self.bin[entry]) if entry < len(self.bin) else self.stop

    def frames(self, first: int, count: int) -> NDArray[np.uint8]:
        """`count` complete bins from bin `first` on, [count, C, H, W]."""
        start = np.searchsorted(self.bin, np.uint64(first))
        stop = np.searchsorted(self.bin, np.uint64(first + count - 1), side="right")
        frames = np.zeros((count, *self.frame_shape), np.uint8)
        row = (self.bin[start:stop] - np.uint64(first)).astype(np.int64)
        frames.reshape(count, -1)[row, self.cell[start:stop]] = self.value[start:stop]
        return frames


@dataclass(frozen=True)
class BinnerState:
    """Where a stream stands: all that is needed to go on, in numbers and one array."""

    origin: int | None  # microseconds; None until the first event when the first event is the origin
    bin: int  # the open bin: all before it are complete
    touched: bool  # an event has reached into the open bin
    counts: NDArray[np.int64] = field(repr=False)  # [cells] of the open bin
    events: int  # events pushed
    outside: Outside
    clipped: int  # counts of complete bins cut off by the limit


class Binner:
    """The streaming twin of bin_events: any chunking of a stream gives the same frames.

    A bin is complete as soon as an event of a later bin arrives. Events off the sensor, or of no known polarity, are
    counted and otherwise as if they had not been. `binning.bins` is no limit here: bin indices grow for as long as the
    stream lasts, and memory is that of the open bin. With `last`, bins 0 … last − 1 are all there are, and later
    events are counted as `after`.
    """

    def __init__(self, binning: Binning, state: BinnerState | None = None, last: int | None = None) -> None:
        self.binning, self.last = binning, last
        self.block_bins = max(1, min(BLOCK_BINS, BLOCK_BYTES // binning.cells))
        origin = 0 if binning.origin == "zero" else None
        nothing = np.zeros(binning.cells, np.int64)
        self.restore(state or BinnerState(origin, 0, False, nothing, 0, Outside(), 0))

    @property
    def origin(self) -> int | None:
        """The time at which bin 0 begins; None before the first event where that is the origin."""
        return self._origin

    @property
    def bin(self) -> int:
        """The open bin: all before it are complete."""
        return self._bin

    def save(self) -> BinnerState:
        """The state as a value of its own, which later pushes do not change."""
        counts = self._counts.copy()
        return BinnerState(self._origin, self._bin, self._touched, counts, self.events, self.outside, self.clipped)

    def restore(self, state: BinnerState) -> None:
        """Go on from a saved state."""
        if state.counts.shape != (self.binning.cells,):
            raise AxonnxError(
                f"binner: the state's open bin has shape {state.counts.shape}; expected ({self.binning.cells},)."
                " Restore it into a Binner with the binning it was saved from."
            )
        self._origin, self._bin, self._touched = state.origin, state.bin, state.touched
        self._counts = state.counts.astype(np.int64)
        self.events, self.outside, self.clipped = state.events, state.outside, state.clipped

    def push(self, events: Events) -> Completed:
        """The bins that these events complete."""
        if self._bin > LAST_BIN and len(check_events(events)):
            raise AxonnxError("binner: the last bin of int64 time is complete already; start a new Binner.")
        times, cell = self._on_sensor(check_events(events))
        if len(times) == 0:
            return self._complete_until(self._bin)
        if self._origin is None:
            self._origin = int(times[0])
        index, cell, clock, touched = self._place(times, cell)
        first_open = int(np.searchsorted(index, np.uint64(clock)))
        completed = self._complete_until(clock, index[:first_open], cell[:first_open])
        np.add.at(self._counts, cell[first_open:], 1)
        self._touched |= touched
        return completed

    def advance(self, t_us: int) -> Completed:
        """The bins that end at or before time t_us, complete now whether or not an event follows."""
        if self._origin is None or t_us < self._origin:
            return self._complete_until(self._bin)
        reached = max(self._bin, (t_us - self._origin) // self.binning.bin_us)
        return self._complete_until(reached if self.last is None else min(reached, self.last))

    def flush(self, bins: int = 0) -> Completed:
        """The open bin if any event reached into it, and then silence up to `bins` bins in all."""
        return self._complete_until(max(self._bin + self._touched, bins))

    def _on_sensor(self, events: Events) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Time and cell of the events that may count."""
        cell, off_sensor, bad_polarity = cells_of(events, self.binning)
        strange = off_sensor | bad_polarity
        self.events += len(events)
        if not strange.any():
            return events["t"], cell
        self.outside += Outside(off_sensor=int(off_sensor.sum()), bad_polarity=int(bad_polarity.sum()))
        return events["t"][~strange], cell[~strange]

    def _place(
        self, times: NDArray[np.int64], cell: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], int, bool]:
        """Bin (never falling) and cell of the events that count, the bin now open, and whether one touched it."""
        assert self._origin is not None
        index, before = bin_index(times, np.array([self._origin], np.int64), self.binning.bin_us)
        index[before] = 0
        after = np.zeros(len(times), np.bool_)
        if self.last is not None:
            index = np.minimum(index, np.uint64(self.last))
            after = index == np.uint64(self.last)
        clock = np.maximum(np.maximum.accumulate(index), np.uint64(self._bin))
        late = (index < clock) & ~before
        wrong = before | after | late
        now = int(clock[-1])
        touched = now != self.last and (now > self._bin or bool(np.any((index == clock) & ~before)))
        if not wrong.any():
            return index, cell, now, touched
        reasons = {"before": before, "after": after, "late": late}
        self.outside += count_outside(reasons, wrong, np.array([0, len(times)]))[0]
        return index[~wrong], cell[~wrong], now, touched

    def _complete_until(
        self, stop: int, index: NDArray[np.uint64] = _NO_INDEX, cell: NDArray[np.int64] = _NO_CELL
    ) -> Completed:
        """All bins before `stop`; their events that are not yet in `counts` are given in rising order of bin."""
        first, counts, shape = self._bin, self._counts, self.binning.frame_shape
        if stop > LAST_BIN + 1:
            raise AxonnxError(f"binner: bin {stop} is beyond the times of int64; give an earlier time or fewer bins.")
        if stop == first:
            return Completed(first, stop, shape, _NO_INDEX, _NO_CELL, _NO_VALUE, self.block_bins)
        in_open = int(np.searchsorted(index, np.uint64(first), side="right"))
        np.add.at(counts, cell[:in_open], 1)
        bins, cell, count = _nonzero(index[in_open:], cell[in_open:], self.binning.cells)
        open_cell = np.flatnonzero(counts)
        bins = np.concatenate([np.full(len(open_cell), first, np.uint64), bins])
        cell, count = np.concatenate([open_cell, cell]), np.concatenate([counts[open_cell], count])
        value, lost = clip_counts(count, self.binning.limit)
        counts[open_cell] = 0
        self._bin, self._touched, self.clipped = stop, False, self.clipped + lost
        return Completed(first, stop, shape, bins, cell, value, self.block_bins)


def _nonzero(
    index: NDArray[np.uint64], cell: NDArray[np.int64], cells: int
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Bin, cell and count of each cell with events, given events in rising order of bin."""
    # Ranks stand in for the bins, whose product with `cells` could leave int64.
    starts = np.flatnonzero(np.diff(index, prepend=~index[:1]))
    rank = np.zeros(len(index), np.int64)
    rank[starts[1:]] = 1
    key, count = np.unique(np.cumsum(rank) * cells + cell, return_counts=True)
    return index[starts][key // cells], key % cells, count
