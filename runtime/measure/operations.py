"""Count synaptic operations of weights that exist: a weight of zero is none.

Engines count the weights that they read, which include zeros. So the operations are counted from each synapse's inputs,
which follow from the network's input and the traces of its spikes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numpy_engine import run_instruction
from axonnx.runtime.engines.state import zero_state
from axonnx.runtime.format.names import SPIKES
from axonnx.runtime.program.instructions import Conv, Linear, Program

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]


def synapses_of(program: Program) -> list[Linear | Conv]:
    """Return all instructions that hold weights."""
    return [i for i in program.instructions if isinstance(i, Linear | Conv)]


def fan_out(program: Program, synapse: Linear | Conv) -> Integers:
    """Return for each input of a synapse the number of weights that it meets and that are not zero."""
    exists = program.constants[synapse.weight] != 0
    if isinstance(synapse, Linear):
        met: Integers = exists.sum(0)
        return met
    shape, (_, rows, columns) = (program.buffers[name].shape for name in (synapse.reads[0], synapse.writes[0]))
    taps = exists.reshape(synapse.group, -1, *exists.shape[1:]).sum(1).reshape(shape[0], *exists.shape[2:])
    top, left, bottom, right = synapse.pads
    met = np.zeros((shape[0], top + shape[1] + bottom, left + shape[2] + right), np.int64)
    for tap in np.ndindex(taps.shape[1:]):
        down, across = (
            slice(at * apart, at * apart + (count - 1) * stride + 1, stride)
            for at, apart, count, stride in zip(tap, synapse.dilations, (rows, columns), synapse.strides, strict=True)
        )
        met[:, down, across] += taps[:, tap[0], tap[1], None, None]
    return met[:, top : top + shape[1], left : left + shape[2]]


class SynapseCounter:
    """Counts the inputs and the operations of every synapse, a step at a time."""

    def __init__(self, program: Program, batch: int) -> None:
        self.program, self.synapses = program, synapses_of(program)
        self.fan_out = {i.name: fan_out(program, i) for i in self.synapses}
        self._fired = {layer.spikes: SPIKES + layer.name for layer in program.layers}
        wanted = {name for i in self.synapses for name in self.sources(i)}
        self._between = [i for i in program.instructions if wanted.intersection(i.writes) - self._fired.keys()]
        self._kept = [name for name in program.states if name in wanted]
        self._states, self._step = zero_state(program, batch).arrays, 0

    def sources(self, synapse: Linear | Conv) -> set[str]:
        """Return all buffers that a synapse's input is made of, back to spikes and to the network's input."""
        writers = {name: i for i in self.program.instructions for name in i.writes}
        wanted, found = [synapse.reads[0]], set[str]()
        while wanted:
            name = wanted.pop()
            if name in found:
                continue
            found.add(name)
            if name in self.program.after:
                wanted.append(self.program.after[name])
            elif name not in self._fired and name in writers:
                wanted += writers[name].reads
        return found

    def follows_spikes(self, synapse: Linear | Conv) -> bool:
        """Return whether the network's own spikes reach a synapse; otherwise its input alone does."""
        return not self._fired.keys().isdisjoint(self.sources(synapse))

    def count(self, x: Floats, traces: Mapping[str, Floats]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the active inputs and the operations of each synapse in the next step, over all samples.

        Args:
            x: The network's input [1, B, …].
            traces: What an engine traced in this step.
        """
        values = {self.program.input: x[0], **self._states}
        values |= {buffer: traces[name][0] for buffer, name in self._fired.items()}
        for i in self._between:
            values |= zip(i.writes, run_instruction(self.program, i, values, self._step, x.shape[1]), strict=True)
        active = {i.name: np.count_nonzero(values[i.reads[0]], axis=0) for i in self.synapses}
        self._states = {name: values[self.program.after[name]] for name in self._kept}
        self._step += 1
        operations = {name: int((each * self.fan_out[name]).sum()) for name, each in active.items()}
        return {name: int(each.sum()) for name, each in active.items()}, operations
