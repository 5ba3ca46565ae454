"""From the sensor that made the events to the sensor that a network was made for, in whole numbers.

    crop    a region of the sensor, from (left, top) on; what lies beside it is dropped and counted
    resize  pixel x of W becomes pixel (2x + 1)·V // 2W of V: the one under its middle

First the one, then the other where the region is not as large as the network's sensor. Training and every way to run
a file use this rule. A sensor larger than the network's is refused unless one of the two is asked for. A smaller one
keeps its coordinates.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, check_events, pick_events
from axonnx.runtime.events.sensor import Sensor

Crop = tuple[int, int] | Literal["centre"]


class Region(NamedTuple):
    """Pixels of a sensor: columns left … left + width − 1, rows top … top + height − 1."""

    left: int
    top: int
    width: int
    height: int


class Adapter:
    """Moves events from one sensor onto another, and counts by reason those that it drops."""

    def __init__(
        self,
        target: Sensor,
        source: Sensor | None = None,
        *,
        resize: bool = False,
        crop: Crop | None = None,
        region: Region | None = None,
        merge_polarities: bool = False,
    ) -> None:
        assert region is None or (source is not None and not resize and crop is None)
        if resize and crop is not None:
            raise AxonnxError("resizing and cropping exclude each other: give one of them")
        if (resize or crop == "centre") and source is None:
            raise AxonnxError(
                f"the source does not say how large its sensor is, so it cannot be fitted to {size(target)}: state it, "
                f"e.g. 128x128",
                options=("sensor",),
            )
        self.target, self.source = target, source
        self.merge_polarities = merge_polarities
        self.dropped = {"off_sensor": 0, "cropped": 0}
        self.region = region or _region(target, source, resize, crop)
        if source is not None and self.region is None:
            refuse_larger(source, target)
        if source is not None and source.polarities > target.polarities and not merge_polarities:
            raise AxonnxError(
                f"the source's sensor has {source.polarities} polarities and the network's {target.polarities}; "
                f"merge polarities to take all events for one",
                options=("merge_polarities",),
            )

    def __call__(self, events: Events) -> Events:
        """The events on the network's sensor; a copy where anything changes."""
        if self.source is not None:
            wrong = (check_events(events)["x"] >= self.source.width) | (events["y"] >= self.source.height)
            events = self._without(events, wrong, "off_sensor")
        if self.region is not None:
            events = self._moved(events, self.region)
        if self.merge_polarities:
            events = events.copy()
            events["p"] = 0
        return events

    def _without(self, events: Events, wrong: NDArray[np.bool_], reason: str) -> Events:
        if not wrong.any():
            return events
        self.dropped[reason] += int(wrong.sum())
        return pick_events(events, ~wrong)

    def _moved(self, events: Events, region: Region) -> Events:
        x, y = events["x"].astype(np.int64) - region.left, events["y"].astype(np.int64) - region.top
        inside = (x >= 0) & (x < region.width) & (y >= 0) & (y < region.height)
        kept = self._without(events, ~inside, "cropped").copy()
        kept["x"] = scale(x[inside], region.width, self.target.width)
        kept["y"] = scale(y[inside], region.height, self.target.height)
        return kept


def scale(positions: NDArray[np.integer], old: int, new: int) -> NDArray[np.int64]:
    """(2x + 1)·new // (2·old)"""
    middle: NDArray[np.int64] = (2 * positions.astype(np.int64) + 1) * new // (2 * old)
    return middle


def refuse_larger(source: Sensor, target: Sensor) -> None:
    """Refuse a sensor that sticks out of the network's."""
    if source.width > target.width or source.height > target.height:
        raise AxonnxError(
            f"the source's sensor is {size(source)} and the network's {size(target)}: say how it is to fit, "
            f"resized, or cropped at the centre or at X,Y",
            options=("resize", "crop"),
        )


def size(sensor: Sensor) -> str:
    """Width × height."""
    return f"{sensor.width}×{sensor.height}"


def centred(sensor: Sensor, width: int, height: int) -> Region:
    """As many pixels of the sensor's middle; from its corner on where it has fewer."""
    return Region(max(0, sensor.width - width) // 2, max(0, sensor.height - height) // 2, width, height)


def _region(target: Sensor, source: Sensor | None, resize: bool, crop: Crop | None) -> Region | None:
    if resize:
        assert source is not None
        return Region(0, 0, source.width, source.height)
    if crop is None:
        return None
    if crop == "centre":
        assert source is not None
        return centred(source, target.width, target.height)
    left, top = crop
    outside = source is not None and (left >= source.width or top >= source.height)
    if left < 0 or top < 0 or outside:
        of = f" of {size(source)}" if source is not None else ""
        raise AxonnxError(f"crop {left},{top} does not begin on the sensor{of}; give the left and the top pixel")
    return Region(left, top, target.width, target.height)
