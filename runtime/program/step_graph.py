"""One time step of a network (or a whole binary network) as a graph: the body of a file's Scan, or its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.fields import check_names
from axonnx.runtime.format.fold_constants import fold, read_tensor
from axonnx.runtime.format.model_file import ModelFile
from axonnx.runtime.format.names import CLOCK, MEMBRANE, NEXT, NOISE, NOW_TRACE, SPIKES, TOTAL, TRACE, trace_key
from axonnx.runtime.format.outer_graph import (
    ANY,
    CLOCK_SHAPE,
    Shape,
    check_binary,
    check_border,
    check_sequence,
    result_shapes,
)


@dataclass(frozen=True)
class Slot:
    """A named tensor [B, *shape] that enters a step."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """The inputs of a step, the nodes that compute it, and its outputs. The state ``s`` leaves as ``next/s``."""

    input: Slot
    states: tuple[Slot, ...]
    noises: tuple[Slot, ...]
    clocked: bool
    nodes: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, NDArray[Any]]
    logits: tuple[str, ...]  # of a binary network, one for each member
    outside: frozenset[str] = frozenset()  # results that follow the logits, and have been checked

    @property
    def totals(self) -> tuple[str, ...]:
        """States that sum the read-outs of a spiking network, one for each member."""
        return tuple(slot.name for slot in self.states if slot.name.startswith(TOTAL))


def step_graph(file: ModelFile) -> StepGraph:
    """Take the step out of a file, and fold its constants."""
    contract, graph = file.contract, file.proto.graph
    check_names(graph, file.name)
    if contract.kind == "binary":
        logits, calls = check_binary(graph, contract, file.name)
        outputs = result_shapes(contract)
        return _graph(file, graph, {}, outputs, logits, frozenset(call.outputs[0] for call in calls))
    if contract.form == "step":
        return _graph(file, graph, {}, {})
    loop = check_sequence(graph, contract, file.name)
    check_names(loop.body, file.name)
    step = _graph(file, loop.body, loop.scanned, {})
    entering = {slot.name: (ANY, ANY, *slot.shape) for slot in (step.input, *step.noises)}
    check_border(graph.input, entering, f"{file.name}: its input")
    traces = {name: (ANY, *shape) for name, shape in _traces(graph, contract).items()}
    check_border(graph.output, result_shapes(contract) | traces, f"{file.name}: its output")
    return step


def _graph(
    file: ModelFile,
    graph: onnx.GraphProto,
    renames: Mapping[str, str],
    outputs: Mapping[str, Shape],
    logits: tuple[str, ...] = (),
    outside: frozenset[str] = frozenset(),
) -> StepGraph:
    """Return the step in ``graph``; ``renames`` are its names for the inputs, ``outputs`` its outputs beside states."""
    constants = {tensor.name: read_tensor(tensor, file.name) for tensor in graph.initializer}
    _check_scope(file, graph, renames)
    slots = [_slot(value, renames, file.name) for value in graph.input if value.name != CLOCK]
    left, constants = fold([_renamed(node, renames) for node in graph.node], constants, file.name)
    arriving = [slot for slot in slots if slot.name == file.contract.input.name]
    if len(arriving) != 1 or arriving[0].shape != file.contract.input.shape:
        raise AxonnxError(
            f"{file.name}: its contract states the input {file.contract.input.name!r} "
            f"{list(file.contract.input.shape)}, but the graph has "
            f"{[(slot.name, list(slot.shape)) for slot in arriving] or 'no such input'}. Export the network again"
        )
    noises = tuple(slot for slot in slots if slot.name.startswith(NOISE))
    states = tuple(slot for slot in slots if slot not in noises and slot not in arriving)
    _check_states(file, states, noises)
    clocked = any(value.name == CLOCK for value in graph.input)
    _check_clock(file, left, constants)
    clock = {CLOCK: CLOCK_SHAPE} if clocked else {}
    inner = {outer: name for name, outer in renames.items()}
    entering = {inner.get(slot.name, slot.name): (ANY, *slot.shape) for slot in slots}
    after = {NEXT + name: shape for name, shape in (clock if renames else {}).items()}
    after |= {NEXT + slot.name: (ANY, *slot.shape) for slot in states}
    check_border(graph.input, entering | clock, f"{file.name}: its step's input")
    check_border(graph.output, {**outputs, **after, **_traces(graph, file.contract)}, f"{file.name}: its step's output")
    return StepGraph(arriving[0], states, noises, clocked, tuple(left), constants, logits, outside)


def _traces(graph: onnx.GraphProto, contract: Contract) -> dict[str, Shape]:
    """Return the outputs that are traces of the contract's layers."""
    fields = (SPIKES, MEMBRANE)
    layers = {field + layer.name: (ANY, *layer.shape) for layer in contract.layers for field in fields}
    names = [value.name for value in graph.output if value.name.startswith((TRACE, NOW_TRACE))]
    return {name: layers[trace_key(name)] for name in names if trace_key(name) in layers}


