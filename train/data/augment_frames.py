"""Random changes to a batch of frames or images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.train.data.augment import Augmentation


def augment_frames(frames: NDArray[np.uint8], how: Augmentation, generator: np.random.Generator) -> NDArray[np.uint8]:
    """The samples [B, …, H, W], changed each in its own way; what comes in from outside is zero.

    Cutting an image out of one padded by k pixels is moving it by up to k: a crop is a shift of both axes.
    All frames of a sequence move alike.
    """
    how.check("frames" if frames.ndim == 5 else "images")
    count = len(frames)
    down, right = _shifts(how.shift_y, how, count, generator), _shifts(how.shift_x, how, count, generator)
    mirrored = generator.integers(2, size=count) == 1 if how.flip else np.zeros(count, np.bool_)
    larger = _about_one(how.zoom, count, generator)
    slower = _about_one(how.time_stretch, count, generator)
    out = np.empty_like(frames)
    for sample in range(count):
        source = frames[sample, ..., ::-1] if mirrored[sample] else frames[sample]
        for axis, moved in ((-2, down), (-1, right)):
            source = _taken(source, _zoomed(source.shape[axis], larger[sample], moved[sample]), axis)
        out[sample] = _taken(source, _stretched(len(source), slower[sample]), 0) if how.time_stretch else source
    return _thinned(out, how.drop, generator) if how.drop else out


def _about_one(spread: float, count: int, generator: np.random.Generator) -> NDArray[np.float64]:
    return generator.uniform(1 - spread, 1 + spread, count) if spread else np.ones(count)


def _thinned(frames: NDArray[np.uint8], drop: float, generator: np.random.Generator) -> NDArray[np.uint8]:
    """Every sample loses a share of its events drawn between 0 and ``drop``."""
    kept = 1 - generator.uniform(0, drop, (len(frames), 1, 1, 1, 1))
    return generator.binomial(frames, kept).astype(np.uint8)


def _shifts(most: int, how: Augmentation, count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    moved = np.zeros(count, np.int64)
    for limit in (most, how.crop):
        if limit:
            moved += generator.integers(-limit, limit, count, endpoint=True)
    return moved


def _zoomed(size: int, larger: float, moved: int) -> NDArray[np.int64]:
    """Which of ``size`` pixels is seen in each place: the nearest one to (place − moved − middle)/larger + middle."""
    middle = (size - 1) / 2
    seen: NDArray[np.int64] = np.rint((np.arange(size) - moved - middle) / larger + middle).astype(np.int64)
    return seen


def _stretched(steps: int, slower: float) -> NDArray[np.int64]:
    """Which frame is seen in each step of a recording that takes ``slower`` times as long."""
    seen: NDArray[np.int64] = np.floor((np.arange(steps) + 0.5) / slower).astype(np.int64)
    return seen


def _taken(source: NDArray[np.uint8], places: NDArray[np.int64], axis: int) -> NDArray[np.uint8]:
    """The source at these places of an axis, zero where they lie outside."""
    inside = (places >= 0) & (places < source.shape[axis])
    if not inside.all():
        out = np.zeros_like(source)
        np.moveaxis(out, axis, 0)[inside] = np.moveaxis(source, axis, 0)[places[inside]]
        return out
    return source.take(places, axis)
