"""Random changes to a batch of event recordings, all of it at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import EVENT
from axonnx.train.data.augment import Augmentation

TONE_CORNERS = 8  # columns, evenly spread from the first to the last, where a curve of `tone` may turn


class AugmentedEvents(NamedTuple):
    """A valid batch of recordings, and how many events of each were moved off the sensor and are gone."""

    events: NDArray[np.void]
    offsets: NDArray[np.int64]
    off_sensor: NDArray[np.int64]


def augment_events(
    events: NDArray[np.void],
    offsets: NDArray[np.int64],
    sensor: Sensor,
    how: Augmentation,
    generator: np.random.Generator,
) -> AugmentedEvents:
    """The recordings, changed each in its own way and still sorted by time; the arrays given stay as they are."""
    how.check("events")
    draw = _Draw(generator, np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), len(offsets) - 1)
    kept = _kept(draw, how)
    times = _new_times(events["t"], draw, how)
    x, y = _new_places(events["x"].astype(np.int64), events["y"].astype(np.int64), draw, sensor, how)
    inside = (x >= 0) & (x < sensor.width) & (y >= 0) & (y < sensor.height)
    copies = _copies(np.clip(x, 0, sensor.width - 1), draw, sensor, how) * (kept & inside)
    chosen = np.repeat(np.arange(len(copies)), copies)
    if how.time_jitter_us:  # nothing else brings events out of order
        chosen = chosen[_time_order(draw.owner[chosen], times[chosen])]
    out = np.empty(len(chosen), EVENT)
    out["t"], out["x"], out["y"], out["p"] = times[chosen], x[chosen], y[chosen], events["p"][chosen]
    return AugmentedEvents(out, _offsets(draw.count(chosen)), draw.count(kept & ~inside))


@dataclass(frozen=True)
class _Draw:
    """Random numbers for a batch of `recordings`; `owner` is the recording that each event belongs to."""

    generator: np.random.Generator
    owner: NDArray[np.int64]
    recordings: int

    def uniform(self, low: float, high: float) -> NDArray[np.float64]:
        """A number for each recording, repeated for each of its events."""
        return self.generator.uniform(low, high, self.recordings)[self.owner]

    def whole(self, low: int, high: int) -> NDArray[np.int64]:
        """A whole number from low to high for each recording, repeated for each of its events."""
        return self.generator.integers(low, high, self.recordings, endpoint=True)[self.owner]

    def count(self, where: NDArray[np.bool_] | NDArray[np.int64]) -> NDArray[np.int64]:
        """How many events of each recording these are, marked or by their numbers."""
        return np.bincount(self.owner[where], minlength=self.recordings).astype(np.int64)


def _kept(draw: _Draw, how: Augmentation) -> NDArray[np.bool_]:
    """Every recording loses a share of its events drawn between 0 and `drop`."""
    if not how.drop:
        return np.ones(len(draw.owner), np.bool_)
    share = draw.uniform(0, how.drop)
    return draw.generator.random(len(share)) >= share


def _copies(x: NDArray[np.int64], draw: _Draw, sensor: Sensor, how: Augmentation) -> NDArray[np.int64]:
    """How often every event occurs: f·g(x) times in the mean.

    ln f is drawn between ±`gain` for each recording; ln g(x) runs straight between corners drawn between ±`tone`.
    """
    if not how.gain and not how.tone:
        return np.ones(len(draw.owner), np.int64)
    log_factor = draw.uniform(-how.gain, how.gain) if how.gain else np.zeros(len(draw.owner))
    if how.tone:
        log_factor += _tones(x, draw, sensor, how.tone)
    return np.floor(np.exp(log_factor) + draw.generator.random(len(log_factor))).astype(np.int64)


def _tones(x: NDArray[np.int64], draw: _Draw, sensor: Sensor, most: float) -> NDArray[np.float64]:
    """ln g of each event's column, on a curve for each recording."""
    corners = draw.generator.uniform(-most, most, (draw.recordings, TONE_CORNERS))
    place = x * (TONE_CORNERS - 1) / max(sensor.width - 1, 1)
    left = np.minimum(place.astype(np.int64), TONE_CORNERS - 2)
    low, high = corners[draw.owner, left], corners[draw.owner, left + 1]
    tones: NDArray[np.float64] = low + (high - low) * (place - left)
    return tones


def _new_times(times: NDArray[np.int64], draw: _Draw, how: Augmentation) -> NDArray[np.int64]:
    """Stretched and jittered times; what would come before the recording starts comes as it starts."""
    if not how.time_stretch and not how.time_jitter_us:
        return times
    moved = times.astype(np.float64)
    if how.time_stretch:
        moved *= draw.uniform(1 - how.time_stretch, 1 + how.time_stretch)
    if how.time_jitter_us:
        moved += draw.generator.normal(0, how.time_jitter_us, len(moved))
    return np.maximum(np.rint(moved), 0).astype(np.int64)


def _new_places(
    x: NDArray[np.int64], y: NDArray[np.int64], draw: _Draw, sensor: Sensor, how: Augmentation
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows after a flip, a zoom, a shift and jitter; they may lie off the sensor."""
    if how.flip:
        x = np.where(draw.whole(0, 1) == 1, sensor.width - 1 - x, x)
    if how.zoom:
        larger = draw.uniform(1 - how.zoom, 1 + how.zoom)
        x, y = (
            np.rint((place - (side - 1) / 2) * larger + (side - 1) / 2).astype(np.int64)
            for place, side in ((x, sensor.width), (y, sensor.height))
        )
    if how.shift_x:
        x = x + draw.whole(-how.shift_x, how.shift_x)
    if how.shift_y:
        y = y + draw.whole(-how.shift_y, how.shift_y)
    if how.jitter_x:
        x = x + np.rint(draw.generator.normal(0, how.jitter_x, len(x))).astype(np.int64)
    return x, y


def _time_order(owner: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order by recording, then time; one sort of one number, several times faster than one of two."""
    span = int(times.max(initial=0)) + 1
    return np.argsort(owner * span + times, kind="stable")


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
