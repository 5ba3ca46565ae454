"""One's own frames: an npz file, or a folder with one for each part."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import read_arrays
from axonnx.runtime.streams.frame_files import FRAMES, LABELS
from axonnx.train.data.files import naming
from axonnx.train.data.frames import Frames
from axonnx.train.data.labels import as_labels
from axonnx.train.data.split import stratified_split
from axonnx.train.data.splits import DataSplits

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
