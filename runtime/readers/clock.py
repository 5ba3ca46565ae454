"""Timestamps that start again at zero when their bits run out."""

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.kernels.clock_slots import CLOCK_SLOTS, KNOWN, LAST, TURNS

Times = NDArray[np.int64]


class Clock:
    """A counter of `bits` bits, followed from block to block, so that times keep growing where it began anew.

    A step back by more than half the counter's range is a wrap. A step forward by nearly all of it (127/128) after a
    wrap is an event from before the wrap that came late. Smaller steps back are left as they are: events out of order.
    A silence longer than the whole range cannot be seen in such a file.
    """

    __slots__ = ("bits", "numbers")

    def __init__(self, bits: int) -> None:
        self.bits, self.numbers = bits, np.zeros(CLOCK_SLOTS, np.int64)

    @property
    def now(self) -> int | None:
        """The last time; None before the first."""
        return int(self.numbers[LAST] + (self.numbers[TURNS] << self.bits)) if self.numbers[KNOWN] else None

    def unwrap(self, times: Times) -> Times:
        """The next readings of the counter as times."""
        if len(times) == 0:
            return times
        span = 1 << self.bits
        step = np.diff(times, prepend=self.numbers[LAST] if self.numbers[KNOWN] else times[0])
        turns = self.numbers[TURNS] + np.cumsum((step < -(span // 2)).astype(np.int64) - (step >= span - span // 128))
        # A late event can only undo a wrap that was seen: never fall below zero turns.
        turns -= np.minimum(np.minimum.accumulate(turns), 0)
        self.numbers[[KNOWN, LAST, TURNS]] = 1, times[-1], turns[-1]
        grown: Times = times + span * turns
        return grown


def unwrap(times: Times, bits: int) -> Times:
    """Times that keep growing where a counter of `bits` bits began anew, all at once."""
    return Clock(bits).unwrap(times)
