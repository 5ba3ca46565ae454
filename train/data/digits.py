"""scikit-learn's 1,797 handwritten digits: as they are, and as an event camera sees them move."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning import Sensor
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_camera import EventCamera
from axonnx.train.data.event_store import EventStore, Sample
from axonnx.train.data.recordings import Frames, Recordings, digest_of, join_events
from axonnx.train.data.splits import DataSplits, stratified_split

log = logging.getLogger(__name__)

# Part of the key under which events are kept: raise it when the same settings begin to give other events.
VERSION = 1
CLASSES = tuple("0123456789")
SIDE, PEAK = 8, 16
TEST_DIGITS, SPLIT_SEED = 360, 2025
SENSORS = (16, 32)
# Corners of the triangle the gaze runs along, (x, y) in shares of the sensor; N-MNIST moves 7 of 34 pixels.
CORNERS = np.array([[-0.1, -0.1], [0.0, 0.1], [0.1, -0.1], [-0.1, -0.1]])
SACCADES = len(CORNERS) - 1
DIGIT_SHARE = 0.75
# Paper reflects this share of what the brightest ink does: a whole edge is a change of ln(1 / 0.1) = 2.3.
DARKEST = 0.1
# Few enough scenes for the processor's caches, enough of them to make a call of numpy worth it.
SCENES_AT_ONCE = 64


def load_static(root: str | Path | None = None) -> DataSplits:
    """Load the digits as images [N, 1, 8, 8] of values 0–16."""
    images, labels = _digits()
    whole = Frames(frames=images[:, None], labels=labels, classes=CLASSES)
    train, test = _split(labels)
    return DataSplits(name="digits-static", train=whole.subset(train), test=whole.subset(test))


def load_saccade(
    root: str | Path | None = None,
    *,
    sensor: int = 16,
    saccade_us: int = 100_000,
    camera: EventCamera | Mapping[str, Any] = EventCamera(),  # noqa: B008 (frozen)
    seed: int = 0,
) -> DataSplits:
    """Load the digits as events of a `sensor` × `sensor` camera that looks along three saccades."""
    if sensor not in SENSORS:
        raise AxonnxError(f"digits-saccade: sensor is {sensor!r}; it can be {' or '.join(map(str, SENSORS))} pixels")
    whole = _recorded(EventCamera.model_validate(camera), sensor, saccade_us, seed)
    train, test = _split(whole.labels)
    return DataSplits(name="digits-saccade", train=whole.subset(train), test=whole.subset(test))


@lru_cache(maxsize=1)
def _recorded(camera: EventCamera, sensor: int, saccade_us: int, seed: int) -> Recordings:
    """All digits; seconds of work, so that recordings are kept, on disk too. Callers get copies of parts of them."""

    def convert(_: dict[str, Any] | None = None) -> Iterator[Sample]:
        images, labels = _digits()
        events, offsets = saccade_events(images, camera, sensor, saccade_us, seed)
        for label, (start, stop) in zip(labels.tolist(), pairwise(offsets.tolist()), strict=True):
            yield Sample(events[start:stop], label)

    key = digest_of({"digits": VERSION, "camera": camera.model_dump(), "of": [sensor, saccade_us, seed]})
    try:
        kept = EventStore(cache_folder()).keep_as(key, convert)
        events, offsets, labels = np.array(kept.events), kept.offsets, kept.columns["label"]
    except AxonnxError as fault:  # a disk that is full or cannot be written to
        log.warning("the digits' events are not kept: %s", fault)
        found = list(convert())
        events, offsets = join_events(sample.events for sample in found)
        labels = np.array([sample.label for sample in found], np.int64)
    return Recordings(events, offsets, labels, CLASSES, Sensor(width=sensor, height=sensor))


def saccade_events(
    images: NDArray[np.uint8], camera: EventCamera, sensor: int, saccade_us: int, seed: int
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Events and offsets of all images [N, 8, 8]; image k is scene k of the camera's noise."""
    path = gaze(saccade_us, camera.step_us) * sensor
    events, counts = [], []
    for first in range(0, len(images), SCENES_AT_ONCE):
        some = images[first : first + SCENES_AT_ONCE]
        seen = camera.record(film(some, path, sensor), seed=seed, indices=range(first, first + len(some)))
        events.append(seen[0])
        counts.append(np.diff(seen[1]))
    return np.concatenate(events), np.concatenate([[0], np.cumsum(np.concatenate(counts))])


def gaze(saccade_us: int, step_us: int) -> NDArray[np.float64]:
    """Where the image stands at every frame, (x, y) in shares of the sensor; it rests at the corners."""
    if saccade_us % step_us:
        raise AxonnxError(f"digits-saccade: a saccade of {saccade_us} µs is no multiple of the camera's {step_us} µs")
    steps = saccade_us // step_us
    leg, part = np.divmod(np.arange(SACCADES * steps), steps)
    share = (part / steps)[:, None]
    eased = share * share * (3 - 2 * share)
    path = CORNERS[leg] + eased * (CORNERS[leg + 1] - CORNERS[leg])
    return np.concatenate([path, CORNERS[-1:]])


def film(images: NDArray[np.uint8], path: NDArray[np.float64], sensor: int) -> Iterator[NDArray[np.float64]]:
    """Intensities [N, sensor, sensor] at every point (x, y) of the path, in pixels."""
    # Scenes go last: the innermost loops of numpy then run over many numbers, not over eight.
    ink = np.ascontiguousarray(images.transpose(1, 2, 0)) / PEAK
    columns, rows = (_weights(sensor, shifts) for shifts in path.T)
    for row_weights, column_weights in zip(rows, columns, strict=True):
        tall = _interpolated(ink, row_weights).swapaxes(0, 1)
        shown = _interpolated(tall, column_weights).transpose(2, 1, 0)
        yield DARKEST + (1 - DARKEST) * np.clip(shown, 0, 1)


def _weights(sensor: int, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each of the image's 8 rows counts for each sensor row, [frames, 8, sensor]; around it is paper."""
    scale = DIGIT_SHARE * sensor / SIDE
    position = (np.arange(sensor) + 0.5 - sensor / 2 - shifts[:, None]) / scale + (SIDE - 1) / 2
    return _cubic(np.abs(position[:, None, :] - np.arange(SIDE)[:, None]))


def _cubic(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Catmull–Rom kernel."""
    near = (1.5 * distance - 2.5) * distance * distance + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return np.where(distance < 1, near, np.where(distance < 2, far, 0.0))


def _interpolated(ink: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """[8, …] to [sensor, …]; summed term by term, for a matrix product may round by the number of scenes."""
    out = np.zeros((weights.shape[1], *ink.shape[1:]))
    for line, weight in zip(ink, weights, strict=True):
        reached = np.flatnonzero(weight)  # neighbours, for the kernel is four lines wide
        here = slice(reached.min(initial=len(weight)), reached.max(initial=-1) + 1)
        out[here] += weight[here, None, None] * line
    return out


def _digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    from sklearn.datasets import load_digits  # a second to import, needed only here

    found = load_digits()
    return found.images.astype(np.uint8), found.target.astype(np.int64)


def _split(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return stratified_split(labels, range(len(labels)), TEST_DIGITS, SPLIT_SEED)
