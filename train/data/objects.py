"""Data sets that exist as objects, of torch, torchvision or tonic, or arrays: written to files that a run can keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.files import replacing
from axonnx.runtime.events.arrays import Sensor, make_events
from axonnx.runtime.readers import write_npz

PARTS = ("train", "test")


def write_objects(data: Any, folder: Path) -> None:
    """Write the samples of a data set, or of a pair of them for training and test.

    Args:
        data: A data set with ``len`` and items (sample, label), a DataLoader of one, or (samples, labels). A sample is
            a structured array of events with fields t, x, y and p, frames [T, C, H, W], or an image [C, H, W].
        folder: Where `load_data_set` finds them: recordings by class, or ``train.npz`` and ``test.npz``.

    Raises:
        AxonnxError: If items are no such pairs, frames are no whole numbers, or the sensor of events is not known.
    """
    sets = [_whole(each) for each in (data if _is_pair(data) else (data,))]
    first = np.asarray(next(_items(sets[0]), (np.zeros(0),))[0])
    if first.dtype.names is not None:
        for number, each in enumerate(sets):
            _write_events(each, folder / PARTS[number] if len(sets) > 1 else folder)
        return
    arrays: list[tuple[NDArray[np.uint8], NDArray[np.int64]]] = [_frames(each) for each in sets]
    if len(arrays) == 1:
        arrays = _halves(*arrays[0])
    for name, (frames, labels) in zip(PARTS, arrays, strict=True):
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{name}.npz") as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, frames=frames, labels=labels)


def options_of(data: Any) -> dict[str, Any]:
    """Return the settings that name the classes, if frames have a list of them."""
    one = _whole(data[0] if _is_pair(data) else data)
    names = getattr(one, "classes", None)
    if names is None or np.asarray(next(_items(one))[0]).dtype.names is not None:
        return {}
    return {"data.options": {"classes": [str(name) for name in names]}}


def _is_pair(data: Any) -> bool:
    """Whether there are two data sets, not samples and their labels."""
    return isinstance(data, tuple) and len(data) == 2 and not any(hasattr(part, "shape") for part in data)


def _whole(data: Any) -> Any:
    """Return the data set behind a loader."""
    return data.dataset if hasattr(data, "dataset") and hasattr(data, "batch_size") else data


def _items(data: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(data, tuple):
        yield from zip(data[0], np.asarray(data[1]).tolist(), strict=True)
        return
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise AxonnxError(
            f"data is a {type(data).__name__}; expected a data set's name, a path, (samples, labels), or a data set "
            f"with len and items (sample, label)"
        )
    for number in range(len(data)):
        item = data[number]
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise AxonnxError(f"item {number} of {type(data).__name__} is no pair (sample, label)")
        yield item[0], int(item[1])


def _frames(data: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    samples, labels = zip(*_items(data), strict=True)
    frames = np.stack([np.asarray(sample) for sample in samples])
    small = frames.astype(np.uint8)
    if not np.array_equal(small, frames):
        raise AxonnxError(
            f"samples of {type(data).__name__} are {frames.dtype} from {frames.min():g} to {frames.max():g}; expected "
            f"whole numbers from 0 to 255. Leave out transforms that scale (ToTensor), and set data.shift instead"
        )
    return small, np.array(labels, np.int64)


def _halves(frames: NDArray[np.uint8], labels: NDArray[np.int64]) -> list[tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Every fifth sample of each class for testing."""
    place = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        place[labels == label] = np.arange((labels == label).sum())
    test = place % 5 == 4
    return [(frames[~test], labels[~test]), (frames[test], labels[test])]


def _write_events(data: Any, folder: Path) -> None:
    size = getattr(data, "sensor_size", None)
    if size is None:
        raise AxonnxError(
            f"{type(data).__name__} has no sensor_size = (width, height, polarities), so the sensor of its events is "
            f"not known; give the data set this attribute"
        )
    sensor, names = Sensor(width=size[0], height=size[1], polarities=size[2]), getattr(data, "classes", None)
    for number, (events, label) in enumerate(_items(data)):
        place = folder / (str(label) if names is None else str(names[label])) / f"{number:06}.npz"
        place.parent.mkdir(parents=True, exist_ok=True)
        write_npz(place, make_events(*(np.asarray(events[name]) for name in "txyp")), sensor)
