"""Streams to frames: bins come out as soon as they are complete, whatever the chunks."""

from ctypes import c_int64, c_void_p
from dataclasses import dataclass, field
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import address_of, find_function
from axonnx.runtime.binning import plain
from axonnx.runtime.binning.completed import NOTHING, Completed, Ended, Listed
from axonnx.runtime.binning.open_bin import OpenBin
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events, check_events

NO_END = Ended()
LAST_BIN = 2**64 - 1  # of one microsecond, from the first time of int64 to the last


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

    Events are counted by the native core, or by numpy where there is no core: the bits are the same.
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
        """The time at which bin 0 begins; None before the first event where that is the origin."""
        return self._open.origin if self._open.known else None

    @property
    def bin(self) -> int:
        """The open bin: all before it are complete."""
        return self._open.bin

    @property
    def events(self) -> int:
        """Events pushed."""
        return self._open.events

    @property
    def outside(self) -> Outside:
        """Events that are in no bin."""
        return self._open.outside

    @property
    def clipped(self) -> int:
        """Counts of complete bins cut off by the limit."""
        return self._open.clipped

    def save(self) -> BinnerState:
        """The state as a value of its own, which later pushes do not change."""
        touched, counts = bool(self._open.touched), self._open.all_counts()
        return BinnerState(self.origin, self.bin, touched, counts, self.events, self.outside, self.clipped)

    def restore(self, state: BinnerState) -> None:
        """Go on from a saved state."""
        if state.counts.shape != (self.binning.cells,):
            raise AxonnxError(
                f"binner: the state's open bin has shape {state.counts.shape}; expected ({self.binning.cells},)."
                " Restore it into a Binner with the binning it was saved from."
            )
        at = self._open
        at.open(state.bin)
        at.origin, at.known = state.origin or 0, state.origin is not None
        at.take_counts(state.counts.astype(np.int64))
        at.touched, at.events, at.clipped = state.touched, state.events, state.clipped
        for reason, count in state.outside.as_dict().items():
            setattr(at, reason, count)

    def push(self, events: Events) -> Completed:
        """The bins that these events complete."""
        count, at, first = len(check_events(events)), self._open, self._open.bin
        if first > LAST_BIN and count:
            raise AxonnxError("binner: the last bin of int64 time is complete already; start a new Binner.")
        ended = plain.push(events, at) if self._native is None else self._push(self._native, events, count)
        return Completed(first, first if ended is NO_END else at.bin, self._shape, ended)

    def advance(self, t_us: int) -> Completed:
        """The bins that end at or before time t_us, complete now whether or not an event follows."""
        if self.origin is None or t_us < self.origin:
            return self._complete_until(self.bin)
        reached = max(self.bin, (t_us - self.origin) // self.binning.bin_us)
        return self._complete_until(reached if self.last is None else min(reached, self.last))

    def flush(self, bins: int = 0) -> Completed:
        """The open bin if any event reached into it, and then silence up to `bins` bins in all."""
        return self._complete_until(max(self.bin + self._open.touched, bins))

    def _complete_until(self, stop: int) -> Completed:
        """All bins before `stop`."""
        first = self.bin
        if stop > LAST_BIN + 1:
            raise AxonnxError(f"binner: bin {stop} is beyond the times of int64; give an earlier time or fewer bins.")
        ended = Ended() if stop == first else plain.close(stop, self._open)
        return Completed(first, stop, self._shape, ended)

    def _push(self, native: Any, events: Events, count: int) -> Ended:
        """As `plain.push`."""
        at = self._open
        if not at.frame:
            if getrefcount(self._frame) > 2:  # self and this call: whoever else holds the last frame may keep it
                self._frame = np.empty(at.size, np.uint8)
                self._address = address_of(self._frame)
            at.frame = self._address
        if not events.flags.c_contiguous:
            events = np.ascontiguousarray(events)
        address = address_of(events)
        done = native(at.address, address, 0, count)
        if at.frame:  # it is still empty, so no bin has ended
            return NO_END
        frame, listed = self._frame if at.counted else None, NOTHING
        if done < count:
            left = count - done
            room = left + int(np.count_nonzero(at.counts))
            whole = Listed(
                np.empty(left, np.uint64), np.empty(left, np.int64), np.empty(room, np.uint32), np.empty(room, np.uint8)
            )
            at.busy, at.starts = address_of(whole.busy), address_of(whole.starts)
            at.listed_cells, at.listed_values = address_of(whole.cell), address_of(whole.value)
            native(at.address, address, done, count)
            bins, cells = at.bins_listed, at.cells_listed
            listed = Listed(whole.busy[:bins], whole.starts[:bins], whole.cell[:cells], whole.value[:cells])
        ended = Ended(frame, listed, at.counted)
        at.busy, at.bins_listed, at.cells_listed, at.counted = None, 0, 0, 0
        return ended
