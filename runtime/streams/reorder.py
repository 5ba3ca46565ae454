"""Sort events that arrive up to a tolerance late, and refuse or drop later ones.

The lateness of an event is its distance in time to the latest event before it. It depends only on the stream, not on
the chunks. Events wait until no event within the tolerance can come before them. So the delay equals the tolerance;
with a tolerance of 0 no event waits.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import EVENT, Events, check_events, concatenate_events, pick_events, sort_events

OnDisorder = Literal["refuse", "drop"]
MOST_HELD = 2**22  # events that wait, 64 MB
INT64_MIN = -(2**63)


def count_late(events: Events) -> int:
    """Count the events whose time is before that of an earlier event."""
    times = np.ascontiguousarray(check_events(events)["t"])
    return int((np.maximum.accumulate(times) > times).sum())


class Reorder:
    """A buffer that returns events in order of time, and events with equal times in order of arrival.

    Args:
        tolerance_us: Largest lateness that is sorted, in microseconds.
        on_disorder: What to do with later events.
    """

    def __init__(self, tolerance_us: int = 0, on_disorder: OnDisorder = "refuse") -> None:
        if tolerance_us < 0:
            raise AxonnxError(f"tolerance_us is {tolerance_us}; expected 0 or more microseconds")
        self.tolerance_us, self.on_disorder = tolerance_us, on_disorder
        self.dropped = 0  # later than the tolerance
        self.sorted = 0  # late, and moved to its place
        self._latest = INT64_MIN
        self._held: Events = np.empty(0, EVENT)
        self._seen = 0

    def push(self, events: Events) -> Events:
        """Add events; return the ones whose order is settled."""
        if len(check_events(events)) == 0:
            return events
        times = np.ascontiguousarray(events["t"])
        if times[0] < self._latest or (times[1:] < times[:-1]).any():
            latest = np.maximum(np.maximum.accumulate(times), self._latest)
            events = self._within(events, times, latest, latest > times)
        self._latest = max(self._latest, int(times.max()))
        self._seen += len(times)
        return self._settled(events)

    def flush(self) -> Events:
        """Return the events that still wait; no more events may follow."""
        held, self._held = self._held, np.empty(0, EVENT)
        return held

    def restart(self) -> None:
        """Forget the latest time, because the source's clock began again; flush first."""
        self._latest = INT64_MIN

    def _within(
        self, events: Events, times: NDArray[np.int64], latest: NDArray[np.int64], late: NDArray[np.bool_]
    ) -> Events:
        """Return the events within the tolerance."""
        # Modulo 2^64 the difference of two int64 is exact if the first is not smaller than the second.
        lateness = latest.view(np.uint64) - times.view(np.uint64)
        beyond = late & (lateness > np.uint64(self.tolerance_us))
        if beyond.any() and self.on_disorder == "refuse":
            raise self._fault(int(np.argmax(beyond)), times, int(lateness[int(np.argmax(beyond))]))
        self.dropped += int(beyond.sum())
        self.sorted += int((late & ~beyond).sum())
        return pick_events(events, ~beyond)

    def _settled(self, events: Events) -> Events:
        if self.tolerance_us == 0:
            return events
        waiting = sort_events(concatenate_events([self._held, events]))
        limit = max(self._latest - self.tolerance_us, INT64_MIN)
        ready = int(np.searchsorted(waiting["t"], np.int64(limit), side="right"))
        self._held = concatenate_events([waiting[ready:]])  # a copy: a view would keep all of them in memory
        if len(self._held) > MOST_HELD:
            raise AxonnxError(
                f"stream: more than {MOST_HELD} events are within the tolerance of {self.tolerance_us} µs and would "
                f"have to "
                f"wait in memory; give a smaller tolerance"
            )
        return waiting[:ready]

    def _fault(self, first: int, times: NDArray[np.int64], lateness: int) -> AxonnxError:
        return AxonnxError(
            f"stream: event {self._seen + first} (t = {int(times[first])} µs) is {lateness} µs late; events up to "
            f"{self.tolerance_us} µs late are sorted. Raise the tolerance, or drop and count late events (a whole "
            f"recording can also be sorted)",
            options=("tolerance_us", "on_disorder"),
        )
