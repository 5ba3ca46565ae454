"""How events of another sensor come onto the network's: what a user asked for, held against what the source says.

Where nothing is asked for, recordings of the sensor that training used come onto the network's as they did in training.
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
    """The sensor where the source is silent, and how it is brought onto the network's."""

    sensor: Sensor | None = None
    resize: bool = False
    crop: Crop | None = None
    merge_polarities: bool = False

    @classmethod
    def of(cls, given: Fit | str | Sequence[str] | None) -> Fit:
        """Take a ``Fit``, or words: resize, centre, X,Y, merge, and WxH or WxHxPOLARITIES."""
        if isinstance(given, Fit):
            return given
        found: dict[str, Any] = {}
        for word in [given] if isinstance(given, str) else given or ():
            found |= _word(word)
        if found.get("resize") and "crop" in found:
            raise AxonnxError("fit: resize and a crop exclude each other; give one of them")
        return cls(**found)

    def adapter(self, source: Source, target: Sensor, trained: FitContract | None = None) -> Adapter:
        """What moves the events of a source; a sensor that does not fit is refused.

        A source of the sensor that training used, or one that does not say its sensor, is moved as training did.
        """
        asked = self.resize or self.crop is not None
        stated = source_sensor(source, self.sensor, target, fitted=asked or trained is not None)
        if trained is not None and not asked and (stated is None or size(stated) == size(trained.sensor)):
            region = Region(trained.left, trained.top, trained.width, trained.height)
            sensor = stated or trained.sensor
            return Adapter(target, sensor, region=region, merge_polarities=self.merge_polarities)
        return Adapter(target, stated, resize=self.resize, crop=self.crop, merge_polarities=self.merge_polarities)


def _word(word: str) -> dict[str, Any]:
    if word in ("resize", "merge"):
        return {"resize" if word == "resize" else "merge_polarities": True}
    if word == "centre":
        return {"crop": "centre"}
    for separator, counts in ((",", (2,)), ("x", (2, 3))):
        numbers = word.split(separator)
        if len(numbers) in counts and all(number.isdecimal() for number in numbers):
            sides = [int(number) for number in numbers]
            return {"crop": (sides[0], sides[1])} if separator == "," else {"sensor": _sensor(word, sides)}
    raise AxonnxError(
        f"fit {word!r}; expected resize, centre, X,Y as in 16,0, merge, or the sensor's size as in 128x128 (128x128x1 "
        f"for one polarity)"
    )


def _sensor(word: str, sides: list[int]) -> Sensor:
    try:
        return Sensor.model_validate(dict(zip(("width", "height", "polarities"), sides, strict=False)))
    except ValueError:
        raise AxonnxError(f"fit {word!r}; expected 1 to 65536 pixels a side, 1 or 2 polarities") from None


def source_sensor(source: Source, stated: Sensor | None, target: Sensor, fitted: bool) -> Sensor | None:
    """The sensor that made the events: as the source or the user states it; None where neither does.

    A recording that reaches beyond the network's sensor and is not fitted to it is refused even so.
    """
    if stated is not None and source.sensor is not None and size(stated) != size(source.sensor):
        raise AxonnxError(f"{source.name}: its sensor is {size(source.sensor)}, as it says itself, not {size(stated)}")
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
                f"{source.name}: its events reach over {size(reach)} pixels and the network's sensor is {size(target)}."
                f" State the sensor's size and whether to resize it or to crop its centre or a part at X,Y. Where "
                f"{target.width}x{target.height} is stated, events beyond it are dropped and counted",
                options=("sensor", "resize", "crop"),
            ) from None
