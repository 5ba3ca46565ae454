"""N-MNIST: handwritten digits seen by a moving event camera."""

from __future__ import annotations

from pathlib import Path

from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.binning import Sensor
from axonnx.runtime.events.arrays import make_events
from axonnx.train.data.files import find_files, naming
from axonnx.train.data.labels import as_labels
from axonnx.train.data.recordings import Place, Recordings
from axonnx.train.data.sets.tonic_adapter import TonicPart, TonicSource, load_through_tonic
from axonnx.train.data.splits import DataSplits

CLASSES = tuple("0123456789")
CAMERA = Sensor(width=34, height=34)
SOURCE = TonicSource(
    name="nmnist",
    tonic="NMNIST",
    pattern="[0-9]/*.bin",
    parts={"train": TonicPart(True, "Train", 60_000), "test": TonicPart(False, "Test", 10_000)},
    classes=CLASSES,
    sensor=CAMERA,
    how="download train.zip and test.zip from https://www.garrickorchard.com/datasets/n-mnist into the folder NMNIST "
    "below the data folder and unpack them there",
    record_bytes=5,
    own_reader=True,
)
SMALL = ["nmnist_train_1000.npz", "nmnist_test_100.npz"]


def load_nmnist(root: str | Path | None = None, *, store: str | Path | None = None) -> DataSplits:
    """N-MNIST as published: 60,000 and 10,000 recordings; `store` is where they are kept once converted."""
    return load_through_tonic(SOURCE, root, store)


def load_nmnist_1000(root: str | Path | None = None) -> DataSplits:
    """Load the first 1,000 training and 100 test recordings of N-MNIST."""
    how = "they hold part of N-MNIST and are not published; use the data set nmnist for the whole"
    paths = find_files(root, SMALL, data_set="nmnist-1000", how=how)
    return DataSplits("nmnist-1000", *(_read(path) for path in paths))


def _read(path: Path) -> Recordings:
    t, x, y, p, offsets, labels = read_arrays(path, ["t"], ["x"], ["y"], ["p"], ["offsets"], ["label"])
    with naming(path):
        places = tuple(Place(path, number) for number in range(len(labels)))
        events = make_events(t, x, y, p)
        return Recordings(events, as_labels(offsets), as_labels(labels), CLASSES, CAMERA, places=places)
