"""From the sensor that made the events to the sensor that a network was made for, in whole numbers.

    resize  pixel x of W becomes pixel (2x + 1)·V // 2W of V: the one under its middle
    crop    the V × U pixels from (x0, y0) on; what lies beside them is dropped and counted

A sensor larger than the network's is refused unless one of the two is asked for. A smaller one keeps its coordinates.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, check_events
from axonnx.runtime.events.sensor import Sensor

Crop = tuple[int, int] | Literal["centre"]


class Adapter:
    """Moves events from one sensor onto another, and counts by reason those that it drops."""

    def __init__(
        self,
        target: Sensor,
        source: Sensor | None = None,
        *,
        resize: bool = False,
        crop: Crop | None = None,
        merge_polarities: bool = False,
    ) -> None:
        if resize and crop is not None:
            raise AxonnxError("resizing and cropping exclude each other: give one of them")
        if (resize or crop == "centre") and source is None:
            raise AxonnxError(
                f"the source does not say how large its sensor is, so it cannot be fitted to {size(target)}: state it, "
                f"e.g. 128x128",
                options=("sensor",),
            )
        self.target, self.source, self.resize = target, source, resize
        self.merge_polarities = merge_polarities
        self.dropped = {"off_sensor": 0, "cropped": 0}
        self.corner = _corner(target, source, crop)
        if source is not None and not resize and crop is None:
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
        if self.corner is not None:
            events = self._cropped(events, *self.corner)
        elif self.resize and self.source is not None:
            events = self._resized(events, self.source)
        if self.merge_polarities:
            events = events.copy()
            events["p"] = 0
        return events

    def _without(self, events: Events, wrong: NDArray[np.bool_], reason: str) -> Events:
        if not wrong.any():
            return events
        self.dropped[reason] += int(wrong.sum())
        return events[~wrong]

    def _cropped(self, events: Events, left: int, top: int) -> Events:
        x, y = events["x"].astype(np.int64) - left, events["y"].astype(np.int64) - top
        inside = (x >= 0) & (x < self.target.width) & (y >= 0) & (y < self.target.height)
        kept = self._without(events, ~inside, "cropped").copy()
        kept["x"], kept["y"] = x[inside], y[inside]
        return kept

    def _resized(self, events: Events, source: Sensor) -> Events:
        moved = events.copy()
        moved["x"] = scale(events["x"], source.width, self.target.width)
        moved["y"] = scale(events["y"], source.height, self.target.height)
        return moved


def scale(positions: NDArray[np.uint16], old: int, new: int) -> NDArray[np.int64]:
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


def _corner(target: Sensor, source: Sensor | None, crop: Crop | None) -> tuple[int, int] | None:
    if crop is None:
        return None
    if crop == "centre":
        assert source is not None
        crop = max(0, source.width - target.width) // 2, max(0, source.height - target.height) // 2
    left, top = crop
    outside = source is not None and (left >= source.width or top >= source.height)
    if left < 0 or top < 0 or outside:
        of = f" of {size(source)}" if source is not None else ""
        raise AxonnxError(f"crop {left},{top} does not begin on the sensor{of}; give the left and the top pixel")
    return left, top
