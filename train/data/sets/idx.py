"""The idx files of MNIST and its kin, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.train.data.files import data_root, missing_files
from axonnx.train.data.frames import Frames
from axonnx.train.data.splits import DataSplits

GZIP_MAGIC, UINT8 = b"\x1f\x8b", 0x08
DIGITS = tuple("0123456789")
FASHION = (
    "T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
)  # fmt: skip
PARTS = {"train": "train", "test": "t10k"}


def load_mnist(root: str | Path | None = None) -> DataSplits:
    """MNIST as images [N, 1, 28, 28]."""
    folders = ("mnist", "MNIST", "MNIST/raw")
    return _load("mnist", data_root(root, "mnist"), folders, DIGITS, "https://github.com/cvdfoundation/mnist")


def load_fashion_mnist(root: str | Path | None = None) -> DataSplits:
    """Fashion-MNIST as images [N, 1, 28, 28]."""
    folders = ("fashion-mnist", "FashionMNIST", "FashionMNIST/raw", "dataset-fashion-mnist")
    source = "Debian's package dataset-fashion-mnist, or https://github.com/zalandoresearch/fashion-mnist"
    return _load("fashion-mnist", data_root(root, "fashion-mnist"), folders, FASHION, source)


def load_idx(root: str | Path | None = None) -> DataSplits:
    """Any data set of four idx files that stand in the data folder itself; classes are named by number."""
    return _load("idx", data_root(root, "idx"), (".",), None, "any collection in MNIST's layout")


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Read the array of one idx file of unsigned bytes."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0":
        raise AxonnxError(f"{path}: is no idx file; it begins with {content[:4].hex() or 'nothing'}, expected 0000…")
    if content[2] != UINT8:
        raise AxonnxError(f"{path}: idx type 0x{content[2]:02x}; expected 0x{UINT8:02x}, unsigned bytes")
    start = 4 + 4 * content[3]
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4", count=len(content[4:start]) // 4))
    size = start + int(np.prod(shape, dtype=np.int64))
    if len(shape) != content[3] or len(content) != size:
        raise AxonnxError(f"{path}: {len(content)} bytes; an idx file of shape {shape} has {size}. Fetch it again")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _content(path: Path) -> bytes:
    raw = path.read_bytes()
    if not raw.startswith(GZIP_MAGIC):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise AxonnxError(f"{path}: the gzip stream is damaged or cut off ({error}); fetch it again") from error


def _load(name: str, root: Path, folders: tuple[str, ...], classes: tuple[str, ...] | None, source: str) -> DataSplits:
    places = [root / folder for folder in folders]
    files = {part: _pair(name, places, prefix, source) for part, prefix in PARTS.items()}
    pairs = {part: _read_pair(images, labels) for part, (images, labels) in files.items()}
    known = classes or tuple(map(str, range(max(int(labels.max(initial=0)) for _, labels in pairs.values()) + 1)))
    parts = {part: Frames(images, labels, known) for part, (images, labels) in pairs.items()}
    return DataSplits(name=name, train=parts["train"], test=parts["test"])


def _pair(name: str, places: list[Path], prefix: str, source: str) -> tuple[Path, Path]:
    """Return the files of images and labels of one part."""
    wanted = (f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte")
    for place in places:
        images, labels = (_plain_or_gzipped(place / file) for file in wanted)
        if images and labels:
            return images, labels
    everything = [f"{part}-{kind}-ubyte[.gz]" for part in PARTS.values() for kind in ("images-idx3", "labels-idx1")]
    raise missing_files(name, everything, places, source)


def _plain_or_gzipped(path: Path) -> Path | None:
    both = (path, path.with_name(path.name + ".gz"))
    return next((file for file in both if file.is_file()), None)


def _read_pair(images_path: Path, labels_path: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images, labels = read_idx(images_path), read_idx(labels_path)
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise AxonnxError(
            f"{images_path}: images of shape {images.shape} do not go with labels of shape {labels.shape} "
            f"in {labels_path.name}; expected (N, height, width) and (N,)"
        )
    return images[:, None], labels.astype(np.int64)
