"""How recordings become samples: brought onto the network's sensor as `axonnx run` does it, then cut into windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.streams.adapt import Adapter, Region, centred, size
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore, Sample
from axonnx.train.data.recordings import Place, Recordings, digest_of, from_first_event
from axonnx.train.data.splits import DataSplits


class Windows(BaseModel):
    """How recordings are cut: pieces of a label file first, then windows of time or events. Off unless asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    ms: PositiveFloat | None = Field(default=None, description="cut recordings into windows of this many milliseconds")
    events: PositiveInt | None = Field(default=None, description="cut recordings into windows of this many events")
    overlap: float = Field(default=0.0, ge=0, lt=1, description="share of a window that the next one repeats")
    least: float = Field(
        default=0.5, gt=0, le=1, description="a window that a recording's end cuts off is kept from this share of it on"
    )
    labels: str | None = Field(
        default=None,
        description="csv in the data's folder with columns file,start,end,label (µs on the recording's clock), or one "
        "beside each recording: '*_labels.csv', where * is the recording's name",
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.ms is not None and self.events is not None:
            raise ValueError("windows are of so many ms or of so many events: give one of the two")
        if self.overlap and self.ms is None and self.events is None:
            raise ValueError("overlap is of windows: give ms or events with it")
        return self

    @property
    def is_off(self) -> bool:
        """Whether recordings stay whole."""
        return self.ms is None and self.events is None and self.labels is None

    @property
    def duration_us(self) -> int | None:
        """Length of a window, where it is of time."""
        return None if self.ms is None else max(1, round(1000 * self.ms))


class Window(NamedTuple):
    """Events first … last − 1 of a recording, which are those of start … stop − 1 µs on its clock."""

    first: int
    last: int
    start: int
    stop: int


def windows_of(times: NDArray[np.int64], piece: Window, how: Windows) -> Iterator[Window]:
    """Return the windows of a piece of a recording; `times` of the recording never fall. Empty ones are left out."""
    if how.duration_us is not None:
        yield from _by_time(times, piece, how, how.duration_us)
    elif how.events is not None:
        yield from _by_events(times, piece, how, how.events)
    elif piece.last > piece.first:
        yield piece


def _by_time(times: NDArray[np.int64], piece: Window, how: Windows, length: int) -> Iterator[Window]:
    """[start + k·step, + length), as far as `least` of it lies in the piece; silence is passed over at once."""
    step, start = _step(length, how), piece.start
    end = piece.stop - ceil(how.least * length)
    while start <= end:
        stop = min(start + length, piece.stop)
        first, last = (int(edge) for edge in np.searchsorted(times, (start, stop)))
        if last > first:
            yield Window(first, last, start, stop)
        elif first >= piece.last:
            return
        following = int(times[first]) if last == first else start
        start += max(1, (following - length - start) // step + 1) * step


def _by_events(times: NDArray[np.int64], piece: Window, how: Windows, length: int) -> Iterator[Window]:
    """Events k·step … k·step + length − 1, as far as `least` of them are there; those of one µs stay together."""
    step, room = _step(length, how), piece.last - piece.first - ceil(how.least * length)
    for begin in range(piece.first, piece.first + room + 1, step):
        first, last = (_edge(times, edge, piece.last) for edge in (begin, begin + length))
        if last > first:
            yield Window(first, last, int(times[first]), int(times[last - 1]) + 1)


def _edge(times: NDArray[np.int64], event: int, end: int) -> int:
    """Return the first event of the same µs."""
    return end if event >= end else int(np.searchsorted(times, times[event]))


def _step(length: int, how: Windows) -> int:
    return max(1, round(length * (1 - how.overlap)))


Sides = tuple[int, int]
Crop = tuple[int, int] | tuple[int, int, int, int]


@dataclass(frozen=True)
class Shaping:
    """What a run asks for: a region of the sensor, another size, windows. Nothing unless given."""

    resize: Sides | None = None
    crop: Crop | None = None
    windows: Windows = field(default_factory=Windows)

    @property
    def is_off(self) -> bool:
        """Whether recordings stay as they are."""
        return self.resize is None and self.crop is None and self.windows.is_off

    def as_dict(self) -> dict[str, Any]:
        """For keys of stored data."""
        return {"resize": self.resize, "crop": self.crop, "windows": self.windows.model_dump()}

    def fit(self, sensor: Sensor) -> FitContract | None:
        """Return the region of this sensor that is taken; None if it is taken as it is."""
        if self.crop is None and self.resize is None:
            return None
        region = Region(0, 0, sensor.width, sensor.height) if self.crop is None else _region(self.crop, sensor)
        return FitContract(sensor=sensor, **region._asdict())

    def target(self, sensor: Sensor) -> Sensor:
        """Return the sensor that samples are on."""
        fit = self.fit(sensor)
        if fit is None:
            return sensor
        width, height = self.resize or (fit.width, fit.height)
        return Sensor(width=width, height=height, polarities=sensor.polarities)

    def fitted(self, events: NDArray[np.void], sensor: Sensor) -> NDArray[np.void]:
        """Events on the sensor that samples are on."""
        fit = self.fit(sensor)
        if fit is None:
            return events
        region = Region(fit.left, fit.top, fit.width, fit.height)
        return Adapter(self.target(sensor), sensor, region=region)(events)

    def samples(
        self, events: NDArray[np.void], pieces: Sequence[tuple[int, int, int]] | None
    ) -> Iterator[tuple[Window, int, NDArray[np.void]]]:
        """Windows of fitted events in the order of time, with the label of their piece, counted from their start.

        `pieces` are (start, end, label); None is the whole recording, with the label −1.
        """
        times = np.ascontiguousarray(events["t"])
        for start, stop, label in [_whole(times)] if pieces is None else pieces:
            first, last = (int(edge) for edge in np.searchsorted(times, (start, stop)))
            for window in windows_of(times, Window(first, last, start, stop), self.windows):
                moved = events[window.first : window.last].copy()
                moved["t"] -= window.start
                yield window, label, moved


def _whole(times: NDArray[np.int64]) -> tuple[int, int, int]:
    return (int(times[0]), int(times[-1]) + 1, -1) if len(times) else (0, 0, -1)


def _region(crop: Crop, sensor: Sensor) -> Region:
    region = Region(*crop) if len(crop) == 4 else centred(sensor, *crop)
    left, top, width, height = region
    if left + width > sensor.width or top + height > sensor.height:
        raise AxonnxError(
            f"data.crop: {width}×{height} pixels from {left},{top} on do not lie on the recordings' "
            f"sensor of {size(sensor)}; give a width and height up to that, or left, top, width, height"
        )
    return region


def shaped(splits: DataSplits, how: Shaping) -> DataSplits:
    """Bring the recordings of a data set onto another sensor and cut them into windows; the result is kept on disk."""
    if how.is_off:
        return splits
    if splits.kind != "events":
        raise AxonnxError(f"data.crop, data.resize and data.windows are for events; {splits.name} has {splits.kind}")
    if how.windows.labels is not None:
        raise AxonnxError(f"data.windows.labels is for a folder of one's own recordings; {splits.name} has labels")
    parts: dict[str, Any] = {
        name: _shaped(data, how) for name, data in splits.parts.items() if isinstance(data, Recordings)
    }
    return replace(splits, **parts)


def _shaped(data: Recordings, how: Shaping) -> Recordings:
    def convert(facts: dict[str, Any]) -> Iterator[Sample]:
        for number in range(len(data)):
            events = how.fitted(data[number], data.sensor)
            if how.windows.is_off:
                yield Sample(from_first_event(events) if data.origin == "first" else events, 0, source=number)
            else:
                for window, _, moved in how.samples(events, None):
                    yield Sample(moved, 0, source=number, start=window.start, stop=window.stop)

    found = EventStore(cache_folder()).keep_as(digest_of({"data": data.digest, "how": how.as_dict()}), convert)
    source = found.columns["source"]
    if not len(source):
        raise AxonnxError("data.windows: no recording is as long as a window; make it shorter, or data.windows.least")
    whole = how.windows.is_off
    return Recordings(
        found.events,
        found.offsets,
        data.labels[source],
        data.classes,
        how.target(data.sensor),
        None if data.groups is None else data.groups[source],
        data.origin,
        _places(data, found.columns, whole),
        None if whole else source,
        how.fit(data.sensor),
    )


def _places(data: Recordings, columns: dict[str, NDArray[np.int64]], whole: bool) -> tuple[Place, ...] | None:
    """Where the samples can be read again: from the files of the whole recordings, whose clock begins at zero."""
    if data.places is None or (data.origin == "first" and not whole):
        return None
    rows = zip(*(columns[name].tolist() for name in ("source", "start", "stop")), strict=True)
    where = [(data.places[source], start, stop) for source, start, stop in rows]
    return tuple(place if whole else Place(place.path, place.number, start, stop) for place, start, stop in where)
