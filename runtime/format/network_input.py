"""From integers to what a network takes: x = (value − centre) · 2^−shift, as its contract says."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract, InputContract, MergingContract

Floats = NDArray[np.float32]


def to_input(values: NDArray[Any], contract: InputContract) -> Floats:
    """Integers [T, B, …] as the network's input [T, B, *shape]; exact, as integers and shifts are small."""
    x = values.reshape(values.shape[:2] + contract.shape).astype(np.float32)
    if contract.centre:
        x -= np.float32(contract.centre)
    if contract.shift:
        x *= np.float32(contract.unit)
    return x


def merge_frames(frames: NDArray[np.integer], rule: MergingContract) -> NDArray[np.int32]:
    """Recorded frames [N, recorded, …] of small integers as time steps [N, T, …]."""
    starts = range(0, frames.shape[1], rule.frames)
    sums: NDArray[np.int32] = np.add.reduceat(frames, list(starts), axis=1, dtype=np.int32)
    return np.minimum(sums, rule.clip, out=sums)


def window_length(contract: Contract, where: str) -> int:
    """Bins of one window; refused where the contract has no binning, or one that does not fit its own input."""
    entering, binning = contract.input, contract.input.binning
    if binning is None:
        raise AxonnxError(
            f"{where}: its contract does not say how events become frames: it takes "
            f"{describe_input(entering)} from an npz or npy file, not events"
        )
    steps = 1 if entering.steps is None else entering.steps
    if binning.bins != steps or binning.cells != math.prod(entering.shape):
        raise AxonnxError(
            f"{where}: its contract bins events into {list(binning.shape)} and its network takes "
            f"{describe_input(entering)}. Export the network again"
        )
    return steps


def describe_input(contract: InputContract) -> str:
    """What a network takes, in words."""
    shape = "×".join(str(size) for size in contract.shape)
    if contract.steps is None:
        return f"images of {shape}"
    if contract.repeated:
        return f"images of {shape}, each shown in {contract.steps} time steps"
    rule = contract.merging
    merged = f" (sums of {rule.frames} of {rule.recorded} recorded frames)" if rule else ""
    return f"{contract.steps} frames of {shape}{merged}"
