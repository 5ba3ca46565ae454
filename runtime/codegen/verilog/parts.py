"""A network in integers as the parts of a chip: layers and synapses in rows of lanes, memories as numbers.

A row of the membrane memory holds the same pixel of as many channels as there are lanes. Dense layers have one pixel.
An event of a source adds rows of weights to rows of membranes: one after the other for dense weights, and for a
convolution those that its window reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.codegen.verilog.pipeline import Value, literal
from axonnx.runtime.program.instructions import Arithmetic, Conv, Instruction, Linear, Move, Neurons, Program

Whole = NDArray[np.int64]
INPUT = -1  # the source of events from outside
FIRING, READOUT = "IntegerLIF", "IntegerSum"


@dataclass(frozen=True, eq=False)
class Part:
    """A layer of neurons, or the read-out: ``shape`` is (channels, height, width)."""

    name: str
    op: str
    shape: tuple[int, int, int]
    lanes: int
    first_row: int
    width: int  # bits of a membrane
    bias: Whole  # [channels, height, width]
    parameters: Mapping[str, Whole]

    @property
    def groups(self) -> int:
        """Rows of a pixel."""
        return -(-self.shape[0] // self.lanes)

    @property
    def rows(self) -> int:
        """All rows."""
        return self.groups * self.shape[1] * self.shape[2]

    def in_rows(self, values: Whole, padding: int = 0) -> Whole:
        """Return values of neurons as [rows, lanes]."""
        channels, height, width = self.shape
        padded = np.full((self.groups * self.lanes, height, width), padding, np.int64)
        padded[:channels] = np.broadcast_to(values, self.shape)
        return padded.transpose(1, 2, 0).reshape(self.rows, self.lanes)


@dataclass(frozen=True, eq=False)
class Synapse:
    """Weights from a source to a layer; ``window`` is the geometry of a convolution."""

    name: str
    source: int
    target: int
    first_row: int
    weights: Whole  # [rows, lanes], without the common factor
    lift: int  # the factor, as a power of two
    bits: int
    window: Conv | None = None
    taps: tuple[int, int] = (1, 1)


@dataclass(eq=False)
class Parts:
    """All layers and synapses of a network, and what an event from outside is."""

    program: Program
    lanes: int
    layers: list[Part] = field(default_factory=list)
    synapses: list[Synapse] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The file's name."""
        return self.program.name

    @property
    def rows(self) -> int:
        """Rows of membranes."""
        return sum(layer.rows for layer in self.layers)

    @property
    def weight_rows(self) -> int:
        """Rows of weights."""
        return sum(len(synapse.weights) for synapse in self.synapses)

    @property
    def weight_bits(self) -> int:
        """Bits of a stored weight."""
        return max(synapse.bits for synapse in self.synapses)

    @property
    def width(self) -> int:
        """Bits of a membrane in memory."""
        return max(layer.width for layer in self.layers)

    def constant(self, name: str) -> Value | None:
        """Return a parameter of all neurons as one constant; None if neurons or layers differ."""
        found = {
            int(value) for layer in self.layers if name in layer.parameters for value in layer.parameters[name].flat
        }
        return literal(found.pop()) if len(found) == 1 else None

    def each_has_one(self, name: str) -> bool:
        """Return whether a parameter is the same for all neurons of a layer."""
        return all(np.unique(layer.parameters.get(name, np.zeros(1))).size == 1 for layer in self.layers)


def parts_of(program: Program, lanes: int) -> Parts:
    """Return the parts of a network, or refuse it with the name of what has no form in Verilog."""
    return _Walk(program, lanes).parts()


