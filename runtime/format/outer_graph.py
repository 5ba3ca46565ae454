"""Check the nodes around the step in a file against those that an export writes.

The engines compute only the step from the file, and the rest on their own (zero states, mean over time, probabilities
of an ensemble). This is correct only if the file says the same, so every node outside the step is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.fold_constants import read_tensor
from axonnx.runtime.format.names import (
    CLOCK,
    ENTROPY,
    LOGITS,
    MEMBER_LOGITS,
    MUTUAL_INFORMATION,
    NEXT,
    PROBABILITIES,
    TOTAL,
)
from axonnx.runtime.format.results import Call, ensemble_calls, member_names, readout_calls, result_calls

Shape = tuple[int, ...]
ANY = -1  # an axis without a fixed size
CLOCK_SHAPE: Shape = (1,)  # every other tensor has an axis for the batch


def result_shapes(contract: Contract) -> dict[str, Shape]:
    """Return the shapes of a whole network's results."""
    classes, members = len(contract.classes), contract.collapse.members
    if members == 1:
        return {LOGITS: (ANY, classes)}
    doubts: dict[str, Shape] = {ENTROPY: (ANY,), MUTUAL_INFORMATION: (ANY,)}
    return {PROBABILITIES: (ANY, classes), MEMBER_LOGITS: (members, ANY, classes), **doubts}


def check_border(values: Sequence[onnx.ValueInfoProto], shapes: Mapping[str, Shape], where: str) -> None:
    """Check that these tensors are exactly the expected ones, float32 except for the clock."""
    found = sorted(value.name for value in values)
    if found != sorted(shapes):
        raise AxonnxError(f"{where}s are {found}; expected {sorted(shapes)}. Export the network again")
    for value in values:
        expected, tensor = shapes[value.name], value.type.tensor_type
        kind = onnx.TensorProto.INT64 if expected == CLOCK_SHAPE else onnx.TensorProto.FLOAT
        sizes = tuple(dim.dim_value if dim.HasField("dim_value") else ANY for dim in tensor.shape.dim)
        if tensor.elem_type != kind or not tensor.HasField("shape") or sizes != expected:
            raise AxonnxError(
                f"{where} {value.name!r} has ONNX type {tensor.elem_type} and sizes {list(sizes)}; expected type "
                f"{kind} and sizes {list(expected)} ({ANY} means any). Export the network again"
            )


def check_binary(graph: onnx.GraphProto, contract: Contract, where: str) -> tuple[tuple[str, ...], list[Call]]:
    """Return the members' logits of a binary network and the nodes that follow them; refuse any other graph."""
    if contract.collapse.members == 1:
        last = [node for node in graph.node if list(node.output) == [LOGITS]]
        if len(last) == 1 and last[0].op_type == "Identity":
            calls = result_calls(last[0].input)
            _compare(graph, calls, where)
            return (last[0].input[0],), calls
        raise AxonnxError(f"{where}: its output {LOGITS!r} does not come from the read-out. Export the network again")
    stacked = [node for node in graph.node if node.op_type == "Unsqueeze"]
    logits = tuple(node.input[0] for node in stacked)
    calls = ensemble_calls(logits)
    _compare(graph, calls, where)
    return logits, calls


def check_sequence(graph: onnx.GraphProto, contract: Contract, where: str) -> Loop:
    """Return the Scan of a sequence after a check that states begin at zero and logits are what the contract says."""
    scans = [node for node in graph.node if node.op_type == "Scan"]
    if len(scans) != 1:
        raise AxonnxError(
            f"{where}: has {len(scans)} loops over time; expected one in a sequence. Export the network again"
        )
    loop = _loop(scans[0], where)
    calls = _initial(graph, loop, where) + _readouts(loop, contract)
    _compare(graph, calls, where)
    extra = {name for node in graph.node for name in node.output} - {call.outputs[0] for call in calls}
    extra -= set(loop.scan.output)
    if extra:
        raise AxonnxError(
            f"{where}: computes {sorted(extra)[0]!r} outside its step, which exported files never do. Export the "
            f"network again"
        )
    return loop


