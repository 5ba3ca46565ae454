"""Timestamps that start again at zero when their bits run out."""

import numpy as np
from numpy.typing import NDArray


def unwrap(times: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Times that keep growing where a counter of `bits` bits began anew.

    A step back by more than half the counter's range is a wrap. A step forward by nearly all of it (127/128) after a
    wrap is an event from before the wrap that came late. Smaller steps back are left as they are: events out of order.
    A silence longer than the whole range cannot be seen in such a file.
    """
    span = 1 << bits
    step = np.diff(times)
    turns = np.cumsum((step < -(span // 2)).astype(np.int64) - (step >= span - span // 128))
    # A late event can only undo a wrap that was seen: never fall below zero turns.
    turns -= np.minimum(np.minimum.accumulate(turns), 0)
    grown = times.copy()
    grown[1:] += span * turns
    return grown
