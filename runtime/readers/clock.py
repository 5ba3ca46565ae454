"""Timestamps that start again at zero when their bits run out."""

import ctypes

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Clock(ctypes.Structure):
    """A counter of `bits` bits, followed from block to block, so that times keep growing where it began anew.

    A step back by more than half the counter's range is a wrap. A step forward by nearly all of it (127/128) after a
    wrap is an event from before the wrap that came late. Smaller steps back are left as they are: events out of order.
    A silence longer than the whole range cannot be seen in such a file.

    Fields: bits; known (0 before the first reading); last reading; turns, the number of wraps. They are those of
    `counter` in native/events.c.
    """

    bits: int
    known: int
    last: int
    turns: int
    _fields_ = tuple((name, ctypes.c_int64) for name in ("bits", "known", "last", "turns"))

    @property
    def now(self) -> int | None:
        """The last time; None before the first."""
        return self.last + (self.turns << self.bits) if self.known else None

    def unwrap(self, times: Times) -> Times:
        """The next readings of the counter as times."""
        if len(times) == 0:
            return times
        span = 1 << self.bits
        step = np.diff(times, prepend=self.last if self.known else times[0])
        turns = self.turns + np.cumsum((step < -(span // 2)).astype(np.int64) - (step >= span - span // 128))
        # A late event can only undo a wrap that was seen: never fall below zero turns.
        turns -= np.minimum(np.minimum.accumulate(turns), 0)
        self.known, self.last, self.turns = 1, int(times[-1]), int(turns[-1])
        grown: Times = times + span * turns
        return grown


def unwrap(times: Times, bits: int) -> Times:
    """Times that keep growing where a counter of `bits` bits began anew, all at once."""
    return Clock(bits).unwrap(times)
