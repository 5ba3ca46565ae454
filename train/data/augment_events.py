"""Random changes to a batch of event recordings, all of it at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.binning import Sensor
from axonnx.train.data.augment import Augmentation


class AugmentedEvents(NamedTuple):
    """A valid batch of recordings, and how many events of each were moved off the sensor and are gone."""

    events: NDArray[np.void]
    offsets: NDArray[np.int64]
    off_sensor: NDArray[np.int64]


class _Batch(NamedTuple):
    """Events and the recording each belongs to, of `size` recordings."""

    events: NDArray[np.void]
    owner: NDArray[np.int64]
    size: int

    def where(self, keep: NDArray[np.bool_]) -> _Batch:
        """Copies of the events where `keep` is true."""
        return _Batch(self.events[keep], self.owner[keep], self.size)

    def sizes(self) -> NDArray[np.int64]:
        """The number of events of each recording."""
        return np.bincount(self.owner, minlength=self.size).astype(np.int64)


def augment_events(
    events: NDArray[np.void],
    offsets: NDArray[np.int64],
    sensor: Sensor,
    how: Augmentation,
    generator: np.random.Generator,
) -> AugmentedEvents:
    """The recordings, changed each in its own way and still sorted by time; the arrays given stay as they are."""
    how.check("events")
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    batch = _thinned(_Batch(events.copy(), owner, len(offsets) - 1), how, generator)
    batch.events["t"] = _new_times(batch, how, generator)
    x, y = _new_places(batch, sensor, how, generator)
    inside = (x >= 0) & (x < sensor.width) & (y >= 0) & (y < sensor.height)
    kept = batch.where(inside)
    kept.events["x"], kept.events["y"] = x[inside], y[inside]
    return AugmentedEvents(_in_order(kept, how), _offsets(kept.sizes()), batch.sizes() - kept.sizes())


def _thinned(batch: _Batch, how: Augmentation, generator: np.random.Generator) -> _Batch:
    """Every recording loses a share of its events drawn between 0 and `drop`."""
    if not how.drop:
        return batch
    share = generator.uniform(0, how.drop, batch.size)
    return batch.where(generator.random(len(batch.events)) >= share[batch.owner])


def _new_times(batch: _Batch, how: Augmentation, generator: np.random.Generator) -> NDArray[np.int64]:
    """Stretched and jittered times; what would come before the recording starts comes as it starts."""
    times = batch.events["t"].astype(np.float64)
    if how.time_stretch:
        times *= generator.uniform(1 - how.time_stretch, 1 + how.time_stretch, batch.size)[batch.owner]
    if how.time_jitter_us:
        times += generator.normal(0, how.time_jitter_us, len(times))
    return np.maximum(np.rint(times), 0).astype(np.int64)


def _new_places(
    batch: _Batch, sensor: Sensor, how: Augmentation, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows after a flip and a shift; they may lie off the sensor."""
    x, y = batch.events["x"].astype(np.int64), batch.events["y"].astype(np.int64)
    if how.flip:
        x = np.where(generator.integers(2, size=batch.size)[batch.owner] == 1, sensor.width - 1 - x, x)
    if how.shift_x:
        x += generator.integers(-how.shift_x, how.shift_x, batch.size, endpoint=True)[batch.owner]
    if how.shift_y:
        y += generator.integers(-how.shift_y, how.shift_y, batch.size, endpoint=True)[batch.owner]
    return x, y


def _in_order(batch: _Batch, how: Augmentation) -> NDArray[np.void]:
    """Jitter alone can bring events out of order."""
    if not how.time_jitter_us:
        return batch.events
    return batch.events[np.lexsort((batch.events["t"], batch.owner))]


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
