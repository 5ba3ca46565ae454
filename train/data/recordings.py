"""Labelled event recordings, kept as one array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.settings import Origin
from axonnx.runtime.events.arrays import EVENT, check_events, sort_events
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.readers import Recording, read_recordings
from axonnx.train.data.digest import digest_of
from axonnx.train.data.labels import check_groups, check_labels

# Events looked at in one go when a whole data set is checked; it may be larger than memory.
BLOCK = 1 << 22
RAW = np.dtype((np.void, EVENT.itemsize))


class Place(NamedTuple):
    """Where a recording was read: a file, and its number among the recordings of that file."""

    path: Path
    number: int = 0


@dataclass(frozen=True, eq=False)
class Recordings:
    """N recordings one after the other; `offsets[i] : offsets[i + 1]` are the events of recording i.

    Times count from the start of each recording, in µs, and never fall within one. `origin` says where that start is
    on the clock of the original: its zero, or the first event.
    `groups`, when known, says who was recorded (a speaker, a user), `places` which file each was read from.
    """

    events: NDArray[np.void]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    sensor: Sensor
    groups: NDArray[np.int64] | None = None
    origin: Origin = "zero"
    places: tuple[Place, ...] | None = None

    def __post_init__(self) -> None:
        check_labels(self.labels, self.classes, "recordings")
        if self.places is not None and len(self.places) != len(self.labels):
            raise AxonnxError(f"recordings: {len(self.places)} places of files for {len(self.labels)} recordings")
        check_groups(self.groups, len(self.labels), "recordings")
        _check_offsets(self.offsets, len(self.events), len(self.labels))
        if self.events.dtype != EVENT or self.events.ndim != 1:
            raise AxonnxError(f"recordings: events are {self.events.dtype}, {self.events.ndim}-d; expected 1-d {EVENT}")
        for start in range(0, len(self.events), BLOCK):
            _check_block(self.events[max(start - 1, 0) : start + BLOCK], max(start - 1, 0), self)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> NDArray[np.void]:
        """The events of one recording."""
        place = range(len(self))[index]
        return self.events[self.offsets[place] : self.offsets[place + 1]]

    def take(self, indices: ArrayLike) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Events and offsets of these recordings, in this order."""
        parts = [self[int(index)] for index in np.atleast_1d(np.asarray(indices, dtype=np.int64))]
        return join_events(parts)

    def subset(self, indices: ArrayLike) -> Recordings:
        """These recordings only, in this order."""
        chosen = np.asarray(indices, dtype=np.int64)
        groups = None if self.groups is None else self.groups[chosen]
        places = None if self.places is None else tuple(self.places[index] for index in chosen)
        events, offsets = self.take(chosen)
        return Recordings(events, offsets, self.labels[chosen], self.classes, self.sensor, groups, self.origin, places)

    def original(self, index: int) -> Recording:
        """The recording read again from its file, on the clock of its file; without one, the events as they are here.

        Binned from `origin`, both give the frames that training sees.
        """
        if self.places is None:
            return Recording(self[index], "memory", self.sensor)
        path, number = self.places[index]
        return _of_file(path)[number]

    @cached_property
    def digest(self) -> str:
        """sha256 of what is in here; not of where it was read."""
        return digest_of((self.classes, self.sensor.model_dump()), self.offsets, self.labels, self.groups, self.events)


@lru_cache(maxsize=1)
def _of_file(path: Path) -> list[Recording]:
    """Of a file with many, they are read once."""
    return read_recordings(path)


def join_events(parts: Iterable[NDArray[np.void]]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Recordings one after the other, and where each begins [N + 1]."""
    kept = list(parts)
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum([len(part) for part in kept], out=offsets[1:])
    # As plain bytes: numpy joins structured arrays field by field, many times slower.
    raw = [np.ascontiguousarray(check_events(part)).view(RAW) for part in [np.zeros(0, EVENT), *kept]]
    return np.concatenate(raw).view(EVENT), offsets


def from_first_event(events: NDArray[np.void]) -> NDArray[np.void]:
    """The events by time, counted from the first: many cameras count from when they were switched on."""
    moved = sort_events(events).copy()
    if len(moved):
        moved["t"] -= moved["t"][0]
    return moved


def _check_offsets(offsets: NDArray[np.int64], events: int, recordings: int) -> None:
    if offsets.dtype != np.int64 or offsets.shape != (recordings + 1,):
        raise AxonnxError(
            f"recordings: offsets are {offsets.dtype} of shape {offsets.shape}; "
            f"{recordings} labels need int64 of shape ({recordings + 1},)"
        )
    if offsets[0] != 0 or offsets[-1] != events or (np.diff(offsets) < 0).any():
        raise AxonnxError(
            f"recordings: offsets must rise from 0 to the number of events, {events}; "
            f"they run from {offsets[0]} to {offsets[-1]}, smallest step {np.diff(offsets).min(initial=0)}"
        )


def _check_block(block: NDArray[np.void], first: int, data: Recordings) -> None:
    """Times and places of some events, the first of which is event number `first`."""
    sensor, times = data.sensor, block["t"]
    _refuse(times < 0, first, data, "has a negative time")
    _refuse(block["x"] >= sensor.width, first, data, f"lies outside the sensor's width {sensor.width}")
    _refuse(block["y"] >= sensor.height, first, data, f"lies outside the sensor's height {sensor.height}")
    _refuse(block["p"] >= sensor.polarities, first, data, f"has none of the sensor's {sensor.polarities} polarities")
    falls = np.flatnonzero(np.diff(times) < 0) + 1
    within = np.zeros(len(block), np.bool_)
    within[falls] = ~np.isin(falls + first, data.offsets)
    _refuse(within, first, data, "is earlier than the one before it; sort the recording by time")


def _refuse(bad: NDArray[np.bool_], first: int, data: Recordings, what: str) -> None:
    if bad.any():
        event = first + int(np.argmax(bad))
        recording = int(np.searchsorted(data.offsets, event, side="right")) - 1
        place = event - data.offsets[recording]
        raise AxonnxError(f"recordings: event {place} of recording {recording} {what} ({data.events[event]})")
