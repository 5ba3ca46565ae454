"""Samples for a report from an npz file: frames, and labels where it has them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.contract import Contract
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.frame_files import read_frames
from axonnx.runtime.readers.npz import UNREADABLE
from axonnx.runtime.report_measure import Samples
from axonnx.runtime.sample_choice import choose_samples

LABELS = ("labels", "label", "y")


def read_samples(path: str | Path, contract: Contract, limit: int) -> Samples:
    """``limit`` samples at the most, of all classes: frames [N, T, C, H, W] or images [N, C, H, W]."""
    place = Path(path)
    frames = read_frames(place, contract.input)
    labels = _labels(place, len(frames), len(contract.classes))
    chosen = choose_samples(np.zeros(len(frames)) if labels is None else labels, limit)
    return Samples(frames[chosen], None if labels is None else labels[chosen], place.name)


def _labels(path: Path, samples: int, classes: int) -> NDArray[np.int64] | None:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                return None
            found = [archive[name] for name in LABELS if name in archive.files]
    except UNREADABLE as fault:
        raise AxonnxError(f"{path}: its labels cannot be read ({fault})") from None
    if not found:
        return None
    labels = found[0]
    if labels.dtype.kind not in "iu" or labels.shape != (samples,):
        raise AxonnxError(f"{path}: labels are {labels.dtype} {list(labels.shape)}; expected {samples} integers")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise AxonnxError(f"{path}: labels from {labels.min()} to {labels.max()} for {classes} classes, counted from 0")
    return np.asarray(labels, np.int64)
