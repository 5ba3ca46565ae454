"""Images and frames in files: idx (MNIST and its kin), CIFAR-10's binary files, and npz files of one's own."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.streams.frame_files import FRAMES, LABELS
from axonnx.train.data.event_store import data_root, find_files, missing_files, naming
from axonnx.train.data.recordings import Frames, as_labels
from axonnx.train.data.splits import DataSplits, stratified_split

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


OBJECTS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
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
    return DataSplits("cifar10", Frames(images, labels, OBJECTS), Frames(*batches[-1], OBJECTS))


def load_cifar10_5000(root: str | Path | None = None) -> DataSplits:
    """500 training and 100 test images a class of CIFAR-10."""
    how = "they hold part of CIFAR-10 and are not published; use the data set cifar10 for the whole"
    paths = find_files(root, SMALL, data_set="cifar10-5000", how=how)
    images, labels = read_arrays(paths[0], ["x"], ["y"])
    if images.shape[1:] != (32, 32, 3):
        raise AxonnxError(f"{paths[0]}: images of shape {images.shape}; expected (N, 32, 32, 3)")
    with naming(paths[0]):
        train = Frames(np.ascontiguousarray(images.transpose(0, 3, 1, 2)), as_labels(labels), OBJECTS)
    return DataSplits("cifar10-5000", train, Frames(*read_batch(paths[1]), OBJECTS))


def read_batch(path: Path, records: int | None = None) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images [N, 3, 32, 32] and labels of one binary file; `records`, when given, is how many it must hold."""
    content = np.fromfile(path, np.uint8)
    if not content.size or content.size % RECORD:
        raise AxonnxError(f"{path}: {content.size} bytes are no whole number of {RECORD}-byte records; fetch it again")
    rows = content.reshape(-1, RECORD)
    if records is not None and len(rows) != records:
        raise AxonnxError(f"{path}: {len(rows)} records; the official file has {records}. Fetch it again")
    if rows[:, 0].max() >= len(OBJECTS):
        raise AxonnxError(f"{path}: label {rows[:, 0].max()} in record {rows[:, 0].argmax()}; CIFAR-10 has 0 to 9")
    return np.ascontiguousarray(rows[:, 1:]).reshape(-1, *IMAGE), rows[:, 0].astype(np.int64)


PART_FILES = {"train": "train.npz", "test": "test.npz", "validation": "validation.npz"}

Layout = Literal["channels-first", "channels-last"]


def load_frames(
    path: str | Path,
    *,
    test_share: float = 0.2,
    layout: Layout = "channels-first",
    classes: Sequence[str] | None = None,
    seed: int = 0,
) -> DataSplits:
    """Sequences [N, T, C, H, W] or images [N, C, H, W] or [N, H, W], with a share of each class held out for testing.

    A folder with train.npz and test.npz (and validation.npz) gives the parts as they are.
    """
    place = Path(path)
    files = [place] if place.is_file() else [place / name for name in PART_FILES.values()]
    arrays = {file.stem: _read(file, layout) for file in files if file.is_file()}
    names = tuple(classes) if classes else _numbered([labels for _, labels in arrays.values()])
    data = {stem: _frames(place, *pair, names) for stem, pair in arrays.items()}
    if place.is_dir():
        return DataSplits(place.name, data["train"], data["test"], data.get("validation"))
    whole = data[place.stem]
    train, test = stratified_split(whole.labels, range(len(whole)), max(1, round(test_share * len(whole))), seed)
    return DataSplits(place.stem, whole.subset(train), whole.subset(test))


def holds_frames(folder: Path) -> bool:
    """Whether a folder has the files of `load_frames` rather than recordings."""
    return all((folder / PART_FILES[part]).is_file() for part in ("train", "test"))


def _read(path: Path, layout: Layout) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    frames, labels = read_arrays(path, FRAMES, LABELS)
    with naming(path):
        return _channels_first(_small_integers(frames), layout), as_labels(labels)


def _frames(path: Path, frames: NDArray[np.uint8], labels: NDArray[np.int64], classes: tuple[str, ...]) -> Frames:
    with naming(path):
        return Frames(frames, labels, classes)


def _small_integers(frames: NDArray[Any]) -> NDArray[np.uint8]:
    if frames.dtype.kind not in "iub" or (frames.size and not 0 <= int(frames.min()) <= int(frames.max()) <= 255):
        raise AxonnxError(
            f"frames are {frames.dtype} with values that uint8 cannot hold; expected whole numbers from 0 to 255 "
            "(they keep every sum exact)"
        )
    return frames.astype(np.uint8, copy=False)


def _channels_first(frames: NDArray[np.uint8], layout: Layout) -> NDArray[np.uint8]:
    if layout not in ("channels-first", "channels-last"):
        raise AxonnxError(f"layout is {layout!r}; expected 'channels-first' or 'channels-last'")
    if frames.ndim == 3:
        return frames[:, None]
    if layout == "channels-last" and frames.ndim in (4, 5):
        return np.ascontiguousarray(np.moveaxis(frames, -1, -3))
    return frames


def _numbered(labels: list[NDArray[np.int64]]) -> tuple[str, ...]:
    """Names for as many classes as the labels speak of."""
    return tuple(str(number) for number in range(1 + max(int(each.max(initial=0)) for each in labels)))
