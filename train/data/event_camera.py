"""A simulated event camera: a film goes in, events come out.

A pixel remembers the log intensity of its last event and fires as soon as the present one differs by its threshold.
Between two frames the log intensity is linear in time, so a crossing has a time of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from axonnx.base.errors import AxonnxError
from axonnx.runtime.events.arrays import make_events


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


# A pixel far out in the tail of the mismatch would otherwise fire without end.
LEAST_THRESHOLD_SHARE = 0.1
# Streams of random numbers: what belongs to the sensor, and what belongs to a scene.
MISMATCH, NOISE = 0, 1


class EventCamera(BaseModel):
    """The camera's physics; intensities are natural logarithms, times µs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threshold: float = Field(default=0.3, gt=0, description="change of log intensity that fires an event")
    threshold_std: float = Field(default=0.02, ge=0, description="standard deviation of the pixels' thresholds")
    refractory_us: int = Field(default=1000, ge=0, description="an event holds its pixel in reset for this long")
    noise_hz: float = Field(default=0.5, ge=0, description="background events per pixel and second")
    step_us: int = Field(default=2500, gt=0, description="time between two frames of the film")

    def record(
        self, film: Iterable[NDArray[np.float64]], *, seed: int, indices: Sequence[int]
    ) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Events and offsets [N + 1] of N scenes filmed at once; `film` yields intensities [N, H, W] above 0.

        The mismatch belongs to the camera (`seed`), the noise to the scene (`seed` and its entry of `indices`),
        so a scene's recording does not depend on what is filmed beside it.
        """
        signal, shape, duration = self._signal(film, seed, len(indices))
        noise = self._noise(shape, duration, seed, indices)
        # A crossing that rounds to the end of the recording is not part of it.
        signal = signal.take(signal.time < duration)
        return _in_time_order(_merged(signal, noise, duration, self.refractory_us), shape, duration)

    def _signal(
        self, film: Iterable[NDArray[np.float64]], seed: int, scenes: int
    ) -> tuple[Spikes, tuple[int, ...], int]:
        """All threshold crossings, the shape of a film frame and the film's duration."""
        frames = (_log_intensity(frame, scenes) for frame in film)
        before = next(frames, np.zeros((scenes, 0, 0)))
        pixels = Pixels.adapted_to(before, self._thresholds(before.shape[1:], seed))
        end = 0
        found: list[Spikes] = []
        for after in frames:
            start, end = end, end + self.step_us
            found += step(pixels, Ramp.between(before, after, start, end), self.refractory_us)
            before = after
        if not end:
            raise AxonnxError("event camera: the film has fewer than two frames, so nothing can change in it")
        return Spikes.joined(found), before.shape, end

    def _thresholds(self, size: tuple[int, ...], seed: int) -> NDArray[np.float64]:
        """Rising and falling threshold of every pixel, [2, H, W]."""
        mismatch = np.random.default_rng([seed, MISMATCH]).normal(0.0, self.threshold_std, (2, *size))
        return np.maximum(self.threshold + mismatch, LEAST_THRESHOLD_SHARE * self.threshold)

    def _noise(self, shape: tuple[int, ...], duration: int, seed: int, indices: Sequence[int]) -> Spikes:
        """Background events: a Poisson process of random polarity in every pixel."""
        pixels, found = shape[1] * shape[2], []
        for scene, index in enumerate(indices):
            generator = np.random.default_rng([seed, NOISE, index])
            count = generator.poisson(self.noise_hz * pixels * duration * 1e-6)
            cell, time = generator.integers(pixels, size=count), generator.integers(duration, size=count)
            found.append(Spikes(scene * pixels + cell, time, generator.random(count) < 0.5))
        return Spikes.joined(found)


def _log_intensity(frame: NDArray[np.float64], scenes: int) -> NDArray[np.float64]:
    if frame.ndim != 3 or len(frame) != scenes:
        raise AxonnxError(f"event camera: a film frame has shape {frame.shape}; expected ({scenes}, height, width)")
    if not frame.min(initial=np.inf) > 0:
        raise AxonnxError("event camera: intensities must be above 0 (a pixel sees their logarithm)")
    return np.log(np.ascontiguousarray(frame))


def _merged(signal: Spikes, noise: Spikes, duration: int, refractory_us: int) -> Spikes:
    """Signal and noise by pixel, then time; noise that comes too close to another event of its pixel is lost."""
    both = Spikes.joined([signal, noise])
    order = np.argsort(both.cell * duration + both.time, kind="stable")
    sorted_, is_noise = both.take(order), order >= len(signal.cell)
    close = (np.diff(sorted_.time) < max(refractory_us, 1)) & (np.diff(sorted_.cell) == 0)
    crowded = np.zeros(len(order), np.bool_)
    crowded[1:] |= close
    crowded[:-1] |= close
    return sorted_.take(~(is_noise & crowded))


def _in_time_order(spikes: Spikes, shape: tuple[int, ...], duration: int) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Scene after scene, each by time and, within a µs, by pixel."""
    scenes, height, width = shape
    scene, pixel = np.divmod(spikes.cell, height * width)
    order = np.argsort(scene * duration + spikes.time, kind="stable")
    offsets = np.zeros(scenes + 1, np.int64)
    np.cumsum(np.bincount(scene, minlength=scenes), out=offsets[1:])
    y, x = np.divmod(pixel[order], width)
    return make_events(spikes.time[order], x, y, spikes.on[order]), offsets
