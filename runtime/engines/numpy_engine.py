"""The reference engine: event-driven numpy without a compiler, short enough to be read as the definition."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines import numpy_ops as ops
from axonnx.runtime.engines.interface import Activity, Chunk, check_input
from axonnx.runtime.engines.state import State, check_clock, check_state, zero_state
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


class NumpyEngine:
    """Runs a program step by step, instruction by instruction."""

    name = "numpy"

    def __init__(self, program: Program) -> None:
        self.program = program
        linear = [i for i in program.instructions if isinstance(i, Linear)]
        self._rows = {i.weight: np.ascontiguousarray(program.constants[i.weight].T) for i in linear}

    def initial_state(self, batch: int) -> State:
        """Return the state before the first step, all zeros."""
        return zero_state(self.program, batch)

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
            return ops.linear(x, self._rows[i.weight], bias)
        return ops.conv(x, constants[i.weight], bias, i, self.program.buffers[i.writes[0]].shape)


def run_instruction(
    program: Program, i: Instruction, values: Mapping[str, Floats], step: int, batch: int
) -> tuple[Floats, ...]:
    """Run one instruction without weights on the buffers that it reads, and return what it writes."""
    constants = program.constants
    given = [values[name] if name in values else constants[name] for name in i.reads]
    if isinstance(i, Neurons):
        return ops.KERNELS[i.spike_op](*given, {key: constants[name] for key, name in i.parameters.items()})
    if isinstance(i, RecurrentActivity | PoolPairs):
        return ops.KERNELS[type(i).__name__](*given, {})
    if isinstance(i, StepRow):
        table = constants[i.table]
        return (np.broadcast_to(table[step], (batch, *table.shape[1:])),)
    if isinstance(i, Arithmetic):
        return (ops.OPERATIONS[i.kind](*given),)
    if isinstance(i, AveragePool | MaxPool):
        return (ops.pool(given[0], i.window, isinstance(i, MaxPool)),)
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