@dataclass(frozen=True, eq=False)
class Loop:
    """A Scan, its body, and the number of inputs that it scans step by step."""

    scan: onnx.NodeProto
    body: onnx.GraphProto
    entering: int

    @property
    def states(self) -> list[str]:
        """States that are carried from step to step."""
        return [value.name for value in self.body.input][: -self.entering]

    @property
    def scanned(self) -> dict[str, str]:
        """The body's name of each scanned input, with the name outside."""
        inner = [value.name for value in self.body.input][-self.entering :]
        return dict(zip(inner, self.scan.input[-self.entering :], strict=True))


def _loop(scan: onnx.NodeProto, where: str) -> Loop:
    given = {attribute.name: attribute for attribute in scan.attribute}
    if given.keys() != {"body", "num_scan_inputs"} or len(scan.attribute) != 2:
        raise AxonnxError(
            f"{where}: its loop over time has the attributes {sorted(given)}; expected body and num_scan_inputs. "
            f"Export the network again"
        )
    loop = Loop(scan, given["body"].g, given["num_scan_inputs"].i)
    inside = (len(loop.body.input), len(loop.body.output))
    if (len(scan.input), len(scan.output)) != inside or not 1 <= loop.entering <= inside[0]:
        raise AxonnxError(
            f"{where}: its loop over time has {len(scan.input)} inputs and {len(scan.output)} outputs, but its step "
            f"has {inside[0]} and {inside[1]}, with {loop.entering} inputs scanned. Export the network again"
        )
    left = [value.name for value in loop.body.output]
    seen = [f"now/{name}" for name in scan.output[len(loop.states) :]]
    if left != [*(NEXT + state for state in loop.states), *seen]:
        raise AxonnxError(
            f"{where}: its loop over time returns {left}; expected the next states and the traces. Export the network "
            f"again"
        )
    return loop


def _initial(graph: onnx.GraphProto, loop: Loop, where: str) -> list[Call]:
    """Return the nodes that make zeros of the batch's size for each state; check that a clock begins at zero."""
    scan, states = loop.scan, loop.states
    constants = {tensor.name: read_tensor(tensor, where) for tensor in graph.initializer}
    sizes = {value.name: _sizes(value) for value in loop.body.input}
    calls = [Call("Shape", (scan.input[len(states)],), ("batch",), (("end", 2), ("start", 1)))]
    made = {node.output[0]: node for node in graph.node if node.op_type == "Concat" and node.output}
    for state, initial in zip(states, scan.input, strict=False):
        if state == CLOCK:
            begin = constants.get(initial)
            right = begin is not None and begin.dtype == np.int64 and begin.tolist() == [0]
        else:
            shape = f"shape/{state}"
            dims = made[shape].input[-1] if shape in made else "its size"
            size = constants.get(dims)
            right = size is not None and size.dtype == np.int64 and size.tolist() == sizes[state]
            calls.append(Call("Concat", ("batch", dims), (shape,), (("axis", 0),)))
            calls.append(Call("ConstantOfShape", (shape,), (initial,), (("value", (0.0,)),)))
        if not right:
            raise AxonnxError(f"{where}: the state {state!r} does not begin at zero. Export the network again")
    return calls


def _sizes(value: onnx.ValueInfoProto) -> list[int]:
    """Return the sizes without the batch."""
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim][1:]


def _readouts(loop: Loop, contract: Contract) -> list[Call]:
    """Return the nodes that compute each member's logits of its read-out, and the results from these."""
    scan, states = loop.scan, loop.states
    totals = [scan.output[number] for number, state in enumerate(states) if state.startswith(TOTAL)]
    logits = member_names(len(totals))
    return readout_calls(contract, scan.input[len(states)], totals, logits) + result_calls(logits)


def _compare(graph: onnx.GraphProto, expected: list[Call], where: str) -> None:
    found = {node.output[0]: node for node in graph.node if node.op_type != "Scan" and node.output}
    for call in expected:
        node = found.get(call.outputs[0])
        there = None if node is None or node.domain else Call.of(node, where)
        if there is None and call.op == "Constant":
            raise AxonnxError(
                f"{where}: the constant {call.outputs[0]!r} of its ensemble was moved: a tool such as onnxsim has "
                "folded constants. Do not use onnxsim; give the file as it was exported"
            )
        if there != call:
            got = "nothing" if there is None else f"{there.op}({', '.join(there.inputs)})"
            raise AxonnxError(
                f"{where}: outside its step, {call.outputs[0]!r} is {got}; expected "
                f"{call.op}({', '.join(call.inputs)}). The file was changed after its export. Export the network again"
            )
