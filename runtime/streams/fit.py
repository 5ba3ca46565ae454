"""How events of another sensor come onto the network's: what a user asked for, held against what the source says.

Where nothing is asked for, recordings of the sensor that training used come onto the network's as they did in training.
"""

from __future__ import annotations

from dataclasses import dataclass

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
