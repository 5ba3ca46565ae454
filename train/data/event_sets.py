"""Published event data sets: N-MNIST, DVS128 Gesture (both through tonic) and Spiking Heidelberg Digits.

This is the one place that knows tonic (GPL-3.0, optional). It takes tonic's data sets as recordings, never its
downloads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime import readers
from axonnx.runtime.binning.settings import Origin
from axonnx.runtime.events.arrays import Sensor, concatenate_events, make_events, sort_events
from axonnx.runtime.format.contract import FitContract
from axonnx.runtime.readers.shd import SENSOR as COCHLEA
from axonnx.runtime.readers.shd import read_speakers
from axonnx.train.data.cache import cache_folder
from axonnx.train.data.event_store import EventStore, Sample, data_root, find_files, missing_files, naming
from axonnx.train.data.recordings import Frames, Place, Recordings, as_labels, from_first_event, join_events
from axonnx.train.data.splits import DataSplits

UNREADABLE = (OSError, EOFError, ValueError, IndexError, TypeError)


@dataclass(frozen=True)
class TonicPart:
    """Where tonic expects one part of a data set: files below `folder`, this many of them."""

    train: bool
    folder: str
    files: int


@dataclass(frozen=True)
class TonicSource:
    """A data set of tonic's, by its class name there; files stand below `<root>/<class name>`."""

    name: str
    tonic: str
    pattern: str
    parts: Mapping[str, TonicPart]
    classes: tuple[str, ...]
    sensor: Sensor
    how: str
    record_bytes: int = 1
    origin: Origin = "zero"
    own_reader: bool = False  # its files are of a format that axonnx.runtime.readers knows


def load_through_tonic(source: TonicSource, root: str | Path | None, store: str | Path | None) -> DataSplits:
    """Load both parts of the data set; ``store`` is where they are kept once converted."""
    folder, kept = data_root(root, source.name), EventStore(Path(store) if store else cache_folder())
    train, test = (tonic_recordings(source, folder, part, kept) for part in source.parts)
    return DataSplits(source.name, train, test)


def tonic_recordings(source: TonicSource, root: Path, part: str, store: EventStore) -> Recordings:
    """One part of the data set, converted on first use and then mapped from the store."""
    paths = _files(source, root, part)

    def convert() -> Iterator[Sample]:
        return _samples(_opened(source.tonic, root, source.parts[part].train), source)

    places = tuple(Place(path) for path in sorted(paths, key=str)) if source.own_reader else None
    return store.recordings(paths, convert, source.classes, source.sensor, origin=source.origin, places=places)


def _files(source: TonicSource, root: Path, part: str) -> list[Path]:
    """Check that the part's files are there and of a possible size; otherwise tonic would try to download them."""
    wanted = source.parts[part]
    folder = root / source.tonic / wanted.folder
    paths = sorted(folder.glob(source.pattern))
    if len(paths) < wanted.files:
        expected = f"{wanted.files:,} files {source.tonic}/{wanted.folder}/{source.pattern} ({len(paths):,} are there)"
        raise missing_files(source.name, [expected], [root], source.how)
    for path in paths:
        if path.stat().st_size == 0 or path.stat().st_size % source.record_bytes:
            raise AxonnxError(f"{path}: {path.stat().st_size} bytes; the file is cut off, unpack it again")
    return paths


def _opened(tonic_class: str, root: Path, train: bool) -> Any:
    """Tonic's data set over the files that are there."""
    try:
        import numpy.lib.recfunctions  # noqa: F401 (tonic uses it without importing it)
        from tonic import datasets
    except ImportError as error:
        raise AxonnxError(f"this data set is read through tonic ({error}); pip install 'axonnx[tonic]'") from error
    # tonic derives its folder from the class's name, and downloads where it misses its own archive.
    offline = type(tonic_class, (getattr(datasets, tonic_class),), {"download": lambda self: None})
    return offline(str(root), train=train)


def _samples(data: Any, source: TonicSource) -> Iterator[Sample]:
    """Sort the recordings by path: tonic lists them in whatever order the file system does."""
    groups = getattr(data, "users", [-1] * len(data.data))
    for index in sorted(range(len(data.data)), key=lambda index: str(data.data[index])):
        try:
            found, label = data[index]
            # By name: the order of the fields differs between tonic's data sets.
            events = make_events(*(found[field] for field in ("t", "x", "y", "p")))
        except UNREADABLE as error:
            raise AxonnxError(
                f"{data.data[index]}: is no {source.name} recording ({error}); unpack it again"
            ) from error
        ordered = from_first_event(events) if source.origin == "first" else sort_events(events)
        yield Sample(ordered, int(label), int(groups[index]))


