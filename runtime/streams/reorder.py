"""Events that arrive out of order: sorted where they are late by no more than a tolerance, else refused or dropped.

An event's lateness is how far it lies behind the latest event before it. It depends on the stream alone, never on how
the stream is cut into chunks. Events are held back until no event within the tolerance can come before them, so a
tolerance costs as much delay; with a tolerance of 0 nothing is held.
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
    """How many events lie before one that stands earlier."""
    times = np.ascontiguousarray(check_events(events)["t"])
    return int((np.maximum.accumulate(times) > times).sum())


class Reorder:
    """A buffer that gives events in order of time, equal times in the order of their arrival."""

    def __init__(self, tolerance_us: int = 0, on_disorder: OnDisorder = "refuse") -> None:
        if tolerance_us < 0:
            raise AxonnxError(f"tolerance_us is {tolerance_us}; expected microseconds from 0 on")
        self.tolerance_us, self.on_disorder = tolerance_us, on_disorder
        self.dropped = 0  # later than the tolerance
        self.sorted = 0  # late, and put where they belong
        self._latest = INT64_MIN
        self._held: Events = np.empty(0, EVENT)
        self._seen = 0

    def push(self, events: Events) -> Events:
        """The events, of these and of those held, whose order is settled."""
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
        """The events still held; no more are to come."""
        held, self._held = self._held, np.empty(0, EVENT)
        return held

    def _within(
        self, events: Events, times: NDArray[np.int64], latest: NDArray[np.int64], late: NDArray[np.bool_]
    ) -> Events:
        """The events without those beyond the tolerance."""
        # Modulo 2^64 the difference of two int64 is exact where the first is not the smaller.
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
                f"stream: more than {MOST_HELD} events lie within the tolerance of {self.tolerance_us} µs and have to "
                f"be held back; give a smaller tolerance"
            )
        return waiting[:ready]

    def _fault(self, first: int, times: NDArray[np.int64], lateness: int) -> AxonnxError:
        return AxonnxError(
            f"stream: event {self._seen + first} (t = {int(times[first])} µs) lies {lateness} µs before one that came "
            f"earlier; sorted are events up to {self.tolerance_us} µs late. Raise the tolerance, or drop and count "
            f"such events (a whole recording can be sorted)",
            options=("tolerance_us", "on_disorder"),
        )
