"""Convert integers to a network's input: x = (value − centre) · 2^−shift, as its contract states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract, InputContract, MergingContract

Floats = NDArray[np.float32]


def to_input(values: NDArray[Any], contract: InputContract) -> Floats:
    """Convert integers [T, B, …] to the network's input [T, B, *shape], exactly."""
    x = values.reshape(values.shape[:2] + contract.shape).astype(np.float32)
    if contract.centre:
        x -= np.float32(contract.centre)
    if contract.shift:
        x *= np.float32(contract.unit)
    return x


def merge_frames(frames: NDArray[np.integer], rule: MergingContract) -> NDArray[np.int32]:
    """Merge recorded frames [N, recorded, …] of small integers into time steps [N, T, …]."""
    starts = range(0, frames.shape[1], rule.frames)
    sums: NDArray[np.int32] = np.add.reduceat(frames, list(starts), axis=1, dtype=np.int32)
    return np.minimum(sums, rule.clip, out=sums)


def window_length(contract: Contract, where: str) -> int:
    """Return the number of bins in a window.

    Raises:
        AxonnxError: If the contract has no binning, or one that does not fit its own input.
    """
    entering, binning = contract.input, contract.input.binning
    if binning is None:
        raise AxonnxError(
            f"{where}: its contract does not state how events become frames; expected "
            f"{describe_input(entering)} from an npz or npy file, not events"
        )
    steps = 1 if entering.steps is None else entering.steps
    if binning.bins != steps or binning.cells != math.prod(entering.shape):
        raise AxonnxError(
            f"{where}: its contract bins events into {list(binning.shape)}, but its network expects "
            f"{describe_input(entering)}. Export the network again"
        )
    return steps


def describe_input(contract: InputContract) -> str:
    """Describe a network's input in words."""
    shape = "×".join(str(size) for size in contract.shape)
    if contract.steps is None:
        return f"images of {shape}"
    if contract.repeated:
        return f"images of {shape}, each shown in {contract.steps} time steps"
    rule = contract.merging
    merged = f" (sums of {rule.frames} of {rule.recorded} recorded frames)" if rule else ""
    return f"{contract.steps} frames of {shape}{merged}"
