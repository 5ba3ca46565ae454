"""The rules every labelled data set keeps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from axonnx.base.errors import AxonnxError


def as_labels(values: ArrayLike) -> NDArray[np.int64]:
    """Labels, groups or offsets of a file as int64; anything but whole numbers is refused."""
    found = np.asarray(values)
    if found.dtype.kind not in "iu":
        raise AxonnxError(f"labels are {found.dtype}; expected whole numbers")
    return found.astype(np.int64)


def check_labels(labels: NDArray[np.int64], classes: tuple[str, ...], where: str) -> None:
    """Refuse labels that are no 1-d int64 array of indices into `classes`."""
    if labels.dtype != np.int64 or labels.ndim != 1:
        raise AxonnxError(f"{where}: labels are {labels.dtype} of shape {labels.shape}; expected int64 of shape (N,)")
    if len(set(classes)) != len(classes) or not classes:
        raise AxonnxError(f"{where}: classes must be different names, one at least; got {classes}")
    bad = np.flatnonzero((labels < 0) | (labels >= len(classes)))
    if bad.size:
        raise AxonnxError(
            f"{where}: label {labels[bad[0]]} of sample {bad[0]} has no class; "
            f"there are {len(classes)}, numbered 0 to {len(classes) - 1}"
        )


def check_groups(groups: NDArray[np.int64] | None, samples: int, where: str) -> None:
    """Refuse groups that are not one int64 for every sample."""
    if groups is not None and (groups.dtype != np.int64 or groups.shape != (samples,)):
        raise AxonnxError(
            f"{where}: groups are {groups.dtype} of shape {groups.shape}; {samples} samples need int64 ({samples},)"
        )
