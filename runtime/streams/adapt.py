"""Map events from the sensor that recorded them to the sensor that the network expects, in integer arithmetic.

    crop    take a region of the sensor that starts at (left, top); events beside it are dropped and counted
    resize  map pixel x of W pixels to pixel (2x + 1)·V // 2W of V pixels: the pixel that contains its centre

Cropping comes first. The region is then resized if its size differs from the network's sensor. Training and inference
use the same rule. A sensor larger than the network's is refused unless the user asks for one of the two. Events of a
smaller sensor keep their coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import Events, Sensor, check_events, pick_events
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.streams.sources import RecordedSource, Source

Crop = tuple[int, int] | Literal["centre"]


class Region(NamedTuple):
    """A rectangle of pixels: columns left … left + width − 1, rows top … top + height − 1."""

    left: int
    top: int
    width: int
    height: int


class Adapter:
    """Map events from one sensor to another, and count the dropped events by reason.

    ``swap_polarities`` exchanges polarities 0 and 1 in the end; it is set after the adapter was made.

    Args:
        target: Sensor that the network expects.
        source: Sensor that recorded the events. Default: unknown.
        resize: Scale the whole sensor to the target.
        crop: Left and top pixel of a region of the target's size, or ``"centre"``.
        region: Region to crop and then to scale, as stored in a contract. Excludes ``resize`` and ``crop``.
        merge_polarities: Set every polarity to 0.

    Raises:
        AxonnxError: If the sensors do not fit, or the options contradict each other.
    """

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
            raise AxonnxError("resize and crop cannot be combined; give only one of them")
        if (resize or crop == "centre") and source is None:
            raise AxonnxError(
                f"the source does not state its sensor size, so it cannot be fitted to {size(target)}; state the size, "
                f"for example 128x128",
                options=("sensor",),
            )
        self.target, self.source = target, source
        self.merge_polarities, self.swap_polarities = merge_polarities, False
        self.dropped = {"off_sensor": 0, "cropped": 0}
        self.region = region or _region(target, source, resize, crop)
        if source is not None and self.region is None:
            refuse_larger(source, target)
        if source is not None and source.polarities > target.polarities and not merge_polarities:
            raise AxonnxError(
                f"the source's sensor has {source.polarities} polarities, but the network expects {target.polarities}; "
                f"merge the polarities to use all events",
                options=("merge_polarities",),
            )

    def __call__(self, events: Events) -> Events:
        """Return the events on the network's sensor, as a copy if anything changes."""
        if self.source is not None:
            wrong = (check_events(events)["x"] >= self.source.width) | (events["y"] >= self.source.height)
            events = self._without(events, wrong, "off_sensor")
        if self.region is not None:
            events = self._moved(events, self.region)
        if self.merge_polarities:
            events = events.copy()
            events["p"] = 0
        if self.swap_polarities:
            events = events.copy()
            events["p"] ^= events["p"] < 2  # others are no polarity, and stay so
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
    """Return (2x + 1)·new // (2·old) for each position x."""
    middle: NDArray[np.int64] = (2 * positions.astype(np.int64) + 1) * new // (2 * old)
    return middle


def refuse_larger(source: Sensor, target: Sensor) -> None:
    """Refuse a sensor that is larger than the network's."""
    if source.width > target.width or source.height > target.height:
        raise AxonnxError(
            f"the source's sensor is {size(source)}, but the network expects {size(target)}; "
            f"resize the events, or crop them at the centre or at X,Y",
            options=("resize", "crop"),
        )


def size(sensor: Sensor) -> str:
    """Return the sensor's size as text, width × height."""
    return f"{sensor.width}×{sensor.height}"


def centred(sensor: Sensor, width: int, height: int) -> Region:
    """Return a region of the given size in the middle of the sensor, or from its corner if the sensor is smaller."""
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