def _check_scope(file: ModelFile, graph: onnx.GraphProto, renames: Mapping[str, str]) -> None:
    """Check that a step reads only its own inputs, not the tensors around it."""
    outer = set(renames.values()) - set(renames)
    used = {name for node in graph.node for name in (*node.input, *node.output)}
    used |= {value.name for value in (*graph.input, *graph.initializer) if value.name not in renames}
    if outer & used:
        raise AxonnxError(
            f"{file.name}: its step reads {sorted(outer & used)[0]!r}, which holds all time steps. Export the "
            f"network again"
        )


def _check_states(file: ModelFile, states: tuple[Slot, ...], noises: tuple[Slot, ...]) -> None:
    promised = [name for layer in file.contract.layers for name in layer.states]
    if sorted(promised) != sorted(slot.name for slot in states):
        raise AxonnxError(
            f"{file.name}: its contract states the states {sorted(promised)}, but its graph has "
            f"{sorted(s.name for s in states)}. Export the network again"
        )
    drawn = [layer.noise for layer in file.contract.layers if layer.noise is not None]
    if sorted(drawn) != sorted(slot.name for slot in noises):
        raise AxonnxError(
            f"{file.name}: its contract states the noises {sorted(drawn)}, but its graph has "
            f"{sorted(s.name for s in noises)}. Export the network again"
        )


def _check_clock(file: ModelFile, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, NDArray[Any]]) -> None:
    """Check that the clock of a sequence advances by one."""
    for node in nodes:
        if NEXT + CLOCK in node.output:
            step = constants.get(node.input[1]) if node.op_type == "Add" and node.input[0] == CLOCK else None
            if step is None or step.dtype != np.int64 or step.tolist() != [1]:
                raise AxonnxError(
                    f"{file.name}: node {node.name!r}: its clock does not advance by one. Export the network again"
                )


def _renamed(node: onnx.NodeProto, renames: Mapping[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [renames.get(name, name) for name in node.input]
    return copy


def _slot(value: onnx.ValueInfoProto, renames: Mapping[str, str], where: str) -> Slot:
    tensor = value.type.tensor_type
    name = renames.get(value.name, value.name)
    dims = [dim.dim_value for dim in tensor.shape.dim][1:]
    if tensor.elem_type != onnx.TensorProto.FLOAT or not all(size > 0 for size in dims):
        raise AxonnxError(
            f"{where}: the input {name!r} is not float32 [B, …] with fixed sizes after the batch. Export the network "
            f"again"
        )
    return Slot(name, tuple(dims))


def needed_nodes(nodes: Sequence[onnx.NodeProto], wanted: Sequence[str]) -> list[onnx.NodeProto]:
    """Return the nodes that compute the wanted values, without traces and without nodes outside the step."""
    names, kept = set(wanted), []
    for node in reversed(nodes):
        if names & set(node.output):
            names |= set(node.input)
            kept.append(node)
    return kept[::-1]
