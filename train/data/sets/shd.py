"""Spiking Heidelberg Digits: the published HDF5 files, and recordings regenerated with the same cochlea model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime import readers
from axonnx.runtime.events.arrays import make_events, sort_events
from axonnx.runtime.readers.shd import SENSOR as COCHLEA
from axonnx.runtime.readers.shd import read_speakers
from axonnx.train.data.files import find_files, naming
from axonnx.train.data.labels import as_labels
from axonnx.train.data.recordings import Place, Recordings, join_events
from axonnx.train.data.splits import DataSplits

ENGLISH = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
GERMAN = ("null", "eins", "zwei", "drei", "vier", "fuenf", "sechs", "sieben", "acht", "neun")
CLASSES = ENGLISH + GERMAN
FILES = ["shd_train.h5", "shd_test.h5"]
HOW = "download shd_train.h5.zip and shd_test.h5.zip from https://zenkelab.org/datasets/ and unpack them there"
REGENERATED = ["shd_regen_train.npz", "shd_regen_dev.npz"]


def load_shd(root: str | Path | None = None) -> DataSplits:
    """SHD as published: 8,156 training and 2,264 test recordings of 700 cochlea channels."""
    places = (".", "SHD", "shd")
    paths = find_files(root, FILES, folders=places, data_set="shd", how=HOW)
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
        return Recordings(events, offsets, numbers, CLASSES, COCHLEA, _speakers(path), places=places)


def read_regenerated(path: Path) -> Recordings:
    """Read the recordings of one npz file of regenerated digits."""
    names = (["times_f16"], ["units"], ["offsets"], ["label"], ["speaker"])
    times, units, offsets, labels, speakers = read_arrays(path, *names)
    with naming(path):
        events = make_events(np.rint(times.astype(np.float64) * 1e6), units)
        return Recordings(events, as_labels(offsets), as_labels(labels), CLASSES, COCHLEA, as_labels(speakers))


def _speakers(path: Path) -> NDArray[np.int64]:
    speakers = read_speakers(path)
    if not len(speakers):
        raise AxonnxError("has no extra/speaker; expected who spoke for every recording")
    return as_labels(speakers)