@dataclass(frozen=True)
class Fit:
    """A user's request for fitting events to the network's sensor.

    The decision depends on what the user asked for and on what the source states. Without a request, recordings from
    the sensor that training used are mapped as they were in training.

    Attributes:
        sensor: Sensor size, if the source does not state it.
        resize: Scale the events to the network's sensor.
        crop: Left and top pixel of the region to keep, or ``"centre"``.
        merge_polarities: Ignore the polarity of events.
        swap_polarities: Exchange polarities 0 and 1: some cameras and files name them the other way round.
    """

    sensor: Sensor | None = None
    resize: bool = False
    crop: Crop | None = None
    merge_polarities: bool = False
    swap_polarities: bool = False

    @classmethod
    def of(cls, given: Fit | str | Sequence[str] | None) -> Fit:
        """Take a ``Fit``, or words: resize, centre, X,Y, merge, swap, and WxH or WxHxPOLARITIES."""
        if isinstance(given, Fit):
            return given
        found: dict[str, Any] = {}
        for word in [given] if isinstance(given, str) else given or ():
            found |= _word(word)
        if found.get("resize") and "crop" in found:
            raise AxonnxError("fit: resize and a crop exclude each other; give one of them")
        return cls(**found)

    def adapter(self, source: Source, target: Sensor, trained: FitContract | None = None) -> Adapter:
        """Return the adapter for a source.

        Without a request, a source that has the sensor of training, or states no sensor, is mapped as in training.

        Args:
            source: Source of the events.
            target: Sensor that the network expects.
            trained: How training fitted its recordings. None if it did not.

        Raises:
            AxonnxError: If the sensor does not fit.
        """
        asked = self.resize or self.crop is not None
        stated = source_sensor(source, self.sensor, target, fitted=asked or trained is not None)
        if trained is not None and not asked and (stated is None or size(stated) == size(trained.sensor)):
            region = Region(trained.left, trained.top, trained.width, trained.height)
            sensor = stated or trained.sensor
            fitted = Adapter(target, sensor, region=region, merge_polarities=self.merge_polarities)
        else:
            fitted = Adapter(target, stated, resize=self.resize, crop=self.crop, merge_polarities=self.merge_polarities)
        fitted.swap_polarities = self.swap_polarities
        return fitted


SWITCHES = {"resize": "resize", "merge": "merge_polarities", "swap": "swap_polarities"}


def _word(word: str) -> dict[str, Any]:
    if word in SWITCHES:
        return {SWITCHES[word]: True}
    if word == "centre":
        return {"crop": "centre"}
    for separator, counts in ((",", (2,)), ("x", (2, 3))):
        numbers = word.split(separator)
        if len(numbers) in counts and all(number.isdecimal() for number in numbers):
            sides = [int(number) for number in numbers]
            return {"crop": (sides[0], sides[1])} if separator == "," else {"sensor": _sensor(word, sides)}
    raise AxonnxError(
        f"fit {word!r}; expected resize, centre, X,Y as in 16,0, merge, swap, or the sensor's size as in 128x128 "
        f"(128x128x1 for one polarity)"
    )


def _sensor(word: str, sides: list[int]) -> Sensor:
    try:
        return Sensor.model_validate(dict(zip(("width", "height", "polarities"), sides, strict=False)))
    except ValueError:
        raise AxonnxError(f"fit {word!r}; expected 1 to 65536 pixels a side, 1 or 2 polarities") from None


def source_sensor(source: Source, stated: Sensor | None, target: Sensor, fitted: bool) -> Sensor | None:
    """Return the sensor that recorded the events, as the source or the user states it; None if neither does.

    If neither does, a recording with events beyond the network's sensor is refused unless it is fitted.
    """
    if stated is not None and source.sensor is not None and size(stated) != size(source.sensor):
        raise AxonnxError(
            f"{source.name}: states a sensor of {size(source.sensor)}, but {size(stated)} was given; leave the size out"
        )
    if stated is None and source.sensor is None and isinstance(source, RecordedSource) and not fitted:
        _refuse_wide(source, target)
    return source.sensor if stated is None else stated


def _refuse_wide(source: RecordedSource, target: Sensor) -> None:
    reach = source.reach()
    if reach is not None:
        try:
            refuse_larger(reach, target)
        except AxonnxError:
            raise AxonnxError(
                f"{source.name}: has events on {size(reach)} pixels, but the network's sensor is {size(target)}."
                f" State the sensor size, and either resize the events or crop them at the centre or at X,Y. If you "
                f"state "
                f"{target.width}x{target.height}, events beyond it are dropped and counted",
                options=("sensor", "resize", "crop"),
            ) from None
