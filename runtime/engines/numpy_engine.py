"""The reference engine: event-driven numpy without a compiler, short enough to be read as the definition.

First every instruction in a few lines, on arrays [B, …]: the executable specification of all engines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen.expressions import Assignment, assignments
from axonnx.runtime.engines.float_mode import in_default_mode
from axonnx.runtime.engines.interface import Activity, Chunk, Engine, check_input
from axonnx.runtime.engines.state import State, check_clock, check_state
from axonnx.runtime.format.opset import OPS, SpikeOp
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
    Instruction,
    Linear,
    MaxPool,
    Move,
    Neurons,
    PoolPairs,
    Program,
    RecurrentActivity,
    StepRow,
    trace_sources,
)

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]
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
    "Mod": np.remainder,
    "Div": np.floor_divide,  # of numbers that are not negative, or of multiples: rounded down or up, it is the same
    "Min": np.minimum,
    "Max": np.maximum,
}
TYPES = {"float": np.float32, "whole": np.int32}


def run_body(op: SpikeOp, body: Sequence[Assignment], *operands: Floats, parameters: Params) -> tuple[Floats, ...]:
    """Run a neuron operator, operation by operation as in its definition, and return its outputs."""
    values: dict[str, Any] = {**dict(zip(op.operands, operands, strict=True)), **parameters}
    for step in body:
        if step.operation == "Constant":
            values[step.output] = np.float32(step.value)
        elif step.operation == "Cast":
            values[step.output] = values[step.inputs[0]].astype(TYPES[step.kind])
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


class NumpyEngine(Engine):
    """Runs a program step by step, instruction by instruction."""

    name = "numpy"

    def __init__(self, program: Program) -> None:
        self.program = program
        linear = [i for i in program.instructions if isinstance(i, Linear)]
        self._rows = {i.weight: np.ascontiguousarray(program.constants[i.weight].T) for i in linear}

    @in_default_mode
    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """Run one step after the other."""
        check_input(self.program, x)
        check_clock(self.program, check_state(self.program, state).step, len(x))
        arrays, batch = dict(state.arrays), x.shape[1]
        tally = _Tally(self.program, batch)
        seen: dict[str, list[Floats]] = {name: [] for name in trace_sources(self.program)} if trace else {}
        values: dict[str, Floats] = {}
        for step in range(len(x)):
            entering = {self.program.input: x[step], **{name: drawn[step] for name, drawn in noise.items()}}
            values = self._step({**entering, **arrays}, state.step + step, tally)
            arrays = {name: values[source] for name, source in self.program.after.items()}
            for name, rows in seen.items():
                rows.append(values[trace_sources(self.program)[name]])
        results = self.program.logits or self.program.totals
        logits = np.stack([values[name] if self.program.logits else arrays[name] for name in results])
        traces = {name: np.stack(rows) for name, rows in seen.items()}
        return Chunk(State(state.step + len(x), arrays, self.program), logits, tally.activity(), traces)

    def _step(self, values: dict[str, Floats], step: int, tally: _Tally) -> dict[str, Floats]:
        batch = len(values[self.program.input])
        for instruction in self.program.instructions:
            for name, out in zip(
                instruction.writes, self._execute(instruction, values, step, batch, tally), strict=True
            ):
                values[name] = out
        tally.count_spikes(values)
        return values

    def _execute(
        self, i: Instruction, values: Mapping[str, Floats], step: int, batch: int, tally: _Tally
    ) -> tuple[Floats, ...]:
        if isinstance(i, Linear | Conv):
            out, operations = self._synapse(i, values[i.reads[0]])
            tally.operations[i.name] += operations
            return (out,)
        return run_instruction(self.program, i, values, step, batch)

    def _synapse(self, i: Linear | Conv, x: Floats) -> tuple[Floats, Counts]:
        constants = self.program.constants
        bias = None if i.bias is None else constants[i.bias]
        if isinstance(i, Linear):
            return linear(x, self._rows[i.weight], bias)
        return conv(x, constants[i.weight], bias, i, self.program.buffers[i.writes[0]].shape)


def run_instruction(
    program: Program, i: Instruction, values: Mapping[str, Floats], step: int, batch: int
) -> tuple[Floats, ...]:
    """Run one instruction without weights on the buffers that it reads, and return what it writes."""
    constants = program.constants
    given = [values[name] if name in values else constants[name] for name in i.reads]
    if isinstance(i, Neurons):
        return KERNELS[i.spike_op](*given, {key: constants[name] for key, name in i.parameters.items()})
    if isinstance(i, RecurrentActivity | PoolPairs):
        return KERNELS[type(i).__name__](*given, {})
    if isinstance(i, StepRow):
        table = constants[i.table]
        return (np.broadcast_to(table[step], (batch, *table.shape[1:])),)
    if isinstance(i, Arithmetic):
        return (OPERATIONS[i.kind](*given),)
    if isinstance(i, AveragePool | MaxPool):
        return (pool(given[0], i.window, isinstance(i, MaxPool)),)
    assert isinstance(i, Move), i
    return (i.apply(given),)


class _Tally:
    """The counts of one chunk."""

    def __init__(self, program: Program, batch: int) -> None:
        self.program = program
        self.spikes = {layer.name: np.zeros(batch, np.int64) for layer in program.layers}
        self.operations = {name: np.zeros(batch, np.int64) for name in program.synapses}

    def count_spikes(self, values: Mapping[str, Floats]) -> None:
        for layer in self.program.layers:
            fired = values[layer.spikes]
            self.spikes[layer.name] += np.count_nonzero(fired.reshape(len(fired), -1), axis=1)

    def activity(self) -> Activity:
        return Activity(self.spikes, self.operations)
