"""Labelled data: recordings of events, kept as one array, and frames; rules for labels; fingerprints of contents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.recordings import bin_batch
from axonnx.runtime.binning.settings import Binning, Origin
from axonnx.runtime.events.arrays import EVENT, Sensor, check_events, concatenate_events, sort_events
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers import Recording, read_recordings

# Events looked at in one go when a whole data set is checked; it may be larger than memory.
BLOCK = 1 << 22


class Place(NamedTuple):
    """Where a recording was read: a file, its number among those of the file, and its window [start, stop) of µs."""

    path: Path
    number: int = 0
    start: int | None = None
    stop: int | None = None

    def read(self) -> Recording:
        """Read the events of this place, on the clock of the file and in the order of time."""
        found = _of_file(self.path)[self.number]
        events = sort_events(found.events)
        if self.start is not None and self.stop is not None:
            events = events[slice(*np.searchsorted(events["t"], (self.start, self.stop)))]
        return replace(found, events=events)


@dataclass(frozen=True, eq=False)
class Recordings:
    """N recordings one after the other; `offsets[i] : offsets[i + 1]` are the events of recording i.

    Times count from the start of each recording, in µs, and never fall within one. `origin` says where that start is
    on the clock of the original: its zero, or the first event. Windows of longer recordings count from where the window
    starts; `units` says which recording each was cut from.
    `groups`, when known, says who was recorded (a speaker, a user), `places` which file each was read from, `fit` which
    part of a larger sensor became `sensor`. Where `chosen` is given, these recordings alone are there, in this order.
    """

    events: NDArray[np.void]
    offsets: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    sensor: Sensor
    groups: NDArray[np.int64] | None = None
    origin: Origin = "zero"
    places: tuple[Place, ...] | None = None
    units: NDArray[np.int64] | None = None
    fit: FitContract | None = None
    chosen: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_labels(self.labels, self.classes, "recordings")
        check_groups(self.units, len(self.labels), "recordings")
        if self.places is not None and len(self.places) != len(self.labels):
            raise AxonnxError(f"recordings: {len(self.places)} places of files for {len(self.labels)} recordings")
        check_groups(self.groups, len(self.labels), "recordings")
        if self.chosen is not None:
            assert len(self.chosen) == len(self.labels)
            return  # what they were chosen from was looked at
        _check_offsets(self.offsets, len(self.events), len(self.labels))
        if self.events.dtype != EVENT or self.events.ndim != 1:
            raise AxonnxError(f"recordings: events are {self.events.dtype}, {self.events.ndim}-d; expected 1-d {EVENT}")
        for start in range(0, len(self.events), BLOCK):
            _check_block(self.events[max(start - 1, 0) : start + BLOCK], max(start - 1, 0), self)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> NDArray[np.void]:
        """Return the events of one recording."""
        place = range(len(self))[index]
        at = place if self.chosen is None else self.chosen[place]
        return self.events[self.offsets[at] : self.offsets[at + 1]]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Events of each recording."""
        sizes = np.diff(self.offsets)
        return sizes if self.chosen is None else sizes[self.chosen]

    def middle(self, index: int) -> NDArray[np.float64]:
        """Mean time, column and row of a recording's events; 0 where it has none."""
        if index not in self._middles:
            events = self[index]
            self._middles[index] = np.array([events[axis].mean() if len(events) else 0.0 for axis in "txy"])
        return self._middles[index]

    @cached_property
    def _middles(self) -> dict[int, NDArray[np.float64]]:
        return {}

    def take(self, indices: ArrayLike) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Events and offsets of these recordings, in this order."""
        parts = [self[int(index)] for index in np.atleast_1d(np.asarray(indices, dtype=np.int64))]
        return join_events(parts)

    def subset(self, indices: ArrayLike) -> Recordings:
        """Take these recordings only, in this order; events on disk stay there."""
        chosen = np.asarray(indices, dtype=np.int64)
        about = {name: _at(getattr(self, name), chosen) for name in ("labels", "groups", "units")}
        places = None if self.places is None else tuple(self.places[index] for index in chosen)
        if isinstance(self.events, np.memmap):
            on_disk = chosen if self.chosen is None else self.chosen[chosen]
            return replace(self, **about, places=places, chosen=on_disk)
        events, offsets = self.take(chosen)
        return replace(self, events=events, offsets=offsets, **about, places=places)

    def to_frames(self, bins: int, duration_ms: float) -> NDArray[np.uint8]:
        """Count the events of each recording in equal time bins, for a training loop of your own.

        Args:
            bins: Number of bins T.
            duration_ms: Length of all bins together; later events are left out.

        Returns:
            Frames [N, T, 2, H, W], one channel for each polarity.
        """
        binning = Binning.over(round(1000 * duration_ms), bins, self.sensor)
        return bin_batch(*self.take(range(len(self))), binning).frames

    def original(self, index: int) -> Recording:
        """Read the recording again, on the clock of its file; without a file, return the events as they are here.

        Binned from `origin` (a window: from its start), both give the frames that training sees.
        """
        if self.places is None:
            return Recording(self[index], "memory", self.sensor)
        return self.places[index].read()

    @cached_property
    def digest(self) -> str:
        """sha256 of what is in here; not of where it was read."""
        about = (self.classes, self.sensor.model_dump())
        if self.chosen is None:
            return digest_of(about, self.offsets, self.labels, self.groups, self.events)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        pieces = Pieces(EVENT, (int(offsets[-1]),), (self[index] for index in range(len(self))))
        return digest_of(about, offsets, self.labels, self.groups, pieces)


def _at(values: NDArray[np.int64] | None, indices: NDArray[np.int64]) -> Any:
    return None if values is None else values[indices]


@lru_cache(maxsize=1)
def _of_file(path: Path) -> list[Recording]:
    """Of a file with many, they are read once."""
    return read_recordings(path)


def join_events(parts: Iterable[NDArray[np.void]]) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return recordings one after the other, and where each begins [N + 1]."""
    kept = list(parts)
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum([len(part) for part in kept], out=offsets[1:])
    return concatenate_events([np.zeros(0, EVENT), *map(check_events, kept)]), offsets


