"""A file as a report describes it: size and hash, each layer with its neurons and weights, and what leads where.

A layer's sum is made of, found by following every buffer:

forward    spikes (or the input) through a synapse into a layer's sum
recurrent  the same, with the spikes of the step before
stream     a sum that another layer had already, and that goes on (residual networks)
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from axonnx.runtime.format.contract import Contract, LayerContract, SynapseContract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.format.names import SPIKES, under
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.instructions import Conv, Floats, Instruction, Linear, Neurons, Program

INPUT = "input"
Kind = Literal["forward", "recurrent", "stream"]
POOLS = ("AveragePool", "MaxPool", "PoolPairs")


@dataclass(frozen=True)
class SynapseView:
    """A weight tensor."""

    name: str
    weights: int
    zeros: int
    biases: int
    grid: int | None


@dataclass(frozen=True)
class LayerView:
    """Neurons and all synapses whose sums they receive."""

    stated: LayerContract
    neurons: int
    synapses: tuple[SynapseView, ...]

    @property
    def name(self) -> str:
        """As in the contract."""
        return self.stated.name


@dataclass(frozen=True, eq=False)
class ModelView:
    """An exported file."""

    path: Path
    size: int
    sha256: str
    opset: int
    program: Program

    @property
    def contract(self) -> Contract:
        """What travels in the file."""
        return self.program.contract

    @cached_property
    def layers(self) -> tuple[LayerView, ...]:
        """All layers in order; of an ensemble, those of its first member."""
        stated = {layer.name: layer for layer in self.contract.layers}
        classes = (len(self.contract.classes),)
        views = []
        for name, leading in sources(self.program).items():
            layer = stated.get(name) or LayerContract(name=name, op="Linear", shape=classes)
            synapses = tuple(self.synapses[synapse] for synapse in leading)
            views.append(LayerView(layer, math.prod(layer.shape), synapses))
        return tuple(views[: max(1, len(views) // self.contract.collapse.members)])

    @cached_property
    def synapses(self) -> dict[str, SynapseView]:
        """All synapses by the name of their instruction."""
        grids = {stated.weight: stated for stated in self.contract.synapses}
        instructions = [i for i in self.program.instructions if isinstance(i, Linear | Conv)]
        return {i.name: _synapse(i, self.program, grids.get(i.weight)) for i in instructions}

    @property
    def parameters(self) -> int:
        """Weights and biases."""
        return sum(synapse.weights + synapse.biases for synapse in self.synapses.values())

    def thresholds(self, layer: str) -> Floats | None:
        """θ of every neuron of a layer; None where it has none."""
        threshold = self.program.thresholds.get(layer)
        shapes = {each.name: each.shape for each in self.program.layers}
        return None if threshold is None else np.broadcast_to(threshold, shapes[layer]).ravel()


def view_model(path: str | Path) -> ModelView:
    """Read, check and compile a file."""
    file = read_model_file(path)
    data = file.path.read_bytes()
    opset = next(entry.version for entry in file.proto.opset_import if entry.domain in ("", "ai.onnx"))
    return ModelView(file.path, len(data), hashlib.sha256(data).hexdigest(), opset, compile_program(file))


def sources(program: Program) -> dict[str, tuple[str, ...]]:
    """For each layer the synapses whose sums reach it first, without passing other neurons; each once.

    Where logits are sums themselves, not of neurons, the last synapse stands for their layer.
    """
    found: dict[str, dict[str, None]] = {i.layer: {} for i in program.instructions if isinstance(i, Neurons)}
    for wire in wires(program):
        found.setdefault(wire.target, {}).update({wire.synapse: None} if wire.synapse else {})
    return {layer: tuple(synapses) for layer, synapses in found.items()}


def _synapse(i: Linear | Conv, program: Program, stated: SynapseContract | None) -> SynapseView:
    weight = program.constants[i.weight]
    biases = 0 if i.bias is None else program.constants[i.bias].size
    zeros = int(weight.size - np.count_nonzero(weight))
    return SynapseView(i.name, weight.size, zeros, biases, None if stated is None else stated.grid)


class Route(NamedTuple):
    """A way into a sum: from whose values, of which step, through which synapse."""

    source: str
    before: bool  # the step before
    synapse: str | None = None
    pooled: bool = False


@dataclass(frozen=True)
class Wire:
    """A connection that is drawn."""

    source: str
    target: str
    kind: Kind
    synapse: str | None = None
    pooled: bool = False


def wires(program: Program) -> tuple[Wire, ...]:
    """All connections in the order of their targets; each synapse leads to the layer that it reaches first."""
    ways: dict[str, frozenset[Route]] = {program.input: frozenset([Route(INPUT, False)])}
    ways |= {SPIKES + layer: frozenset([Route(layer, True)]) for layer in under(SPIKES, dict.fromkeys(program.states))}
    found, had = list[Wire](), dict[Route, str]()
    for i in program.instructions:
        if isinstance(i, Neurons):
            found += _arriving(i.layer, _sum(i, program, ways), had)
            ways |= dict.fromkeys(i.writes, frozenset([Route(i.layer, False)]))
        else:
            arriving = frozenset(way for name in i.reads for way in ways.get(name, frozenset()))
            ways |= dict.fromkeys(i.writes, frozenset(_through(i, way) for way in arriving))
    for logits in program.logits:  # sums that no neuron takes
        through = {way.synapse for way in ways[logits]}
        last = next(i.name for i in reversed(program.instructions) if i.name in through)
        found += _arriving(last, ways[logits], had)
    return tuple(found)


def _sum(i: Neurons, program: Program, ways: dict[str, frozenset[Route]]) -> frozenset[Route]:
    """Return what a layer adds up, without its own state."""
    computed = [name for name in i.reads if name in program.buffers and program.buffers[name].role != "state"]
    return frozenset(way for name in computed for way in ways.get(name, frozenset()))


def _through(i: Instruction, way: Route) -> Route:
    if isinstance(i, Linear | Conv):
        return way._replace(synapse=i.name)
    return way._replace(pooled=True) if i.op in POOLS and way.synapse is None else way


def _arriving(target: str, arriving: frozenset[Route], had: dict[Route, str]) -> list[Wire]:
    """Make a wire of each new route; routes that other layers had arrive as one stream from the last of them."""
    ordered = sorted(arriving, key=lambda way: (way.before, way.source, way.synapse or ""))
    new = [way for way in ordered if way not in had]
    found = [Wire(way.source, target, "recurrent" if way.before else "forward", way.synapse, way.pooled) for way in new]
    receivers = list(had.values())
    old = {had[way] for way in ordered if way in had}
    if old:
        found.append(Wire(max(old, key=lambda name: len(receivers) - receivers[::-1].index(name)), target, "stream"))
    for way in ordered:
        had.pop(way, None)
        had[way] = target
    return found
