"""Every instruction in a few lines of numpy, on arrays [B, …]: the executable specification of the engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen.expressions import Assignment, assignments
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.spike_op import SpikeOp
from axonnx.runtime.program.instructions import Conv

Floats = NDArray[np.float32]
Params = Mapping[str, Floats]


def linear(x: Floats, rows: Floats, bias: Floats | None) -> tuple[Floats, NDArray[np.int64]]:
    """Return W·x + b from the rows of active inputs only, with ``rows`` = Wᵀ [in, out], and the operations."""
    out = np.zeros((len(x), rows.shape[1]), np.float32)
    operations = np.zeros(len(x), np.int64)
    for sample, values in enumerate(x):
        active = np.flatnonzero(values)
        out[sample] = values[active] @ rows[active]  # exact on the grid, so the order does not matter
        operations[sample] = len(active) * rows.shape[1]
    return (out if bias is None else out + bias), operations


def conv(
    x: Floats, weight: Floats, bias: Floats | None, how: Conv, shape: tuple[int, ...]
) -> tuple[Floats, NDArray[np.int64]]:
    """Return W ∗ x + b, computed by adding the weights of active inputs to their outputs, and the operations."""
    out = np.zeros(
        (len(x), shape[1], shape[2], shape[0]), np.float32
    )  # channels last, so that an event adds whole rows
    operations = np.zeros(len(x), np.int64)
    per_group = weight.shape[1]
    outputs = shape[0] // how.group
    samples, channels, rows, columns = np.nonzero(x)
    values = x[samples, channels, rows, columns]
    for ky, kx in np.ndindex(weight.shape[2:]):
        y, offset_y = np.divmod(rows + how.pads[0] - ky * how.dilations[0], how.strides[0])
        z, offset_z = np.divmod(columns + how.pads[1] - kx * how.dilations[1], how.strides[1])
        hit = (offset_y == 0) & (offset_z == 0) & (y >= 0) & (y < shape[1]) & (z >= 0) & (z < shape[2])
        for group in range(how.group):
            at = hit & (channels // per_group == group)
            part = slice(group * outputs, (group + 1) * outputs)
            added = values[at, None] * weight[part, :, ky, kx][:, channels[at] % per_group].T
            np.add.at(out[..., part], (samples[at], y[at], z[at]), added)
        operations += np.bincount(samples[hit], minlength=len(x)) * outputs
    out = out if bias is None else out + bias
    return np.ascontiguousarray(out.transpose(0, 3, 1, 2)), operations


OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "GreaterOrEqual": np.greater_equal,
    "Abs": np.abs,
    "Neg": np.negative,
    "Cast": lambda fires: fires.astype(np.float32),
}


def run_body(op: SpikeOp, body: Sequence[Assignment], *operands: Floats, parameters: Params) -> tuple[Floats, ...]:
    """Run a neuron operator, operation by operation as in its definition, and return its outputs."""
    values: dict[str, Any] = {**dict(zip(op.operands, operands, strict=True)), **parameters}
    for step in body:
        if step.operation == "Constant":
            values[step.output] = np.float32(step.value)
        else:
            values[step.output] = OPERATIONS[step.operation](*(values[name] for name in step.inputs))
    return tuple(values[name] for name in op.outputs)


def neuron_kernel(op: SpikeOp) -> Callable[..., tuple[Floats, ...]]:
    """Return a function that runs an operator on its operands, in the order of its inputs, and its parameters."""
    body = assignments(op)
    return lambda *given: run_body(op, body, *given[:-1], parameters=given[-1])


def recurrent_activity(x: Floats, p: Params) -> tuple[Floats]:
    """Return a_i = Σ_k x_k² − x_i²."""
    squares = x * x
    return (squares.sum(-1, keepdims=True, dtype=np.float32) - squares,)


def pool_pairs(x: Floats, p: Params) -> tuple[Floats]:
    """Return ((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order."""
    top, bottom = x[..., 0::2, :], x[..., 1::2, :]
    pooled = ((top[..., 0::2] + top[..., 1::2]) + (bottom[..., 0::2] + bottom[..., 1::2])) * np.float32(0.25)
    return (pooled,)


KERNELS: dict[str, Callable[..., tuple[Floats, ...]]] = {  # for each spike operator, on operands and parameters
    **{op.name: neuron_kernel(op) for op in OPS.values() if op.neurons},
    "RecurrentActivity": recurrent_activity,
    "PoolPairs": pool_pairs,
}


def pool(x: Floats, window: tuple[int, int], largest: bool) -> Floats:
    """Return the largest value or the mean of each window; windows of means are powers of two, so they are exact."""
    batch, channels, height, width = x.shape
    tiles = x.reshape(batch, channels, height // window[0], window[0], width // window[1], window[1])
    pooled: Floats = tiles.max((3, 5)) if largest else tiles.sum((3, 5), dtype=np.float32)
    return pooled if largest else pooled * np.float32(1 / (window[0] * window[1]))
