"""Frames and images from npz and npy files, for networks whose contract has no binning of events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.contract import InputContract
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.network_input import describe_input
from axonnx.runtime.readers.npz import UNREADABLE

KEYS = ("frames", "x")


def read_frames(path: str | Path, contract: InputContract, index: int | None = None) -> NDArray[np.int64]:
    """All samples of a file (or the one at ``index``) as integers [N, T, *shape], with T = 1 for images."""
    values = _array(Path(path))
    sample = (*(() if contract.steps is None else (contract.steps,)), *contract.shape)
    if values.shape == sample:
        values = values[np.newaxis]
    if values.shape[1:] != sample or len(values) == 0:
        hint = " (channels stand first, [C, H, W])" if sorted(values.shape[-3:]) == sorted(sample[-3:]) else ""
        raise AxonnxError(
            f"{path}: holds an array {list(values.shape)}; the network takes {describe_input(contract)}: "
            f"expected {list(sample)}, or many of them, {['N', *sample]}{hint}".replace("'N'", "N")
        )
    if index is not None and not 0 <= index < len(values):
        raise AxonnxError(f"{path}: has no sample {index}; expected an index from 0 to {len(values) - 1}")
    chosen = values if index is None else values[index : index + 1]
    return _whole(chosen, contract, path).reshape(len(chosen), contract.steps or 1, *contract.shape)


def _array(path: Path) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            arrays = {name: found[name] for name in KEYS if name in found.files}
            names = list(found.files)
    except UNREADABLE as fault:
        raise AxonnxError(
            f"{path}: is no readable npz or npy file ({fault}); the network takes frames or images from such a file"
        ) from None
    if len(arrays) != 1:
        raise AxonnxError(
            f"{path}: holds {', '.join(names) or 'nothing'}; expected one array called {' or '.join(KEYS)}. A network "
            f"without a binning of events takes frames or images"
        )
    return next(iter(arrays.values()))


def _whole(values: NDArray[Any], contract: InputContract, path: str | Path) -> NDArray[np.int64]:
    """The same as integers, none further from the centre than the contract admits."""
    if values.dtype.kind not in "biuf":
        raise AxonnxError(f"{path}: holds {values.dtype}; expected integers")
    distance = np.abs(values.astype(np.float64) - contract.centre)
    wrong = ~(distance <= contract.largest) | (distance != np.rint(distance))
    if wrong.any():
        at = tuple(int(axis[0]) for axis in np.nonzero(wrong))
        low, high = contract.centre - contract.largest, contract.centre + contract.largest
        raise AxonnxError(
            f"{path}: the value at {list(at)} is {values[at]}; expected integers from {low} to {high} "
            f"({int(wrong.sum())} of {values.size} values are not). Sums of others would not be exact"
        )
    return values.astype(np.int64)
