"""How recordings become samples: brought onto the network's sensor as `axonnx run` does it, then cut into windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.streams.adapt import Adapter, Region, centred, size
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.digest import digest_of
from axonnx.train.data.event_store import EventStore, Sample
from axonnx.train.data.recordings import Place, Recordings, from_first_event
from axonnx.train.data.splits import DataSplits
from axonnx.train.data.windows import Window, Windows, windows_of

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
