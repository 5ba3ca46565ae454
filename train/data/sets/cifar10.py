"""CIFAR-10 from its official binary files, or the small part of it that fits into a repository's tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.train.data.files import find_files, naming
from axonnx.train.data.frames import Frames
from axonnx.train.data.labels import as_labels
from axonnx.train.data.splits import DataSplits

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
IMAGE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32  # label, then the red, the green and the blue plane
RECORDS = 10_000
FILES = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
HOW = "unpack https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz (162 MB) there"
SMALL = ["cifar10_train_5000.npz", "cifar10_test_batch_1000.bin"]


def load_cifar10(root: str | Path | None = None) -> DataSplits:
    """All of CIFAR-10 as images [N, 3, 32, 32]: 50,000 for training, 10,000 for testing."""
    places = ("cifar-10-batches-bin", "cifar10", ".")
    paths = find_files(root, FILES, folders=places, data_set="cifar10", how=HOW)
    batches = [read_batch(path, RECORDS) for path in paths]
    images, labels = (np.concatenate(column) for column in zip(*batches[:-1], strict=True))
    return DataSplits("cifar10", Frames(images, labels, CLASSES), Frames(*batches[-1], CLASSES))


def load_cifar10_5000(root: str | Path | None = None) -> DataSplits:
    """500 training and 100 test images a class of CIFAR-10."""
    how = "they hold part of CIFAR-10 and are not published; use the data set cifar10 for the whole"
    paths = find_files(root, SMALL, data_set="cifar10-5000", how=how)
    images, labels = read_arrays(paths[0], ["x"], ["y"])
    if images.shape[1:] != (32, 32, 3):
        raise AxonnxError(f"{paths[0]}: images of shape {images.shape}; expected (N, 32, 32, 3)")
    with naming(paths[0]):
        train = Frames(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), as_labels(labels), CLASSES)
    return DataSplits("cifar10-5000", train, Frames(*read_batch(paths[1]), CLASSES))


def read_batch(path: Path, records: int | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images [N, 3, 32, 32] and labels of one binary file; `records`, when given, is how many it must hold."""
    content = np.fromfile(path, np.uint8)
    if not content.size or content.size % RECORD:
        raise AxonnxError(f"{path}: {content.size} bytes are no whole number of {RECORD}-byte records; fetch it again")
    rows = content.reshape(-1, RECORD)
    if records is not None and len(rows) != records:
        raise AxonnxError(f"{path}: {len(rows)} records; the official file has {records}. Fetch it again")
    if rows[:, 0].max() >= len(CLASSES):
        raise AxonnxError(f"{path}: label {rows[:, 0].max()} in record {rows[:, 0].argmax()}; CIFAR-10 has 0 to 9")
    return np.ascontiguousarray(rows[:, 1:]).reshape(-1, *IMAGE), rows[:, 0].astype(np.int64)
