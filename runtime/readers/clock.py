"""Unwrap timestamps that restart at zero when their bits overflow."""

import ctypes

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]


class Clock(ctypes.Structure):
    """A counter of `bits` bits that is followed from block to block, so that times keep growing after a wrap.

    A step back by more than half the counter's range is a wrap. A step forward by nearly the whole range (127/128)
    after a wrap is a late event from before the wrap. Smaller steps back are events out of order; they stay as they
    are. A silence longer than the whole range cannot be detected in such a file.

    Fields: bits; known (0 before the first reading); last reading; turns, the number of wraps. `counter` in
    native/events.c has the same fields.
    """

    bits: int
    known: int
    last: int
    turns: int
    _fields_ = tuple((name, ctypes.c_int64) for name in ("bits", "known", "last", "turns"))

    @property
    def now(self) -> int | None:
        """The last time; None before the first one."""
        return self.last + (self.turns << self.bits) if self.known else None

    def unwrap(self, times: Times) -> Times:
        """Convert the counter's next readings to times."""
        if len(times) == 0:
            return times
        span = 1 << self.bits
        step = np.diff(times, prepend=self.last if self.known else times[0])
        turns = self.turns + np.cumsum((step < -(span // 2)).astype(np.int64) - (step >= span - span // 128))
        # A late event can only undo a wrap that was seen, so the number of turns never falls below zero.
        turns -= np.minimum(np.minimum.accumulate(turns), 0)
        self.known, self.last, self.turns = 1, int(times[-1]), int(turns[-1])
        grown: Times = times + span * turns
        return grown


def unwrap(times: Times, bits: int) -> Times:
    """Convert all readings of a counter of `bits` bits to times that keep growing after a wrap."""
    return Clock(bits).unwrap(times)
