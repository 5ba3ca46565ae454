"""What stands around the step in a file, held to what an export writes there.

The engines compute a step and the rest on their own (zero states, mean over time, an ensemble's probabilities). That
is right only while the file says the same, so every node outside the step is compared with the one expected.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

from axonnx.runtime.contract import Contract
from axonnx.runtime.errors import AxonnxError


class Call(NamedTuple):
    """A node without its name."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, node: onnx.NodeProto) -> Call:
        """The call that a node makes."""
        values = {attribute.name: _plain(helper.get_attribute_value(attribute)) for attribute in node.attribute}
        return cls(node.op_type, tuple(node.input), tuple(node.output), tuple(sorted(values.items())))


def check_binary(graph: onnx.GraphProto, contract: Contract, where: str) -> tuple[str, ...]:
    """The members' logits in a binary network's graph; what follows them must be what an export writes."""
    if contract.collapse.members == 1:
        last = [node for node in graph.node if list(node.output) == ["logits"]]
        if len(last) == 1 and last[0].op_type == "Identity":
            return (last[0].input[0],)
        raise AxonnxError(f"{where}: its output 'logits' is not the read-out's. Export the network again")
    stacked = [node for node in graph.node if node.op_type == "Unsqueeze"]
    logits = tuple(node.input[0] for node in stacked)
    _compare(graph, ensemble_calls(logits), where)
    return logits


def check_sequence(graph: onnx.GraphProto, contract: Contract, where: str) -> onnx.NodeProto:
    """The Scan of a sequence; its states must begin at zero and its logits be the mean over time."""
    scans = [node for node in graph.node if node.op_type == "Scan"]
    if len(scans) != 1:
        raise AxonnxError(
            f"{where}: {len(scans)} loops over time in a sequence; expected one. Export the network again"
        )
    scan = scans[0]
    entering = helper.get_node_attr_value(scan, "num_scan_inputs")
    body = helper.get_node_attr_value(scan, "body")
    states = [value.name for value in body.input][:-entering]
    left = [value.name for value in body.output][: len(states)]
    extra = {attribute.name for attribute in scan.attribute} - {"body", "num_scan_inputs"}
    if left != [f"next/{state}" for state in states] or extra:
        raise AxonnxError(f"{where}: its loop over time does not hand states on as {left}. Export the network again")
    calls = _initial(graph, scan, states, where) + _means(scan, states, contract)
    _compare(graph, calls, where)
    return scan


def _initial(graph: onnx.GraphProto, scan: onnx.NodeProto, states: list[str], where: str) -> list[Call]:
    """Zeros of the batch's size for each state; a clock at zero."""
    arriving = scan.input[len(states)]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    calls = [Call("Shape", (arriving,), ("batch",), (("end", 2), ("start", 1)))]
    made = {node.output[0]: node for node in graph.node if node.op_type == "Concat"}
    for state, initial in zip(states, scan.input, strict=False):
        shape = f"shape/{state}"
        if initial in constants:
            if constants[initial].any():
                raise AxonnxError(f"{where}: the state {state!r} does not begin at zero. Export the network again")
            continue
        dims = made[shape].input[1] if shape in made and len(made[shape].input) == 2 else "its size"
        calls.append(Call("Concat", ("batch", dims), (shape,), (("axis", 0),)))
        calls.append(Call("ConstantOfShape", (shape,), (initial,), (("value", (0.0,)),)))
    return calls


def _means(scan: onnx.NodeProto, states: list[str], contract: Contract) -> list[Call]:
    """logits = total / T."""
    arriving = scan.input[len(states)]
    calls = [
        Call("Shape", (arriving,), ("steps_int",), (("end", 1), ("start", 0))),
        Call("Cast", ("steps_int",), ("steps",), (("to", onnx.TensorProto.FLOAT),)),
    ]
    totals = [scan.output[number] for number, state in enumerate(states) if state.startswith("total/")]
    logits = tuple(f"logits/{number}" for number in range(len(totals)))
    calls += [Call("Div", (total, "steps"), (name,)) for total, name in zip(totals, logits, strict=True)]
    return calls + ([Call("Identity", logits, ("logits",))] if len(logits) == 1 else ensemble_calls(logits))


def ensemble_calls(logits: tuple[str, ...]) -> list[Call]:
    """An ensemble's results from its members' logits: probabilities, and how unsure and at odds the members are."""
    stacked = tuple(f"{name}/member" for name in logits)
    calls = [
        Call("Constant", (), ("axis_members",), (("value_ints", (0,)),)),
        Call("Constant", (), ("axis_classes",), (("value_ints", (-1,)),)),
        Call("Constant", (), ("tiny",), (("value_float", float(np.float32(1e-30))),)),
    ]
    calls += [Call("Unsqueeze", (name, "axis_members"), (out,)) for name, out in zip(logits, stacked, strict=True)]
    calls += [
        Call("Concat", stacked, ("member_logits",), (("axis", 0),)),
        Call("Softmax", ("member_logits",), ("member_probabilities",), (("axis", -1),)),
        Call("ReduceMean", ("member_probabilities", "axis_members"), ("probabilities",), (("keepdims", 0),)),
    ]
    calls += _entropy_calls("probabilities", "entropy") + _entropy_calls("member_probabilities", "member_entropy")
    return [
        *calls,
        Call("ReduceMean", ("member_entropy", "axis_members"), ("expected_entropy",), (("keepdims", 0),)),
        Call("Sub", ("entropy", "expected_entropy"), ("mutual_information",)),
    ]


def _entropy_calls(of: str, out: str) -> list[Call]:
    return [
        Call("Max", (of, "tiny"), (f"{out}/clipped",)),
        Call("Log", (f"{out}/clipped",), (f"{out}/log",)),
        Call("Mul", (of, f"{out}/log"), (f"{out}/products",)),
        Call("ReduceSum", (f"{out}/products", "axis_classes"), (f"{out}/sum",), (("keepdims", 0),)),
        Call("Neg", (f"{out}/sum",), (out,)),
    ]


def _compare(graph: onnx.GraphProto, expected: list[Call], where: str) -> None:
    found = {node.output[0]: Call.of(node) for node in graph.node if node.op_type != "Scan"}
    for call in expected:
        there = found.get(call.outputs[0])
        if there != call:
            got = "nothing" if there is None else f"{there.op}({', '.join(there.inputs)})"
            raise AxonnxError(
                f"{where}: outside its step, {call.outputs[0]!r} should be {call.op}({', '.join(call.inputs)}) and is "
                f"{got}: the file was changed after its export. Export the network again"
            )


def _plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return tuple(np.array(numpy_helper.to_array(value)).ravel().tolist())
    return tuple(value) if isinstance(value, list) else value
