"""Read frames and images from npz and npy files, for networks that do not bin events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.base.numpy_files import NPY_MAGIC, NPZ_MAGIC, checked_arrays, most_bytes
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.network_input import describe_input, merge_frames
from axonnx.runtime.readers.binary import read_head

FRAMES, LABELS = ("frames", "x"), ("labels", "label", "y")
BLOCK = 64  # samples checked at a time

EVENTS_CANNOT_BE = "The model's contract does not define event binning, so it cannot run on event recordings"


def read_frames(path: str | Path, contract: InputContract, index: int | None = None) -> NDArray[np.int64]:
    """Read the samples of a file.

    Recorded frames are merged as the contract states. Frames that are time steps already stay as they are.

    Args:
        path: An npz or npy file.
        contract: The network's input.
        index: Read only this sample. Default: all samples.

    Returns:
        Integers [N, T, *shape], with T = 1 for images.

    Raises:
        AxonnxError: If the file does not hold what the network takes, or has no sample ``index``.
    """
    values = _samples(_array(Path(path), contract), contract, str(path))
    if index is not None and not 0 <= index < len(values):
        raise AxonnxError(f"{path}: has no sample {index}; expected an index from 0 to {len(values) - 1}")
    return as_steps(values if index is None else values[index : index + 1], contract, str(path))


def as_steps(values: NDArray[Any], contract: InputContract, where: str) -> NDArray[np.int64]:
    """Convert samples [N, …], recorded or merged, to integers [N, T, *shape] within the contract's bounds.

    An image that is shown in every time step is checked once and then repeated.
    """
    rule, values = contract.merging, _samples(values, contract, where)
    if values.dtype.kind not in "biuf":
        raise AxonnxError(f"{where}: holds {values.dtype}; expected integers")
    if rule is not None and values.shape[1:] == (rule.recorded, *contract.shape):
        _check(values, values != np.rint(values), "integers", where)
        values = merge_frames(values.astype(np.int32), rule)
    steps, found = contract.steps or 1, _whole(values, contract, where)
    if contract.repeated and found.shape[1:] == contract.shape:
        return np.repeat(found[:, np.newaxis], steps, axis=1)
    return found.reshape(len(values), steps, *contract.shape)


def read_labels(path: str | Path, samples: int, classes: int) -> NDArray[np.int64] | None:
    """Read the labels of a file with ``samples`` samples, counted from 0; return None if it has no labels."""
    arrays = checked_arrays(path, LABELS)
    labels = next((arrays[name] for name in LABELS if name in arrays), None)
    if labels is None:
        return None
    if labels.dtype.kind not in "iu" or labels.shape != (samples,):
        raise AxonnxError(f"{path}: holds labels {labels.dtype} {list(labels.shape)}; expected {samples} integers")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise AxonnxError(
            f"{path}: holds labels from {labels.min()} to {labels.max()}; expected 0 to {classes - 1} for {classes} "
            f"classes"
        )
    return np.asarray(labels, np.int64)


def _samples(values: NDArray[Any], contract: InputContract, where: str) -> NDArray[Any]:
    """Return the array as [N, …] in one of the shapes that the contract accepts."""
    sample = (*(() if contract.steps is None else (contract.steps,)), *contract.shape)
    if contract.repeated:  # an array [T, C, H, W] is T images
        admitted = [contract.shape] if values.ndim <= len(sample) else [sample]
        return _admitted(values, admitted, contract, where)
    admitted = [sample] if contract.merging is None else [sample, (contract.merging.recorded, *contract.shape)]
    return _admitted(values, admitted, contract, where)


def _admitted(
    values: NDArray[Any], admitted: list[tuple[int, ...]], contract: InputContract, where: str
) -> NDArray[Any]:
    """Return the samples [N, …], with a new first axis for a single sample; refuse every other shape."""
    sample = admitted[0]
    if values.shape in admitted:
        values = values[np.newaxis]
    if values.shape[1:] not in admitted or len(values) == 0:
        hint = " (channels come first: [C, H, W])" if sorted(values.shape[-3:]) == sorted(sample[-3:]) else ""
        expected = " or ".join(f"{list(each)}" for each in admitted)
        many = " or ".join(f"[N, {', '.join(map(str, each))}]" for each in admitted)
        raise AxonnxError(
            f"{where}: holds an array {list(values.shape)}; the network expects {describe_input(contract)}: "
            f"one sample {expected}, or several {many}{hint}"
        )
    return values


def _array(path: Path, contract: InputContract) -> NDArray[Any]:
    takes = f"the network expects {describe_input(contract)} from an npz or npy file"
    if path.is_file() and not read_head(path).startswith((NPY_MAGIC, NPZ_MAGIC)):
        binned = contract.binning is not None
        hint = "Put recordings of events in a folder and give the folder" if binned else EVENTS_CANNOT_BE
        raise AxonnxError(f"{path}: is neither an npz nor an npy file; {takes}. {hint}")
    arrays = checked_arrays(path)
    found = [arrays[name] for name in ("", *FRAMES) if name in arrays]
    events = {"t", "x"} <= set(arrays)
    if events or len(found) != 1:
        what = f"{'a recording of events: ' if events else ''}{', '.join(arrays) or 'nothing'}"
        raise AxonnxError(f"{path}: holds {what}; {takes}: expected one array called {' or '.join(FRAMES)}")
    if found[0].size * 8 > most_bytes(path):  # as int64
        raise AxonnxError(
            f"{path}: holds {found[0].size:,} values; at most {most_bytes(path) // 8:,} are accepted for a file of its "
            f"size"
        )
    return found[0]


def _whole(values: NDArray[Any], contract: InputContract, where: str) -> NDArray[np.int64]:
    """Convert to integers, and refuse values further from the centre than the contract accepts."""
    low, high = contract.centre - contract.largest, contract.centre + contract.largest
    low = low if contract.scaled_to is None else 0  # counts
    wrong = np.empty(values.shape, np.bool_)
    for start in range(0, len(values), BLOCK):
        distance = np.abs(values[start : start + BLOCK].astype(np.float64) - contract.centre)
        wrong[start : start + BLOCK] = ~(distance <= contract.largest) | (distance != np.rint(distance))
        if contract.scaled_to is not None:
            wrong[start : start + BLOCK] |= values[start : start + BLOCK] < 0
    _check(values, wrong, f"integers from {low} to {high}", where)
    return values.astype(np.int64)


def _check(values: NDArray[Any], wrong: NDArray[np.bool_], expected: str, where: str) -> None:
    if wrong.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(wrong))
        raise AxonnxError(
            f"{where}: the value at {list(at)} is {values[at]}; expected {expected} "
            f"({int(wrong.sum())} of {values.size} values are wrong). Sums of other values would not be exact"
        )