def from_first_event(events: NDArray[np.void]) -> NDArray[np.void]:
    """Sort events and count time from the first: many cameras count from when they were switched on."""
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
    """Check times and places of some events, the first of which is event number `first`."""
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


@dataclass(frozen=True, eq=False)
class Frames:
    """N samples of small integers: sequences [N, T, C, H, W] or images [N, C, H, W].

    `groups`, when known, says who was recorded (a speaker, a user).
    """

    frames: NDArray[np.uint8]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    groups: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        check_labels(self.labels, self.classes, "frames")
        check_groups(self.groups, len(self.labels), "frames")
        shape = self.frames.shape
        if self.frames.dtype != np.uint8:
            raise AxonnxError(
                f"frames: values are {self.frames.dtype}; expected uint8 (whole numbers keep every sum exact)"
            )
        if len(shape) not in (4, 5) or 0 in shape[1:]:
            raise AxonnxError(f"frames: shape {shape}; expected [N, T, C, H, W] or [N, C, H, W], none of them empty")
        if shape[0] != len(self.labels):
            raise AxonnxError(f"frames: {shape[0]} samples but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_sequence(self) -> bool:
        """Whether samples have a time axis."""
        return self.frames.ndim == 5

    @property
    def channels(self) -> int:
        """The number of channels of a frame."""
        return int(self.frames.shape[-3])

    def subset(self, indices: ArrayLike) -> Frames:
        """Take these samples only, in this order."""
        chosen = np.asarray(indices, dtype=np.int64)
        groups = None if self.groups is None else self.groups[chosen]
        return Frames(self.frames[chosen], self.labels[chosen], self.classes, groups)

    @cached_property
    def digest(self) -> str:
        """sha256 of everything in here."""
        return digest_of(self.classes, self.labels, self.groups, self.frames)


def as_labels(values: ArrayLike) -> NDArray[np.int64]:
    """Labels, groups or offsets of a file as int64; anything but whole numbers is refused."""
    found = np.asarray(values)
    if found.dtype.kind not in "iu":
        raise AxonnxError(f"labels are {found.dtype}; expected whole numbers")
    return found.astype(np.int64)


def check_labels(labels: NDArray[np.int64], classes: tuple[str, ...], where: str) -> None:
    """Refuse labels that are no 1-d int64 array of indices into `classes`."""
    if labels.dtype != np.int64 or labels.ndim != 1:
        raise AxonnxError(f"{where}: labels are {labels.dtype} of shape {labels.shape}; expected int64 of shape (N,)")
    if len(set(classes)) != len(classes) or not classes:
        raise AxonnxError(f"{where}: classes must be different names, one at least; got {classes}")
    bad = np.flatnonzero((labels < 0) | (labels >= len(classes)))
    if bad.size:
        raise AxonnxError(
            f"{where}: label {labels[bad[0]]} of sample {bad[0]} has no class; "
            f"there are {len(classes)}, numbered 0 to {len(classes) - 1}"
        )


def check_groups(groups: NDArray[np.int64] | None, samples: int, where: str) -> None:
    """Refuse groups that are not one int64 for every sample."""
    if groups is not None and (groups.dtype != np.int64 or groups.shape != (samples,)):
        raise AxonnxError(
            f"{where}: groups are {groups.dtype} of shape {groups.shape}; {samples} samples need int64 ({samples},)"
        )


# Bytes hashed in one go; a memory-mapped array need not fit into memory.
BYTES_AT_ONCE = 1 << 26


class Pieces(NamedTuple):
    """An array of this type and shape that comes in pieces, one after the other along its first axis."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Iterable[NDArray[Any]]


def digest_of(description: Any, *arrays: NDArray[Any] | Pieces | None) -> str:
    """sha256 of a JSON-like description and of the arrays' types, shapes and contents."""
    state = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for array in arrays:
        state.update(b"none" if array is None else f"{array.dtype.descr}{array.shape}".encode())
        for part in array.parts if isinstance(array, Pieces) else () if array is None else (array,):
            _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, array: NDArray[Any]) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), BYTES_AT_ONCE):
        state.update(flat[start : start + BYTES_AT_ONCE])
