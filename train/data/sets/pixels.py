"""The pixels of an event camera: from one film frame to the next, which of them fire and when.

A pixel remembers the log intensity of its last event and fires as soon as the present one differs by its threshold.
Between two frames the log intensity is linear in time, so a crossing has a time of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Spikes:
    """Events as columns; `cell` is the place in a flat [scenes, height, width] array, `time` is in µs."""

    cell: NDArray[np.int64]
    time: NDArray[np.int64]
    on: NDArray[np.bool_]

    @classmethod
    def joined(cls, parts: list[Spikes]) -> Spikes:
        """Return the events of all parts, in the order of the parts."""
        none = cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        columns = [(part.cell, part.time, part.on) for part in [none, *parts]]
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))

    def take(self, chosen: NDArray[np.int64] | NDArray[np.bool_]) -> Spikes:
        """Return the events at these places, or where this mask is true."""
        return Spikes(self.cell[chosen], self.time[chosen], self.on[chosen])


@dataclass(frozen=True)
class Pixels:
    """What every pixel keeps between two frames, flat over scenes, rows and columns; `step` updates it in place."""

    reference: NDArray[np.float64]
    ready: NDArray[np.float64]
    rise: NDArray[np.float64]
    fall: NDArray[np.float64]

    @classmethod
    def adapted_to(cls, light: NDArray[np.float64], thresholds: NDArray[np.float64]) -> Pixels:
        """Pixels at rest under `light` [scenes, H, W]; `thresholds` [2, H, W] for rising and falling light."""
        rise, fall = (np.broadcast_to(each, light.shape).ravel() for each in thresholds)
        return cls(light.ravel().copy(), np.full(light.size, -1.0), rise, fall)


@dataclass(frozen=True)
class Ramp:
    """Log intensity between two frames, L(t) = before + slope · (t − start)."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    slope: NDArray[np.float64]
    start: int
    end: int

    @classmethod
    def between(cls, before: NDArray[np.float64], after: NDArray[np.float64], start: int, end: int) -> Ramp:
        """Move along the straight line from one frame to the next."""
        first, last = before.ravel(), after.ravel()
        return cls(first, last, (last - first) / (end - start), start, end)

    def at(self, cells: NDArray[np.int64], time: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log intensity of each cell at a time of its own."""
        return self.before[cells] + self.slope[cells] * (time - self.start)


def step(pixels: Pixels, ramp: Ramp, refractory_us: int) -> Iterator[Spikes]:
    """Every crossing along the ramp; each item holds at most one event of a pixel, later items later ones."""
    awake = pixels.ready < ramp.end
    _follow_light(pixels, ramp, np.flatnonzero(awake & (pixels.ready >= ramp.start)))
    cells = np.flatnonzero(awake & _beyond(ramp.after - pixels.reference, pixels.rise, pixels.fall))
    while cells.size:
        yield _fire(pixels, ramp, cells, refractory_us)
        cells = cells[pixels.ready[cells] < ramp.end]
        if refractory_us:
            _follow_light(pixels, ramp, cells)
        change = ramp.after[cells] - pixels.reference[cells]
        cells = cells[_beyond(change, pixels.rise[cells], pixels.fall[cells])]


def _follow_light(pixels: Pixels, ramp: Ramp, cells: NDArray[np.int64]) -> None:
    """Skip crossings during the refractory time: a pixel starts again from the light at the moment it is ready."""
    pixels.reference[cells] = ramp.at(cells, pixels.ready[cells])


def _beyond(change: NDArray[np.float64], rise: NDArray[np.float64], fall: NDArray[np.float64]) -> NDArray[np.bool_]:
    return (change >= rise) | (-change >= fall)


def _fire(pixels: Pixels, ramp: Ramp, cells: NDArray[np.int64], refractory_us: int) -> Spikes:
    """One event of each cell; the level it crossed becomes its reference."""
    slope = ramp.slope[cells]
    on = slope > 0
    level = pixels.reference[cells] + np.where(on, pixels.rise[cells], -pixels.fall[cells])
    # Rounding may put the crossing an ulp before the moment the pixel was ready.
    time = np.maximum(ramp.start + (level - ramp.before[cells]) / slope, pixels.ready[cells])
    pixels.reference[cells], pixels.ready[cells] = level, time + refractory_us
    return Spikes(cells, np.floor(time).astype(np.int64), on)
