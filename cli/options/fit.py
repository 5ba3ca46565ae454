"""Options of the command line that bring events of another sensor onto the network's."""

from __future__ import annotations

import argparse

from axonnx.runtime.events.sensor import Sensor
from axonnx.runtime.streams.adapt import Crop
from axonnx.runtime.streams.fit import Fit


def add_fit_options(group: argparse._ArgumentGroup) -> None:
    """--sensor, --resize or --crop, and --merge-polarities."""
    group.add_argument("--sensor", type=_sensor, metavar="WxH", help="size of the sensor, where the source is silent")
    fit = group.add_mutually_exclusive_group()
    fit.add_argument("--resize", action="store_true", default=None, help="scale to the network's sensor")
    fit.add_argument("--crop", type=_crop, metavar="centre|X,Y", help="cut out a part of the network's size")
    group.add_argument("--merge-polarities", action="store_true", default=None, help="all events of one polarity")


def fit_of(options: argparse.Namespace) -> Fit:
    """What the options say."""
    return Fit(options.sensor, bool(options.resize), options.crop, bool(options.merge_polarities))


def _numbers(text: str, separator: str, counts: tuple[int, ...], example: str) -> list[int]:
    parts = text.split(separator)
    if len(parts) not in counts or not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r}; expected numbers as in {example}")
    return [int(part) for part in parts]


def _sensor(text: str) -> Sensor:
    width, height, *polarities = _numbers(text, "x", (2, 3), "128x128, or 128x128x1 for one polarity")
    try:
        return Sensor.model_validate(
            {"width": width, "height": height} | ({"polarities": polarities[0]} if polarities else {})
        )
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected 1 to 65536 pixels a side, 1 or 2 polarities") from None


def _crop(text: str) -> Crop:
    if text == "centre":
        return "centre"
    left, top = _numbers(text, ",", (2,), "16,0, or centre")
    return left, top
