"""One time step of a network (or a whole binary network) as a graph: the body of a file's Scan, or its graph itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.fold_constants import fold
from axonnx.runtime.model_file import ModelFile
from axonnx.runtime.outer_graph import check_binary, check_sequence

CLOCK = "step"
NEXT = "next/"


@dataclass(frozen=True)
class Slot:
    """A named tensor [B, *shape] that enters a step."""

    name: str
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class StepGraph:
    """What enters a step, the nodes that compute it, and what leaves it. State ``s`` leaves as ``next/s``."""

    input: Slot
    states: tuple[Slot, ...]
    noises: tuple[Slot, ...]
    clocked: bool
    nodes: tuple[onnx.NodeProto, ...]
    constants: Mapping[str, NDArray[Any]]
    logits: tuple[str, ...]  # of a binary network, one for each member

    @property
    def totals(self) -> tuple[str, ...]:
        """The states that sum up the read-outs of a spiking network, one for each member."""
        return tuple(slot.name for slot in self.states if slot.name.startswith("total/"))


def step_graph(file: ModelFile) -> StepGraph:
    """Take the step out of a file and fold what is constant in it."""
    contract, graph = file.contract, file.proto.graph
    if contract.kind == "binary":
        logits = check_binary(graph, contract, file.name)
        return _graph(file, graph, graph.node, list(graph.input), {}, logits)
    if contract.form == "step":
        return _graph(file, graph, graph.node, list(graph.input), {}, ())
    scan = check_sequence(graph, contract, file.name)
    body: onnx.GraphProto = helper.get_node_attr_value(scan, "body")
    entering = helper.get_node_attr_value(scan, "num_scan_inputs")
    inner = [value.name for value in body.input][-entering:]
    return _graph(
        file, body, body.node, list(body.input), dict(zip(inner, list(scan.input)[-entering:], strict=True)), ()
    )


def _graph(
    file: ModelFile,
    graph: onnx.GraphProto,
    nodes: Sequence[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    renames: Mapping[str, str],
    logits: tuple[str, ...],
) -> StepGraph:
    renamed = [_renamed(node, renames) for node in nodes]
    constants = {tensor.name: _array(tensor, file.name) for tensor in graph.initializer}
    slots = [_slot(value, renames, file.name) for value in inputs if value.name not in (CLOCK, *constants)]
    left, constants = fold(renamed, constants)
    arriving = [slot for slot in slots if slot.name == file.contract.input.name]
    if len(arriving) != 1 or arriving[0].shape != file.contract.input.shape:
        raise AxonnxError(
            f"{file.name}: its contract names the input {file.contract.input.name!r} {list(file.contract.input.shape)}"
            f"; the graph has {[(slot.name, list(slot.shape)) for slot in arriving] or 'no such input'}"
        )
    noises = tuple(slot for slot in slots if slot.name.startswith("noise/"))
    states = tuple(slot for slot in slots if slot not in noises and slot not in arriving)
    _check_states(file, states, noises)
    clocked = any(value.name == CLOCK for value in inputs)
    _check_clock(file, left, constants)
    return StepGraph(arriving[0], states, noises, clocked, tuple(left), constants, logits)


def _check_states(file: ModelFile, states: tuple[Slot, ...], noises: tuple[Slot, ...]) -> None:
    promised = [name for layer in file.contract.layers for name in layer.states]
    if sorted(promised) != sorted(slot.name for slot in states):
        raise AxonnxError(
            f"{file.name}: its contract names the states {sorted(promised)}, its graph {sorted(s.name for s in states)}"
        )
    drawn = [layer.noise for layer in file.contract.layers if layer.noise is not None]
    if sorted(drawn) != sorted(slot.name for slot in noises):
        raise AxonnxError(
            f"{file.name}: its contract names the noises {sorted(drawn)}, its graph {sorted(s.name for s in noises)}"
        )


def _check_clock(file: ModelFile, nodes: Sequence[onnx.NodeProto], constants: Mapping[str, NDArray[Any]]) -> None:
    """A sequence's clock goes on by one."""
    for node in nodes:
        if NEXT + CLOCK in node.output:
            step = constants.get(node.input[1]) if node.op_type == "Add" and node.input[0] == CLOCK else None
            if step is None or step.tolist() != [1]:
                raise AxonnxError(
                    f"{file.name}: node {node.name!r}: its clock does not count steps. Export the network again"
                )


def _renamed(node: onnx.NodeProto, renames: Mapping[str, str]) -> onnx.NodeProto:
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [renames.get(name, name) for name in node.input]
    return copy


def _array(tensor: onnx.TensorProto, where: str) -> NDArray[Any]:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise AxonnxError(f"{where}: the constant {tensor.name!r} is kept in another file; a model is one file here")
    try:
        array: NDArray[Any] = numpy_helper.to_array(tensor)
    except ValueError as fault:
        raise AxonnxError(f"{where}: the constant {tensor.name!r} cannot be read: {fault}") from None
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise AxonnxError(f"{where}: the constant {tensor.name!r} holds numbers that are not finite")
    array.flags.writeable = False
    return array


def _slot(value: onnx.ValueInfoProto, renames: Mapping[str, str], where: str) -> Slot:
    tensor = value.type.tensor_type
    name = renames.get(value.name, value.name)
    dims = [dim.dim_value for dim in tensor.shape.dim][1:]
    if tensor.elem_type != onnx.TensorProto.FLOAT or not all(size > 0 for size in dims):
        raise AxonnxError(f"{where}: the input {name!r} is not float32 [B, …] with fixed sizes after the batch")
    return Slot(name, tuple(dims))
