"""Decide how events of another sensor are mapped to the network's sensor.

The decision depends on what the user asked for and on what the source states. Without a request, recordings from the
sensor that training used are mapped as they were in training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.streams.adapt import Adapter, Crop, Region, refuse_larger, size
from axonnx.runtime.streams.sources import RecordedSource, Source


@dataclass(frozen=True)
class Fit:
    """A user's request for fitting events to the network's sensor.

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
