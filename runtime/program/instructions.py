"""A network as a program: a flat list of typed instructions over named buffers, one time step (or one image) each pass.

Everything a file can be refused for has been checked once a ``Program`` exists. Shapes are without the batch.
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
    """A named tensor [B, *shape] and what it can hold."""

    name: str
    shape: Shape
    values: Values
    role: Literal["input", "state", "noise", "computed"] = "computed"

    @property
    def size(self) -> int:
        """Elements of one sample."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Instruction:
    """Reads buffers and constants, writes buffers; all by name."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def op(self) -> str:
        """What it does, in one word."""
        return type(self).__name__

    def details(self) -> str:
        """What a listing shows beside the names."""
        return ""


@dataclass(frozen=True)
class Linear(Instruction):
    """y = W·x + b, for W [out, in]."""

    weight: str
    bias: str | None

    def details(self) -> str:
        """The weights."""
        return f"weight={self.weight}" + (f", bias={self.bias}" if self.bias else "")


@dataclass(frozen=True)
class Conv(Instruction):
    """y = W ∗ x + b, for W [out, in / group, height, width]."""

    weight: str
    bias: str | None
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]  # top, left, bottom, right
    dilations: tuple[int, int]
    group: int

    def details(self) -> str:
        """Weights and geometry, as far as it is not the usual."""
        text = f"weight={self.weight}" + (f", bias={self.bias}" if self.bias else "")
        odd = {"strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1), "group": 1}
        return text + "".join(
            f", {key}={getattr(self, key)}" for key, usual in odd.items() if getattr(self, key) != usual
        )


@dataclass(frozen=True)
class Neurons(Instruction):
    """A spike operator of the opset on its operands: ``operands`` pairs its inputs with buffers."""

    spike_op: str
    layer: str
    operands: Mapping[str, str]
    parameters: Mapping[str, str]  # decay, threshold, base_variance: constants

    @property
    def op(self) -> str:
        """The spike operator's name."""
        return self.spike_op

    def details(self) -> str:
        """Its constants."""
        return ", ".join(f"{key}={name}" for key, name in self.parameters.items())


@dataclass(frozen=True)
class Arithmetic(Instruction):
    """a + b, a − b or a · b, element by element; operands may be constants.

    ``exact``: the operands are sums of synapses that stay exact when added up together, in any order.
    """

    kind: Literal["Add", "Sub", "Mul"]
    exact: bool = False

    @property
    def op(self) -> str:
        """The operator's name in ONNX."""
        return self.kind

    def details(self) -> str:
        """Whether one accumulator can serve both operands."""
        return "one exact sum" if self.exact else ""


@dataclass(frozen=True)
class RecurrentActivity(Instruction):
    """a_i = Σ_k x_k² − x_i², of spikes or counts."""


@dataclass(frozen=True)
class PoolPairs(Instruction):
    """((a + b) + (c + d)) · ¼ over squares of 2 × 2."""


@dataclass(frozen=True)
class AveragePool(Instruction):
    """The mean over windows of a power of two of numbers on a grid, so exact in any order."""

    window: tuple[int, int]

    def details(self) -> str:
        """The window."""
        return f"window={self.window[0]}×{self.window[1]}"


@dataclass(frozen=True)
class MaxPool(Instruction):
    """The largest of each window of numbers on a grid; windows stand side by side."""

    window: tuple[int, int]

    def details(self) -> str:
        """The window."""
        return f"window={self.window[0]}×{self.window[1]}"


@dataclass(frozen=True)
class Move(Instruction):
    """Data put elsewhere: Reshape, Concat, Pad, Slice, Transpose or Expand, with ``how`` as numpy wants it."""

    kind: Literal["Reshape", "Concat", "Pad", "Slice", "Transpose", "Expand"]
    how: Any

    @property
    def op(self) -> str:
        """The operator's name in ONNX."""
        return self.kind

    def details(self) -> str:
        """Axes and sizes."""
        return "" if self.kind in ("Reshape", "Expand") else str(self.how)

    def apply(self, parts: Sequence[NDArray[Any]], empty: Any = 0) -> NDArray[Any]:
        """Arrays [B, …] of any kind put elsewhere; ``empty`` is what padding holds."""
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
    """The row of a constant table that belongs to this time step."""

    table: str

    def details(self) -> str:
        """The table."""
        return f"table={self.table}"


@dataclass(frozen=True)
class Layer:
    """A layer of neurons: where its spikes and membranes are once a step is done."""

    name: str
    op: str
    shape: Shape
    spikes: str
    membrane: str | None

    @property
    def size(self) -> int:
        """Neurons."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Program:
    """One step of a network: instructions in order, all buffers and constants, and what is carried to the next step."""

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
    steps_known: int | None = None  # rows of the tables that follow the clock; None without a clock
    synapses: tuple[str, ...] = field(default=())

    def describe(self) -> str:
        """A listing for people: inputs, then one line for each instruction."""
        lines = [f"{self.name}: {len(self.instructions)} instructions, {len(self.layers)} layers of neurons"]
        entering = (self.input, *self.states, *self.noises)
        lines += [f"  {self.buffers[name].role:<6} {_value(self.buffers[name])}" for name in entering]
        lines += [_line(instruction, self) for instruction in self.instructions]
        lines += [f"  keep   {state} ← {source}" for state, source in self.after.items()]
        return "\n".join([*lines, *(f"  logits {name}" for name in self.logits)])

    def __str__(self) -> str:
        return self.describe()


def trace_sources(program: Program) -> dict[str, str]:
    """The traces that a program has, and the buffers they show."""
    sources = {SPIKES + layer.name: layer.spikes for layer in program.layers}
    return sources | {MEMBRANE + layer.name: layer.membrane for layer in program.layers if layer.membrane}


def _value(buffer: Buffer) -> str:
    return f"{buffer.name} [{'×'.join(str(size) for size in buffer.shape)}] {buffer.values}"


def _line(instruction: Instruction, program: Program) -> str:
    written = ", ".join(_value(program.buffers[name]) for name in instruction.writes)
    details = instruction.details()
    return f"  {instruction.op:<20} {', '.join(instruction.reads)}{' | ' + details if details else ''} → {written}"
