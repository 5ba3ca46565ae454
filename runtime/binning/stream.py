"""Streams to frames: bins come out as soon as they are complete, whatever the chunks."""

from dataclasses import dataclass, field
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import plain
from axonnx.runtime.binning.completed import NOTHING, Completed, Ended, Listed
from axonnx.runtime.binning.open_bin import OpenBin
from axonnx.runtime.binning.rules import Outside
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Events, check_events
from axonnx.runtime.kernels.bin_slots import (
    AFTER,
    BAD_POLARITY,
    BEFORE,
    BIN,
    BUSY,
    CELLS,
    CLIPPED,
    COUNTED,
    EVENTS,
    LATE,
    OFF_SENSOR,
    SLOTS,
    TOUCHED,
)
from axonnx.runtime.kernels.choice import WORTH, kernels

NO_FRAME, NO_END = np.empty(0, np.uint8), Ended()
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

    A stream that goes on is binned by a compiled pass, where there is one: the bits are the same.
    """

    __slots__ = ("_compiled", "_open", "_shape", "binning", "last")

    def __init__(self, binning: Binning, state: BinnerState | None = None, last: int | None = None) -> None:
        self.binning, self.last, self._shape = binning, last, binning.frame_shape
        self._open = OpenBin(binning, last)
        self._compiled: ModuleType | None = None
        self._open.origin = 0 if binning.origin == "zero" else None
        self._open.open(0)
        if state is not None:
            self.restore(state)

    @property
    def origin(self) -> int | None:
        """The time at which bin 0 begins; None before the first event where that is the origin."""
        return self._open.origin

    @property
    def bin(self) -> int:
        """The open bin: all before it are complete."""
        return self._open.bin

    @property
    def events(self) -> int:
        """Events pushed."""
        return self._open[EVENTS]

    @property
    def outside(self) -> Outside:
        """Events that are in no bin."""
        return self._open.outside

    @property
    def clipped(self) -> int:
        """Counts of complete bins cut off by the limit."""
        return self._open[CLIPPED]

    def save(self) -> BinnerState:
        """The state as a value of its own, which later pushes do not change."""
        touched, counts = bool(self._open[TOUCHED]), self._open.all_counts()
        return BinnerState(self.origin, self.bin, touched, counts, self.events, self.outside, self.clipped)

    def restore(self, state: BinnerState) -> None:
        """Go on from a saved state."""
        if state.counts.shape != (self.binning.cells,):
            raise AxonnxError(
                f"binner: the state's open bin has shape {state.counts.shape}; expected ({self.binning.cells},)."
                " Restore it into a Binner with the binning it was saved from."
            )
        self._open.open(state.bin)
        self._open.origin = state.origin
        self._open.take_counts(state.counts.astype(np.int64))
        outside = state.outside
        slots = [TOUCHED, EVENTS, CLIPPED, OFF_SENSOR, BAD_POLARITY, BEFORE, AFTER, LATE]
        self._open.numbers[slots] = state.touched, state.events, state.clipped, *outside.as_dict().values()

    def warm_up(self) -> None:
        """Have the compiled pass ready before the first events."""
        self._compiled = kernels("bins")

    def push(self, events: Events) -> Completed:
        """The bins that these events complete."""
        count = len(check_events(events))
        at, first = self._open, self._open.bin
        if first > LAST_BIN and count:
            raise AxonnxError("binner: the last bin of int64 time is complete already; start a new Binner.")
        if self._compiled is None and at.numbers[EVENTS] >= WORTH:
            self.warm_up()
        at.numbers[EVENTS] += count
        ended = plain.push(events, at) if self._compiled is None else _push(self._compiled, events, at)
        return Completed(first, at.bin, self._shape, ended)

    def advance(self, t_us: int) -> Completed:
        """The bins that end at or before time t_us, complete now whether or not an event follows."""
        if self.origin is None or t_us < self.origin:
            return self._complete_until(self.bin)
        reached = max(self.bin, (t_us - self.origin) // self.binning.bin_us)
        return self._complete_until(reached if self.last is None else min(reached, self.last))

    def flush(self, bins: int = 0) -> Completed:
        """The open bin if any event reached into it, and then silence up to `bins` bins in all."""
        return self._complete_until(max(self.bin + self._open[TOUCHED], bins))

    def _complete_until(self, stop: int) -> Completed:
        """All bins before `stop`."""
        first = self.bin
        if stop > LAST_BIN + 1:
            raise AxonnxError(f"binner: bin {stop} is beyond the times of int64; give an earlier time or fewer bins.")
        ended = Ended() if stop == first else plain.close(stop, self._open)
        return Completed(first, stop, self._shape, ended)


def _push(compiled: ModuleType, events: Events, at: OpenBin) -> Ended:
    """As `plain.push`."""
    if not events.flags.c_contiguous:
        events = np.ascontiguousarray(events)
    fixed, count, opened = (at.columns, at.rows, at.counts, at.numbers), len(events), at.numbers[BIN]
    at.numbers[BUSY:SLOTS] = 0
    frame, listed = at.spare if at.spare is not None else np.empty(len(at.counts), np.uint8), NOTHING
    done = compiled.push(events, 0, *fixed, frame, *NOTHING)
    if at.numbers[BIN] == opened:
        at.spare = frame
        return NO_END
    at.spare = None
    in_frame = at.numbers[COUNTED] > 0
    if done < count:
        left = count - done
        room = left + int(np.count_nonzero(at.counts))
        busy, starts = np.empty(left, np.uint64), np.empty(left, np.int64)
        cell, value = np.empty(room, np.uint32), np.empty(room, np.uint8)
        compiled.push(events, done, *fixed, NO_FRAME, busy, starts, cell, value)
        bins, cells = at[BUSY], at[CELLS]
        listed = Listed(busy[:bins], starts[:bins], cell[:cells], value[:cells])
    return Ended(frame if in_frame else None, listed, at[COUNTED])
