"""Data sets by name, and one's own by path."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError, validate_call

from axonnx.base.errors import AxonnxError
from axonnx.train.data import digits, event_sets, image_files
from axonnx.train.data.folder import load_folder
from axonnx.train.data.image_files import holds_frames, load_frames
from axonnx.train.data.shaping import Shaping, shaped
from axonnx.train.data.splits import DataSplits


class DataSet(NamedTuple):
    """A data set's loader and its description in one line. The loader's first argument is the data folder."""

    load: Callable[..., DataSplits]
    description: str


DATA_SETS = {
    "digits-saccade": DataSet(
        digits.load_saccade, "1,797 handwritten digits seen by a simulated event camera in three saccades; built in"
    ),
    "digits-static": DataSet(digits.load_static, "the same digits as images of 8×8; built in"),
    "shd": DataSet(event_sets.load_shd, "Spiking Heidelberg Digits as published: spoken digits, 700 cochlea channels"),
    "shd-regenerated": DataSet(
        event_sets.load_regenerated, "spoken digits made anew with SHD's cochlea model, one speaker held out; not SHD"
    ),
    "dvs-gesture": DataSet(event_sets.load_dvs_gesture, "DVS128 Gesture: eleven gestures, 128×128 events"),
    "dvs-gesture-32x32": DataSet(
        event_sets.load_dvs_gesture_32x32, "DVS128 Gesture as 49 frames of 2×32×32 counts; users 1–19, tested on 19–23"
    ),
    "dvs-gesture-slices": DataSet(
        event_sets.load_dvs_gesture_slices, "the same frames as events, with simulated times within a recording"
    ),
    "nmnist": DataSet(event_sets.load_nmnist, "N-MNIST: handwritten digits, 34×34 events"),
    "nmnist-1000": DataSet(event_sets.load_nmnist_1000, "the first 1,000 training and 100 test recordings of N-MNIST"),
    "cifar10": DataSet(image_files.load_cifar10, "CIFAR-10 from its binary files: images of 3×32×32"),
    "cifar10-5000": DataSet(image_files.load_cifar10_5000, "5,000 training and 1,000 test images of CIFAR-10"),
    "mnist": DataSet(image_files.load_mnist, "MNIST from idx files: images of 28×28"),
    "fashion-mnist": DataSet(image_files.load_fashion_mnist, "Fashion-MNIST from idx files: images of 28×28"),
    "idx": DataSet(image_files.load_idx, "any four idx files that stand in the data folder itself"),
}


def available() -> dict[str, str]:
    """Every data set's name with a line about it."""
    return {name: known.description for name, known in DATA_SETS.items()}


def load_data_set(
    name_or_path: str | Path,
    *,
    root: str | Path | None = None,
    shaping: Shaping | None = None,
    **options: Any,
) -> DataSplits:
    """Load the data set of that name, or one's own at that path, with the options its loader takes.

    `shaping` says how recordings are brought onto another sensor and cut into windows.
    """
    name = str(name_or_path)
    if name in DATA_SETS:
        loader, place = DATA_SETS[name].load, root
    else:
        loader, place = _own(name), Path(name_or_path)
    _check_options(name, loader, options)
    how = shaping or Shaping()
    if loader is load_folder:
        return _load(name, partial(load_folder, shaping=how), place, options)
    return shaped(_load(name, loader, place, options), how)


def _load(
    name: str, loader: Callable[..., DataSplits], place: str | Path | None, options: dict[str, Any]
) -> DataSplits:
    """Return what the loader gives; options of another type than it states are refused."""
    try:
        splits: DataSplits = validate_call(loader)(place, **options)
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise AxonnxError(f"{name}: option {where} is {first['input']!r}: {first['msg']}") from None
    return splits


def _own(name: str) -> Callable[..., DataSplits]:
    """Return the loader for what stands at a path."""
    path = Path(name)
    try:
        found = path.is_dir()
    except OSError as fault:  # a name that no file can have
        raise AxonnxError(f"{name[:80]!r}…: cannot be read ({fault.strerror}); expected a data set or a path") from None
    if found:
        return load_frames if holds_frames(path) else load_folder
    if path.is_file() and path.suffix.lower() == ".npz":
        return load_frames
    if path.exists():
        raise AxonnxError(f"{path}: own data is a folder of recordings with a class a folder, or an npz of frames")
    near = get_close_matches(name, DATA_SETS, n=3, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    raise AxonnxError(f"there is no data set and no file {name!r}; {hint}Known: {', '.join(DATA_SETS)}")


def _check_options(name: str, loader: Callable[..., DataSplits], options: dict[str, Any]) -> None:
    known = [each for each in list(inspect.signature(loader).parameters)[1:] if each != "shaping"]
    for option in options:
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise AxonnxError(f"{name}: unknown option {option!r}; {hint}Known: {', '.join(known) or 'none'}")
