"""A network as a program: typed instructions over named buffers, for one time step or one image.

A ``Program`` exists only after all checks of the file. Shapes are without the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.names import MEMBRANE, SPIKES
from axonnx.runtime.format.values import Values

Shape = tuple[int, ...]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Buffer:
    """A named tensor [B, *shape] and the values that it can hold."""

    name: str
    shape: Shape
    values: Values
    role: Literal["input", "state", "noise", "computed"] = "computed"

    @property
    def size(self) -> int:
        """Number of elements of one sample."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Instruction:
    """An operation that reads buffers and constants and writes buffers, all by name."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def op(self) -> str:
        """Name of the operation."""
        return type(self).__name__

    def details(self) -> str:
        """Return what a listing shows after the names."""
        return ""


@dataclass(frozen=True)
class Linear(Instruction):
    """A linear layer y = W·x + b, with W [out, in]."""

    weight: str
    bias: str | None

    def details(self) -> str:
        """Return the names of the weights."""
        return f"weight={self.weight}" + (f", bias={self.bias}" if self.bias else "")


@dataclass(frozen=True)
class Conv(Instruction):
    """A convolution y = W ∗ x + b, with W [out, in / group, height, width]."""

    weight: str
    bias: str | None
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right
    dilations: tuple[int, int]
    group: int

    def details(self) -> str:
        """Return the names of the weights, and the geometry where it is not the default."""
        text = f"weight={self.weight}" + (f", bias={self.bias}" if self.bias else "")
        odd = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 1}
        return text + "".join(
            f", {key}={getattr(self, key)}" for key, usual in odd.items() if getattr(self, key) != usual
        )


@dataclass(frozen=True)
class Neurons(Instruction):
    """A spike operator; ``operands`` pairs its inputs with buffers."""

    spike_op: str
    layer: str
    operands: Mapping[str, str]
    parameters: Mapping[str, str]  # decay, threshold, base_variance: constants

    @property
    def op(self) -> str:
        """Name of the spike operator."""
        return self.spike_op

    def details(self) -> str:
        """Return the names of its constants."""
        return ", ".join(f"{key}={name}" for key, name in self.parameters.items())


@dataclass(frozen=True)
class Arithmetic(Instruction):
    """Elementwise a + b, a − b or a · b; operands may be constants.

    ``exact`` states that the operands are sums of synapses that stay exact when they are added, in any order.
    """

    kind: Literal["Add", "Sub", "Mul"]
    exact: bool = False

    @property
    def op(self) -> str:
        """Name of the operator in ONNX."""
        return self.kind

    def details(self) -> str:
        """Return whether one accumulator can hold both operands."""
        return "one exact sum" if self.exact else ""


@dataclass(frozen=True)
class RecurrentActivity(Instruction):
    """The sum a_i = Σ_k x_k² − x_i² of spikes or counts."""


@dataclass(frozen=True)
class PoolPairs(Instruction):
    """Average pooling ((a + b) + (c + d)) · ¼ over squares of 2 × 2."""


@dataclass(frozen=True)
class Windows(Instruction):
    """A number for each window; windows do not overlap."""

    window: tuple[int, int]

    def details(self) -> str:
        """Return the window."""
        return f"window={self.window[0]}×{self.window[1]}"


class AveragePool(Windows):
    """The mean over windows of a power of two, of numbers on a grid: exact in any order."""


class MaxPool(Windows):
    """The largest value of each window, of numbers on a grid."""


@dataclass(frozen=True)
class Move(Instruction):
    """Moves data: Reshape, Concat, Pad, Slice, Transpose or Expand; ``how`` holds numpy's arguments."""

    kind: Literal["Reshape", "Concat", "Pad", "Slice", "Transpose", "Expand"]
    how: Any

    @property
    def op(self) -> str:
        """Name of the operator in ONNX."""
        return self.kind

    def details(self) -> str:
        """Return axes and sizes."""
        return "" if self.kind in ("Reshape", "Expand") else str(self.how)

    def apply(self, parts: Sequence[NDArray[Any]], empty: Any = 0) -> NDArray[Any]:
        """Move the data of arrays [B, …] of any type; ``empty`` is the value of padding."""
        x = parts[0]
        if self.kind == "Reshape":
            return x.reshape(len(x), *self.how)
        if self.kind == "Concat":
            return np.concatenate(parts, self.how + 1)
        if self.kind == "Pad":
            return np.pad(x, ((0, 0), *self.how), constant_values=empty)
        if self.kind == "Slice":
            return x[(slice(None), *self.how)]
        if self.kind == "Transpose":
            return x.transpose(0, *(axis + 1 for axis in self.how))
        assert self.kind == "Expand", self.kind
        return np.broadcast_to(x, (len(x), *self.how))


