"""Bin a stream: each bin is returned as soon as it is complete, independent of the chunks."""

from ctypes import c_int64, c_void_p
from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.binning import plain
from axonnx.runtime.binning.completed import NOTHING, BinContents, CellList, CompletedBins
from axonnx.runtime.binning.open_bin import OpenBin
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events, check_events

NO_END = BinContents()
LAST_BIN = 2**64 - 1  # with bins of one microsecond, from the first int64 time to the last


@dataclass(frozen=True)
class BinnerState:
    """The state of a stream's binning as numbers and one array."""

    origin: int | None  # microseconds; None before the first event if the first event is the origin
    bin: int  # the open bin; all bins before it are complete
    touched: bool  # whether an event has reached the open bin
    counts: NDArray[np.int64] = field(repr=False)  # [cells] of the open bin
    events: int  # events pushed
    outside: Outside
    clipped: int  # events in complete bins that the limit removed
    anchor: tuple[int, int] | None = None  # the last bin boundary that events made: microseconds, and the bin after it


class Binner:
    """Bin a stream into the same frames as bin_events, however the stream is cut into chunks.

    A bin is complete as soon as an event of a later bin arrives, or with its last event if their number ends it.
    Events off the sensor, or of an unknown polarity, are counted and otherwise ignored. `binning.bins` is no limit
    here: bin indices grow as long as the stream lasts, and memory holds the open bin only. With `last`, only bins
    0 … last − 1 exist, and later events are counted as `after`.

    The native core counts the events, or numpy if there is no core; the bits are the same.

    Args:
        binning: How events become frames.
        state: State to continue from, as `save` returns it.
        last: Number of bins. Default: unlimited.
    """

    __slots__ = ("_address", "_frame", "_native", "_open", "_shape", "binning", "last")

    def __init__(self, binning: Binning, state: BinnerState | None = None, last: int | None = None) -> None:
        self.binning, self.last, self._shape = binning, last, binning.frame_shape
        self._open = OpenBin(binning, last)
        self._native = find_function("push", c_int64, c_void_p, c_void_p, c_int64, c_int64)
        self._frame = np.empty(binning.cells, np.uint8)
        self._open.frame = self._address = address_of(self._frame)
        if state is not None:
            self.restore(state)

    @property
    def origin(self) -> int | None:
        """Start of bin 0; None before the first event if the first event is the origin."""
        return self._open.origin if self._open.known else None

    @property
    def bin(self) -> int:
        """Index of the open bin; all bins before it are complete."""
        return self._open.bin

    @property
    def reached_us(self) -> int | None:
        """Start of the open bin; None before the first event if the first event is the origin."""
        at = self._open
        return at.begin if at.known else None

    def end_us(self, completed: CompletedBins, index: int) -> int | None:
        """Return where complete bin `index` ended; None if no event came, so that no time is known."""
        if self.binning.most_events is not None and self._open.known:
            return completed.end_us(index, self.binning.bin_us)
        return None if self.origin is None else self.origin + (index + 1) * self.binning.bin_us

    @property
    def events(self) -> int:
        """Number of events pushed."""
        return self._open.events

    @property
    def outside(self) -> Outside:
        """Events that are in no bin."""
        return self._open.outside

    @property
    def clipped(self) -> int:
        """Number of events in complete bins that the limit removed."""
        return self._open.clipped

    def save(self) -> BinnerState:
        """Return the state as a value that later calls do not change."""
        touched, counts = bool(self._open.touched), self._open.all_counts()
        anchor = (self._open.anchor, self._open.base) if self._open.base else None
        return BinnerState(self.origin, self.bin, touched, counts, self.events, self.outside, self.clipped, anchor)

    def restore(self, state: BinnerState) -> None:
        """Continue from a saved state; refuse one of another binning."""
        if state.counts.shape != (self.binning.cells,):
            raise AxonnxError(
                f"binner: the open bin of the state has shape {state.counts.shape}; expected ({self.binning.cells},)."
                " Restore it into a Binner with the same binning."
            )
        at = self._open
        at.open(state.bin)
        at.origin, at.known = state.origin or 0, state.origin is not None
        at.anchor, at.base = state.anchor or (at.origin, 0)
        at.take_counts(state.counts.astype(np.int64))
        at.touched, at.events, at.clipped = state.touched, state.events, state.clipped
        for reason, count in state.outside.as_dict().items():
            setattr(at, reason, count)

    def push(self, events: Events) -> CompletedBins:
        """Push events, and return the bins that they complete."""
        count, at, first = len(check_events(events)), self._open, self._open.bin
        known, start = at.known, at.begin if at.most else 0
        if first > LAST_BIN and count:
            raise AxonnxError("binner: the last bin of int64 time is already complete; start a new Binner.")
        ended = plain.push(events, at) if self._native is None else self._push(self._native, events, count)
        begin = 0 if not at.most else start if known else at.origin
        return CompletedBins(first, first if ended is NO_END else at.bin, self._shape, ended, begin)

    def advance(self, t_us: int) -> CompletedBins:
        """Complete the bins that end at or before time t_us, without waiting for a later event."""
        at = self._open
        if self.origin is None or t_us < at.anchor:
            return self._complete_until(self.bin)
        reached = max(self.bin, at.base + (t_us - at.anchor) // self.binning.bin_us)
        return self._complete_until(reached if self.last is None else min(reached, self.last))

    def flush(self, bins: int = 0) -> CompletedBins:
        """Complete the open bin if an event reached it, then fill with silence up to `bins` bins in total."""
        return self._complete_until(max(self.bin + self._open.touched, bins))

    def _complete_until(self, stop: int) -> CompletedBins:
        """Complete all bins before `stop`."""
        first, begin = self.bin, self._open.begin if self._open.most else 0
        if stop > LAST_BIN + 1:
            raise AxonnxError(f"binner: bin {stop} is beyond the int64 times; give an earlier time or fewer bins.")
        ended = BinContents() if stop == first else plain.close(stop, self._open)
        return CompletedBins(first, stop, self._shape, ended, begin)

    def _push(self, native: Any, events: Events, count: int) -> BinContents:
        """Count events with the native core, as `plain.push` does."""
        at = self._open
        if not at.frame:
            if getrefcount(self._frame) > 2:  # self and this call: another owner of the last frame may keep it
                self._frame = np.empty(at.size, np.uint8)
                self._address = address_of(self._frame)
            at.frame = self._address
        if not events.flags.c_contiguous:
            events = np.ascontiguousarray(events)
        address = address_of(events)
        done = native(at.address, address, 0, count)
        if at.frame:  # the frame is still unused, so no bin has ended
            return NO_END
        frame, listed = self._frame if at.counted else None, NOTHING
        left = count - done
        full = bool(at.most) and at.in_bin == at.most  # the bin is over, but there was no room for it
        if left or full:
            left += full
            room = left + int(np.count_nonzero(at.counts))
            whole = CellList(
                np.empty(left, np.uint64),
                np.empty(left, np.int64),
                np.empty(room, np.uint32),
                np.empty(room, np.uint8),
                np.empty(left if at.most else 0, np.int64),
            )
            at.ends = address_of(whole.ends)
            at.busy, at.starts = address_of(whole.busy), address_of(whole.starts)
            at.listed_cells, at.listed_values = address_of(whole.cell), address_of(whole.value)
            native(at.address, address, done, count)
            bins, cells = at.bins_listed, at.cells_listed
            listed = CellList(
                whole.busy[:bins], whole.starts[:bins], whole.cell[:cells], whole.value[:cells], whole.ends[:bins]
            )
        ended = BinContents(frame, listed, at.counted, at.frame_end)
        at.busy, at.bins_listed, at.cells_listed, at.counted = None, 0, 0, 0
        return ended
