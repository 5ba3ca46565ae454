"""Convert integers to a network's input: x = (value − centre) · 2^−shift, as its contract states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.binning.settings import Binning
from axonnx.runtime.events.arrays import Sensor
from axonnx.runtime.format.contract import MOST_SCALED, Contract, InputContract, MergingContract

Floats = NDArray[np.float32]


def to_input(values: NDArray[Any], contract: InputContract) -> Floats:
    """Convert integers [T, B, …] to the network's input [T, B, *shape], exactly."""
    if contract.scaled_to is not None:
        values = scale_counts(values, contract.scaled_to)
    x = values.reshape(values.shape[:2] + contract.shape).astype(np.float32)
    if contract.centre:
        x -= np.float32(contract.centre)
    if contract.shift:
        x *= np.float32(contract.unit)
    return x


def scale_counts(counts: NDArray[Any], total: int) -> NDArray[np.int64]:
    """Scale the counts of each frame of [T, B, …] to a sum of about ``total``.

    So the speed of a movement, the contrast of a scene and the length of a time step matter less. A count c of a frame
    with the sum n becomes min(255, (2·c·total + n) // (2·n)) in integers: c·total/n rounded, halves up. An empty frame
    stays empty.
    """
    whole = counts.astype(np.int64)
    n = np.maximum(whole.sum(tuple(range(2, whole.ndim)), keepdims=True), 1)
    scaled: NDArray[np.int64] = np.minimum((2 * total * whole + n) // (2 * n), MOST_SCALED)
    return scaled


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


def device_sensor(contract: InputContract) -> Sensor | None:
    """Return the sensor whose events a device must send: that of training, before events are cropped and resized."""
    if contract.binning is None:
        return None
    return contract.binning.sensor if contract.fit is None else contract.fit.sensor


def describe_device(contract: InputContract) -> str:
    """Say what a device must send, and what the network does with it."""
    binning, sensor = contract.binning, device_sensor(contract)
    if binning is None or sensor is None:
        around = f" around {contract.centre}" if contract.centre else ""
        return f"Send {describe_input(contract)}, whole numbers up to ±{contract.largest}{around}."
    polarities = "one polarity" if sensor.polarities == 1 else "polarities 0 and 1"
    origin = "time zero" if binning.origin == "zero" else "the first event that is used"
    return (
        f"Send events (t, x, y, p) of a {sensor.width}×{sensor.height} sensor with {polarities}, t in microseconds; "
        f"bin 0 begins at {origin}. The network {', '.join(_event_steps(contract, binning))}."
    )


def _event_steps(contract: InputContract, binning: Binning) -> list[str]:
    """List what the network does with events, in order."""
    fit, target = contract.fit, binning.sensor
    steps = []
    if fit is not None and (fit.width, fit.height) != (fit.sensor.width, fit.sensor.height):
        steps.append(f"crops them to {fit.width}×{fit.height} pixels from {fit.left},{fit.top} on")
    if fit is not None and (fit.width, fit.height) != (target.width, target.height):
        steps.append(f"resizes them to {target.width}×{target.height}")
    if binning.downsample > 1:
        steps.append(f"sums squares of {binning.downsample}×{binning.row_step} pixels")
    if binning.polarity == "merge" and target.polarities == 2:
        steps.append("merges the polarities")
    values = f"counts them up to {binning.clip}" if binning.values == "count" else "stores 1 for any event"
    bins = f"{binning.bins} bins of {binning.bin_us:,} µs"
    if binning.most_events is not None:
        bins = f"{binning.bins} bins, which end after {binning.bin_us:,} µs or {binning.most_events:,} events"
    steps.append(f"{values} in each of {bins}")
    return [*steps, *([f"scales the counts of a bin to a sum of {contract.scaled_to:,}"] if contract.scaled_to else [])]