@dataclass(frozen=True)
class StepRow(Instruction):
    """The row of a constant table for the current time step."""

    table: str

    def details(self) -> str:
        """Return the name of the table."""
        return f"table={self.table}"


@dataclass(frozen=True)
class Layer:
    """A layer of neurons, and the buffers that hold its spikes and membranes after a step."""

    name: str
    op: str
    shape: Shape
    spikes: str
    membrane: str | None

    @property
    def size(self) -> int:
        """Number of neurons."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Program:
    """One step of a network: instructions in order, all buffers and constants, and the states for the next step.

    Attributes:
        name: Name of the file.
        contract: The file's contract.
        input: Buffer of the input.
        states: Buffers that are carried from step to step.
        noises: Buffers of the layers' noise.
        instructions: Instructions in order.
        buffers: All buffers by name.
        constants: All constants by name.
        after: For each state, the buffer that holds it after the step.
        logits: For binary networks, one buffer for each member.
        totals: For spiking networks, one state for each member.
        layers: Layers of neurons.
        steps_known: Number of steps from a reset that tables have rows for, or over which the sum of a read-out in
            integers is exact. None if there is no limit.
        synapses: Instructions that hold weights.
    """

    name: str
    contract: Contract
    input: str
    states: tuple[str, ...]
    noises: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    buffers: Mapping[str, Buffer]
    constants: Mapping[str, Floats]
    after: Mapping[str, str]  # state -> the buffer that holds it after the step
    logits: tuple[str, ...]  # binary networks: one buffer for each member
    totals: tuple[str, ...]  # spiking networks: one state for each member
    layers: tuple[Layer, ...]
    steps_known: int | None = None
    synapses: tuple[str, ...] = field(default=())

    @property
    def clocked(self) -> bool:
        """Whether tables are selected by the time step."""
        return any(isinstance(i, StepRow) for i in self.instructions)

    @property
    def thresholds(self) -> dict[str, Floats]:
        """θ of each layer that has one."""
        neurons = [i for i in self.instructions if isinstance(i, Neurons) and "threshold" in i.parameters]
        return {i.layer: self.constants[i.parameters["threshold"]] for i in neurons}

    def describe(self) -> str:
        """Return a listing for people: inputs, then one line for each instruction."""
        lines = [f"{self.name}: {len(self.instructions)} instructions, {len(self.layers)} layers of neurons"]
        entering = (self.input, *self.states, *self.noises)
        lines += [f"  {self.buffers[name].role:<6} {_value(self.buffers[name])}" for name in entering]
        lines += [_line(instruction, self) for instruction in self.instructions]
        lines += [f"  keep   {state} ← {source}" for state, source in self.after.items()]
        return "\n".join([*lines, *(f"  logits {name}" for name in self.logits)])

    def __str__(self) -> str:
        return self.describe()


def trace_sources(program: Program) -> dict[str, str]:
    """Return the traces of a program, and the buffers that they show."""
    sources = {SPIKES + layer.name: layer.spikes for layer in program.layers}
    return sources | {MEMBRANE + layer.name: layer.membrane for layer in program.layers if layer.membrane}


def _value(buffer: Buffer) -> str:
    return f"{buffer.name} [{'×'.join(str(size) for size in buffer.shape)}] {buffer.values}"


def _line(instruction: Instruction, program: Program) -> str:
    written = ", ".join(_value(program.buffers[name]) for name in instruction.writes)
    details = instruction.details()
    return f"  {instruction.op:<20} {', '.join(instruction.reads)}{' | ' + details if details else ''} → {written}"
