"""A file as a report describes it: size and hash, and for each layer its neurons and the weights that lead there."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from axonnx.runtime.format.contract import Contract, LayerContract, SynapseContract
from axonnx.runtime.format.model_file import read_model_file
from axonnx.runtime.program.compilation import compile_program
from axonnx.runtime.program.instructions import Conv, Floats, Linear, Neurons, Program


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
            views.append(LayerView(layer, _neurons(layer), tuple(self.synapses[synapse] for synapse in leading)))
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
        for i in self.program.instructions:
            if isinstance(i, Neurons) and i.layer == layer and "threshold" in i.parameters:
                shape = next(each.shape for each in self.program.layers if each.name == layer)
                return np.broadcast_to(self.program.constants[i.parameters["threshold"]], shape).ravel()
        return None


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
    upstream: dict[str, tuple[str, ...]] = {}
    found: dict[str, tuple[str, ...]] = {}
    for i in program.instructions:
        arriving = tuple(dict.fromkeys(name for read in i.reads for name in upstream.get(read, ())))
        if isinstance(i, Neurons):
            taken = {name for names in found.values() for name in names}  # sums of a residual network go further
            found[i.layer] = tuple(name for name in arriving if name not in taken)
        passed = (i.name,) if isinstance(i, Linear | Conv) else () if isinstance(i, Neurons) else arriving
        upstream.update(dict.fromkeys(i.writes, passed))
    return found | {upstream[logits][-1]: upstream[logits] for logits in program.logits if upstream.get(logits)}


def _synapse(i: Linear | Conv, program: Program, stated: SynapseContract | None) -> SynapseView:
    weight = program.constants[i.weight]
    biases = 0 if i.bias is None else program.constants[i.bias].size
    zeros = int(weight.size - np.count_nonzero(weight))
    return SynapseView(i.name, weight.size, zeros, biases, None if stated is None else stated.grid)


def _neurons(layer: LayerContract) -> int:
    return int(np.prod(layer.shape, dtype=np.int64))
