"""Notice that the clock of a live source went back, as after a camera's reset, and begin a new epoch there.

Without it, every event after a reset would be late, so the network would see nothing more. A single event that is far
behind says nothing: datagrams are delayed, and anyone can send one. So events that are far behind are held until more
of them follow, without one of the old clock between them. The result depends only on the stream, not on the chunks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from axonnx.runtime.events.arrays import EVENT, Events, concatenate_events

BACK = 1_000_000  # µs: events that are further behind the latest one may belong to a clock that began again
CONFIRM = 64  # such events in a row confirm it, or fewer that last for a second by their own clock
INT64_MIN = -(2**63)


class Piece(NamedTuple):
    """Events of one epoch. ``back_from`` is the last time of the epoch before, if a new epoch begins with them."""

    events: Events
    back_from: int | None = None


class Epochs:
    """Cut a stream of events where its clock went back for good."""

    def __init__(self) -> None:
        self._latest = INT64_MIN
        self._held: Events = np.empty(0, EVENT)

    def push(self, events: Events) -> list[Piece]:
        """Return the events whose epoch is known, held ones included."""
        events, self._held = concatenate_events([self._held, events]), events[:0]
        found: list[Piece] = []
        back_from: int | None = None
        while len(events):
            at, confirmed = self._cut(events)
            if at or back_from is not None:
                found.append(Piece(events[:at], back_from))
                self._latest = max(self._latest, int(events["t"][:at].max(initial=INT64_MIN)))
            events, back_from = events[at:], None
            if not confirmed:
                self._held = events.copy()
                break
            back_from, self._latest = self._latest, int(events["t"][0])
        return found

    def flush(self) -> list[Piece]:
        """Return the events that still wait, as late ones; no more events may follow."""
        held, self._held = self._held, self._held[:0]
        return [Piece(held)] if len(held) else []

    def advance(self, t_us: int) -> list[Piece]:
        """Return the events that still wait, as late ones, if the old clock is known to have reached a later time."""
        if t_us <= self._latest:
            return []
        self._latest = t_us
        return self.flush()

    def state(self) -> dict[str, Any]:
        """Return what decides about the next events, as plain values."""
        return {"latest": self._latest, "held": [list(event) for event in self._held.tolist()]}

    def restore(self, saved: Mapping[str, Any]) -> int:
        """Continue from a saved state, and return how many events wait.

        Raises:
            ValueError: If ``state`` cannot have returned it.
        """
        if not isinstance(saved, Mapping):
            raise ValueError(f"the clock is {saved!r}; expected a mapping")
        latest, held = saved.get("latest", INT64_MIN), saved.get("held", [])
        if type(latest) is not int or not INT64_MIN <= latest < -INT64_MIN or not isinstance(held, list):
            raise ValueError(f"the clock reached {latest!r}; expected a 64-bit number of microseconds")
        if len(held) >= CONFIRM or not all(_is_event(row) and row[0] < latest - BACK for row in held):
            raise ValueError(
                f"{len(held)} events wait; expected fewer than {CONFIRM}, each of them t, x, y, p and late"
            )
        self._latest, self._held = latest, np.array([tuple(row) for row in held], EVENT)
        return len(held)

    def _cut(self, events: Events) -> tuple[int, bool]:
        """Return where events begin that are far behind and confirm a new epoch, or that are held at the end."""
        times = np.ascontiguousarray(events["t"])
        latest = np.maximum.accumulate(np.concatenate([[self._latest], times]))[:-1]
        behind = times < np.maximum(latest, INT64_MIN + BACK) - BACK
        if not behind.any():
            return len(events), False
        edges = np.flatnonzero(np.diff(np.concatenate([[0], behind.view(np.int8), [0]])))
        begins, ends = edges[::2], edges[1::2]  # of the events in a row that are behind
        last = np.ascontiguousarray(np.maximum.reduceat(np.append(times, INT64_MIN), edges)[::2])
        lasts = last.view(np.uint64) - times[begins].view(np.uint64)  # exact, as two int64 may be further apart
        sure = (ends - begins >= CONFIRM) | (lasts >= np.uint64(BACK))
        if sure.any():
            return int(begins[np.argmax(sure)]), True
        return (int(begins[-1]), False) if ends[-1] == len(events) else (len(events), False)


def _is_event(row: object) -> bool:
    ranges = (range(INT64_MIN, -INT64_MIN), range(2**16), range(2**16), range(2**8))
    return (
        isinstance(row, list)
        and len(row) == 4
        and all(type(n) is int and n in r for n, r in zip(row, ranges, strict=True))
    )
