"""DVS128 Gesture: eleven hand and arm gestures of 29 people before an event camera."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import concatenate_events, make_events
from axonnx.runtime.format.contract import FitContract
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore, Sample
from axonnx.train.data.files import find_files, naming
from axonnx.train.data.frames import Frames
from axonnx.train.data.labels import as_labels
from axonnx.train.data.recordings import Recordings
from axonnx.train.data.sets.tonic_adapter import TonicPart, TonicSource, load_through_tonic
from axonnx.train.data.splits import DataSplits

CLASSES = (
    "hand clapping", "right hand wave", "left hand wave", "right arm clockwise", "right arm counter-clockwise",
    "left arm clockwise", "left arm counter-clockwise", "arm roll", "air drums", "air guitar", "other gestures",
)  # fmt: skip
SOURCE = TonicSource(
    name="dvs-gesture",
    tonic="DVSGesture",
    pattern="user*/*.npy",
    parts={"train": TonicPart(True, "ibmGestureTrain", 1077), "test": TonicPart(False, "ibmGestureTest", 264)},
    classes=CLASSES,
    sensor=Sensor(width=128, height=128),
    how="download ibmGestureTrain.tar.gz (https://figshare.com/ndownloader/files/38022171) and ibmGestureTest.tar.gz "
    "(https://figshare.com/ndownloader/files/38020584) into the folder DVSGesture below the data folder and unpack "
    "them there",
    origin="first",
)
SLICE_US = 120_000
WHOLE = FitContract(sensor=Sensor(width=128, height=128), width=128, height=128)
SMALL = ["dvs_gesture_train_32x32.npz", "dvs_gesture_validation_32x32.npz"]


def load_dvs_gesture(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """DVS128 Gesture cut into 1,077 and 264 recordings; `store` is where they are kept once converted."""
    return load_through_tonic(SOURCE, root, store)


def load_dvs_gesture_32x32(root: str | Path | None = None) -> DataSplits:
    """Load the gestures as 49 frames of 2×32×32 counts; the test part is the validation users, 19 to 23."""
    how = "they are frames made from DVS128 Gesture and not published; use the data set dvs-gesture for the events"
    paths = find_files(root, SMALL, data_set="dvs-gesture-32x32", how=how)
    return DataSplits("dvs-gesture-32x32", *(_read(path) for path in paths))


def load_dvs_gesture_slices(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """Load the same gestures as events: those of a slice in a random order, spread evenly over a nominal time.

    How long a slice took is not known, nor the order of its events, so times within a recording are simulated: each of
    the 49 slices lasts 120 ms, which makes six seconds, the published mean of a recording. The sensor is that of the
    frames; a network takes events of 128×128 pixels and sums squares of 4×4, as the frames were made.
    """
    how = "they are frames made from DVS128 Gesture and not published; use the data set dvs-gesture for the events"
    paths = find_files(root, SMALL, data_set="dvs-gesture-slices", how=how)
    kept = EventStore(Path(store) if store is not None else cache_folder())
    return DataSplits("dvs-gesture-slices", *(_spread(path, kept) for path in paths))


def _spread(path: Path, store: EventStore) -> Recordings:
    def convert() -> Iterator[Sample]:
        data = _read(path)
        assert data.groups is not None
        for number, frames in enumerate(data.frames):
            yield Sample(events_of(frames, number), int(data.labels[number]), int(data.groups[number]), source=number)

    camera = Sensor(width=32, height=32)
    return store.recordings([path], convert, CLASSES, camera, origin="first", fit=WHOLE)


def events_of(frames: NDArray[np.uint8], seed: int) -> NDArray[np.void]:
    """Return the events of the slices [T, 2, 32, 32] of a recording."""
    random, parts = np.random.default_rng(seed), []
    for number, counts in enumerate(frames):
        cells = random.permutation(np.repeat(np.arange(counts.size), counts.reshape(-1)))
        times = number * SLICE_US + np.arange(len(cells)) * SLICE_US // max(1, len(cells))
        p, y, x = np.unravel_index(cells, counts.shape)
        parts.append(make_events(times, x, y, p))
    return concatenate_events(parts)


def _read(path: Path) -> Frames:
    frames, labels, recordings = read_arrays(path, ["frames"], ["label"], ["recording"])
    with naming(path):
        return Frames(frames, as_labels(labels), CLASSES, _users(recordings))


def _users(recordings: NDArray[np.str_]) -> NDArray[np.int64]:
    """User numbers from names like user07_natural_0."""
    try:
        return np.array([int(str(name)[4:6]) for name in recordings], np.int64)
    except ValueError as error:
        raise AxonnxError(f"recordings are named userNN_…; {error}") from error