class _Walk:
    def __init__(self, program: Program, lanes: int) -> None:
        self.program, self.found = program, Parts(program, lanes)
        self.sums: dict[str, list[Linear | Conv]] = {}
        self.spikes: dict[str, int] = {program.input: INPUT}  # buffer -> the source of its spikes
        self.waiting: list[tuple[int, Linear | Conv]] = []  # with the number of the layer that they reach

    def parts(self) -> Parts:
        self._refuse_network()
        for instruction in self.program.instructions:
            self._instruction(instruction)
        for number, layer in enumerate(self.found.layers):
            for state, after in self.program.after.items():
                if self.spikes.get(after) == number and layer.op == FIRING:
                    self.spikes[state] = number
        for i in self.program.instructions:  # reshaped states
            if isinstance(i, Move) and i.reads[0] in self.spikes:
                self.spikes[i.writes[0]] = self.spikes[i.reads[0]]
        row = 0
        for target, instruction in self.waiting:
            synapse = self._synapse(target, instruction, row)
            row += len(synapse.weights)
            self.found.synapses.append(synapse)
        self.found.synapses.sort(key=lambda synapse: synapse.source)
        return self.found

    def _refused(self, where: str, why: str) -> AxonnxError:
        return AxonnxError(f"{self.program.name}: {where} has no form in Verilog: {why}")

    def _refuse_network(self) -> None:
        contract = self.program.contract
        binning = contract.input.binning
        if contract.dynamics != "integer":
            raise self._refused("float dynamics", "export the network with integer dynamics")
        if contract.kind != "spiking" or contract.collapse.members != 1 or self.program.noises:
            raise self._refused("this network", "expected one spiking network without noise")
        if binning is None:
            raise self._refused("its input", "it takes frames; expected events in time bins")
        if binning.most_events is not None:
            raise self._refused(
                "its input", "its time steps end after a number of events; expected steps of equal time"
            )
        if contract.input.fit is not None:
            raise self._refused("its input", "recordings are cropped or resized; use a sensor of the network's size")
        if binning.downsample & (binning.downsample - 1) or contract.input.centre or contract.input.shift:
            raise self._refused(
                "its input", "expected counts as they are, and squares of pixels whose side is a power of two"
            )

    def _instruction(self, i: Instruction) -> None:
        rules: dict[type, Callable[..., None]] = {
            Linear: self._weights, Conv: self._weights, Neurons: self._neurons, Move: self._move,
            Arithmetic: self._arithmetic,
        }  # fmt: skip
        if type(i) not in rules:
            raise self._refused(
                f"layer {i.name!r}", f"{i.op} ({i.details()}) is not among dense layers and convolutions"
            )
        rules[type(i)](i)

    def _weights(self, i: Linear | Conv) -> None:
        if isinstance(i, Conv) and (
            i.group != 1 or i.strides[0] & (i.strides[0] - 1) or i.strides[1] & (i.strides[1] - 1)
        ):
            raise self._refused(
                f"layer {i.name!r}", "a convolution in groups, or with a stride that is no power of two"
            )
        self.sums[i.writes[0]] = [i]

    def _move(self, i: Move) -> None:
        if i.kind != "Reshape" or len(i.reads) != 1:
            raise self._refused(f"layer {i.name!r}", f"{i.kind} of spikes (a delay, a pool or a permutation)")
        if i.reads[0] in self.sums:
            self.sums[i.writes[0]] = self.sums[i.reads[0]]
        elif i.reads[0] in self.spikes:
            self.spikes[i.writes[0]] = self.spikes[i.reads[0]]

    def _arithmetic(self, i: Arithmetic) -> None:
        if i.kind != "Add" or not all(name in self.sums for name in i.reads):
            raise self._refused(f"layer {i.name!r}", f"{i.kind} of values that are not sums of synapses")
        self.sums[i.writes[0]] = [each for name in i.reads for each in self.sums[name]]

    def _neurons(self, i: Neurons) -> None:
        if i.spike_op not in (FIRING, READOUT):
            raise self._refused(f"layer {i.layer!r}", f"{i.spike_op}; known are {FIRING} and {READOUT}")
        number, shape = len(self.found.layers), _maps(self.program.buffers[i.writes[0]].shape)
        heard = self.sums.get(i.operands["current"])
        if not heard:
            raise self._refused(f"layer {i.layer!r}", "its current is not a sum of synapses")
        values = {key: self.program.constants[name].astype(np.int64) for key, name in i.parameters.items()}
        if np.any(values.get("late_zeroed", 0)):
            raise self._refused(f"layer {i.layer!r}", "a spike that also removes the input of the next step")
        scale = {int(value) for layer in self.found.layers for value in layer.parameters["scale"].flat}
        if len(scale | {int(value) for value in values["scale"].flat}) != 1:
            raise self._refused(f"layer {i.layer!r}", "leaks with different scales; expected one scale for all layers")
        parameters = {key: _for_neurons(value, shape) for key, value in values.items() if key != "unit"}
        if i.spike_op == READOUT:
            parameters |= {name: np.zeros(shape, np.int64) for name in ("zeroed", "taken", "late_zeroed", "late_taken")}
        self.found.layers.append(
            Part(
                name=i.layer,
                op=i.spike_op,
                shape=shape,
                lanes=self.found.lanes,
                first_row=self.found.rows,
                width=_width(self.program, i.layer),
                bias=self._bias(heard, shape),
                parameters=parameters,
            )
        )
        if i.spike_op == FIRING:
            self.spikes[i.writes[-1]] = number
        self.waiting += [(number, each) for each in heard]

    def _bias(self, heard: list[Linear | Conv], shape: tuple[int, int, int]) -> Whole:
        total = np.zeros(shape, np.int64)
        for each in heard:
            if each.bias is not None:
                total += _for_neurons(self.program.constants[each.bias].astype(np.int64), shape)
        return total

    def _synapse(self, target: int, i: Linear | Conv, row: int) -> Synapse:
        source = self.spikes.get(i.reads[0])
        if source is None or (i.reads[0] in self.program.states and source < target):
            raise self._refused(f"layer {i.name!r}", "it hears values that are not spikes of this step or of its own")
        weight = np.rint(self.program.constants[i.weight]).astype(np.int64)
        assert (weight == self.program.constants[i.weight]).all(), i.weight
        lift = _common_power(weight)
        stored = weight >> lift
        layer = self.found.layers[target]
        if isinstance(i, Conv):
            rows, taps = self._window_rows(stored, layer), (weight.shape[2], weight.shape[3])
        else:
            rows, taps = self._dense_rows(stored, source, layer), (1, 1)
        bits = max(int(stored.max(initial=0)).bit_length(), int(-stored.min(initial=0) - 1).bit_length()) + 1
        return Synapse(i.name, source, target, row, rows, lift, bits, i if isinstance(i, Conv) else None, taps)

    def _window_rows(self, weight: Whole, layer: Part) -> Whole:
        """Return rows for each input channel and place of the window."""
        out, *_ = weight.shape
        padded = np.zeros((layer.groups * layer.lanes, *weight.shape[1:]), np.int64)
        padded[:out] = weight
        return padded.transpose(1, 2, 3, 0).reshape(-1, layer.lanes)

    def _dense_rows(self, weight: Whole, source: int, layer: Part) -> Whole:
        """Return rows for each input, in the order in which a source counts its neurons."""
        if source != INPUT:
            before = self.found.layers[source]
            places = before.in_rows(np.arange(weight.shape[1]).reshape(before.shape), padding=-1).ravel()
            weight = np.where(places >= 0, weight[:, places], 0)
        padded = np.zeros((layer.groups * layer.lanes, weight.shape[1]), np.int64)
        padded[: len(weight)] = weight
        return padded.T.reshape(-1, layer.lanes)


def _maps(shape: tuple[int, ...]) -> tuple[int, int, int]:
    channels, height, width = (*shape, 1, 1)[:3]
    return channels, height, width


def _for_neurons(values: Whole, shape: tuple[int, int, int]) -> Whole:
    """Spread a constant for all, for each channel, or for each neuron."""
    if values.ndim == 1 and values.size == shape[0]:
        values = values.reshape(-1, 1, 1)
    return np.broadcast_to(values.reshape(values.shape or (1,)), shape).astype(np.int64)


def _width(program: Program, layer: str) -> int:
    (found,) = [each.width for each in program.contract.layers if each.name == layer]
    assert found is not None, layer
    return found


def _common_power(weight: Whole) -> int:
    """Return the largest power of two that divides all weights."""
    every = int(np.bitwise_or.reduce(np.abs(weight).ravel())) if weight.size else 0
    return (every & -every).bit_length() - 1 if every else 0