DIGITS = tuple("0123456789")
CAMERA = Sensor(width=34, height=34)
NMNIST = TonicSource(
    name="nmnist",
    tonic="NMNIST",
    pattern="[0-9]/*.bin",
    parts={"train": TonicPart(True, "Train", 60_000), "test": TonicPart(False, "Test", 10_000)},
    classes=DIGITS,
    sensor=CAMERA,
    how="download train.zip and test.zip from https://www.garrickorchard.com/datasets/n-mnist into the folder NMNIST "
    "below the data folder and unpack them there",
    record_bytes=5,
    own_reader=True,
)
NMNIST_SMALL = ["nmnist_train_1000.npz", "nmnist_test_100.npz"]


def load_nmnist(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """N-MNIST as published: 60,000 and 10,000 recordings; `store` is where they are kept once converted."""
    return load_through_tonic(NMNIST, root, store)


def load_nmnist_1000(root: str | Path | None = None) -> DataSplits:
    """Load the first 1,000 training and 100 test recordings of N-MNIST."""
    how = "they hold part of N-MNIST and are not published; use the data set nmnist for the whole"
    paths = find_files(root, NMNIST_SMALL, data_set="nmnist-1000", how=how)
    return DataSplits("nmnist-1000", *(_read_nmnist(path) for path in paths))


def _read_nmnist(path: Path) -> Recordings:
    t, x, y, p, offsets, labels = read_arrays(path, ["t"], ["x"], ["y"], ["p"], ["offsets"], ["label"])
    with naming(path):
        places = tuple(Place(path, number) for number in range(len(labels)))
        events = make_events(t, x, y, p)
        return Recordings(events, as_labels(offsets), as_labels(labels), DIGITS, CAMERA, places=places)


GESTURES = (
    "hand clapping", "right hand wave", "left hand wave", "right arm clockwise", "right arm counter-clockwise",
    "left arm clockwise", "left arm counter-clockwise", "arm roll", "air drums", "air guitar", "other gestures",
)  # fmt: skip
DVS_GESTURE = TonicSource(
    name="dvs-gesture",
    tonic="DVSGesture",
    pattern="user*/*.npy",
    parts={"train": TonicPart(True, "ibmGestureTrain", 1077), "test": TonicPart(False, "ibmGestureTest", 264)},
    classes=GESTURES,
    sensor=Sensor(width=128, height=128),
    how="download ibmGestureTrain.tar.gz (https://figshare.com/ndownloader/files/38022171) and ibmGestureTest.tar.gz "
    "(https://figshare.com/ndownloader/files/38020584) into the folder DVSGesture below the data folder and unpack "
    "them there",
    origin="first",
)
SLICE_US = 120_000
WHOLE = FitContract(sensor=Sensor(width=128, height=128), width=128, height=128)
GESTURES_SMALL = ["dvs_gesture_train_32x32.npz", "dvs_gesture_validation_32x32.npz"]


def load_dvs_gesture(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """DVS128 Gesture cut into 1,077 and 264 recordings; `store` is where they are kept once converted."""
    return load_through_tonic(DVS_GESTURE, root, store)


def load_dvs_gesture_32x32(root: str | Path | None = None) -> DataSplits:
    """Load the gestures as 49 frames of 2×32×32 counts; the test part is the validation users, 19 to 23."""
    how = "they are frames made from DVS128 Gesture and not published; use the data set dvs-gesture for the events"
    paths = find_files(root, GESTURES_SMALL, data_set="dvs-gesture-32x32", how=how)
    return DataSplits("dvs-gesture-32x32", *(_read_gestures(path) for path in paths))


def load_dvs_gesture_slices(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """Load the same gestures as events: those of a slice in a random order, spread evenly over a nominal time.

    How long a slice took is not known, nor the order of its events, so times within a recording are simulated: each of
    the 49 slices lasts 120 ms, which makes six seconds, the published mean of a recording. The sensor is that of the
    frames; a network takes events of 128×128 pixels and sums squares of 4×4, as the frames were made.
    """
    how = "they are frames made from DVS128 Gesture and not published; use the data set dvs-gesture for the events"
    paths = find_files(root, GESTURES_SMALL, data_set="dvs-gesture-slices", how=how)
    kept = EventStore(Path(store) if store is not None else cache_folder())
    return DataSplits("dvs-gesture-slices", *(_spread(path, kept) for path in paths))


def _spread(path: Path, store: EventStore) -> Recordings:
    def convert() -> Iterator[Sample]:
        data = _read_gestures(path)
        assert data.groups is not None
        for number, frames in enumerate(data.frames):
            yield Sample(events_of(frames, number), int(data.labels[number]), int(data.groups[number]), source=number)

    camera = Sensor(width=32, height=32)
    return store.recordings([path], convert, GESTURES, camera, origin="first", fit=WHOLE)


def events_of(frames: NDArray[np.uint8], seed: int) -> NDArray[np.void]:
    """Return the events of the slices [T, 2, 32, 32] of a recording."""
    random, parts = np.random.default_rng(seed), []
    for number, counts in enumerate(frames):
        cells = random.permutation(np.repeat(np.arange(counts.size), counts.reshape(-1)))
        times = number * SLICE_US + np.arange(len(cells)) * SLICE_US // max(1, len(cells))
        p, y, x = np.unravel_index(cells, counts.shape)
        parts.append(make_events(times, x, y, p))
    return concatenate_events(parts)


def _read_gestures(path: Path) -> Frames:
    frames, labels, recordings = read_arrays(path, ["frames"], ["label"], ["recording"])
    with naming(path):
        return Frames(frames, as_labels(labels), GESTURES, _users(recordings))


def _users(recordings: NDArray[np.str_]) -> NDArray[np.int64]:
    """User numbers from names like user07_natural_0."""
    try:
        return np.array([int(str(name)[4:6]) for name in recordings], np.int64)
    except ValueError as error:
        raise AxonnxError(f"recordings are named userNN_…; {error}") from error


ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GERMAN = ("null", "eins", "zwei", "drei", "vier", "fuenf", "sechs", "sieben", "acht", "neun")
SPOKEN = ENGLISH + GERMAN
SHD_FILES = ["shd_train.h5", "shd_test.h5"]
SHD_HOW = "download shd_train.h5.zip and shd_test.h5.zip from https://zenkelab.org/datasets/ and unpack them there"
REGENERATED = ["shd_regen_train.npz", "shd_regen_dev.npz"]


def load_shd(root: str | Path | None = None) -> DataSplits:
    """SHD as published: 8,156 training and 2,264 test recordings of 700 cochlea channels."""
    places = (".", "SHD", "shd")
    paths = find_files(root, SHD_FILES, folders=places, data_set="shd", how=SHD_HOW)
    return DataSplits("shd", *(read_shd(path) for path in paths))


def load_regenerated(root: str | Path | None = None) -> DataSplits:
    """Load recordings made again from Heidelberg Digits, tested on a held-out speaker. Never report them as SHD."""
    how = "they are regenerated from the Heidelberg Digits and not published; use the data set shd for the original"
    paths = find_files(root, REGENERATED, data_set="shd-regenerated", how=how)
    return DataSplits("shd-regenerated", *(read_regenerated(path) for path in paths))


def read_shd(path: Path) -> Recordings:
    """Read the recordings of one HDF5 file in SHD's layout."""
    found = readers.read_shd(path)
    labels = [each.label for each in found if each.label is not None]
    if len(labels) != len(found):
        raise AxonnxError(f"{path}: has no labels; expected one for each of {len(found)} recordings")
    with naming(path):
        events, offsets = join_events(sort_events(each.events) for each in found)
        places = tuple(Place(path, number) for number in range(len(found)))
        numbers = np.array(labels, np.int64)
        return Recordings(events, offsets, numbers, SPOKEN, COCHLEA, _speakers(path), places=places)


def read_regenerated(path: Path) -> Recordings:
    """Read the recordings of one npz file of regenerated digits."""
    names = (["times_f16"], ["units"], ["offsets"], ["label"], ["speaker"])
    times, units, offsets, labels, speakers = read_arrays(path, *names)
    with naming(path):
        events = make_events(np.rint(times.astype(np.float64) * 1e6), units)
        return Recordings(events, as_labels(offsets), as_labels(labels), SPOKEN, COCHLEA, as_labels(speakers))


def _speakers(path: Path) -> NDArray[np.int64]:
    speakers = read_speakers(path)
    if not len(speakers):
        raise AxonnxError("has no extra/speaker; expected who spoke for every recording")
    return as_labels(speakers)
