"""What stands around the step in a file, held to what an export writes there.

The engines compute a step and the rest on their own (zero states, mean over time, an ensemble's probabilities). That
is right only while the file says the same, so every node outside the step is compared with the one expected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.fold_constants import read_tensor
from axonnx.runtime.format.names import CLOCK, LOGITS, NEXT, TOTAL
from axonnx.runtime.format.results import Call, ensemble_calls, mean_calls, member_names, result_calls


def check_binary(graph: onnx.GraphProto, contract: Contract, where: str) -> tuple[tuple[str, ...], list[Call]]:
    """The members' logits in a binary network's graph, and what follows them: what an export writes, or a refusal."""
    if contract.collapse.members == 1:
        last = [node for node in graph.node if list(node.output) == [LOGITS]]
        if len(last) == 1 and last[0].op_type == "Identity":
            calls = result_calls(last[0].input)
            _compare(graph, calls, where)
            return (last[0].input[0],), calls
        raise AxonnxError(f"{where}: its output {LOGITS!r} is not the read-out's. Export the network again")
    stacked = [node for node in graph.node if node.op_type == "Unsqueeze"]
    logits = tuple(node.input[0] for node in stacked)
    calls = ensemble_calls(logits)
    _compare(graph, calls, where)
    return logits, calls


def check_sequence(graph: onnx.GraphProto, contract: Contract, where: str) -> Loop:
    """The Scan of a sequence; its states must begin at zero and its logits be the mean over time."""
    scans = [node for node in graph.node if node.op_type == "Scan"]
    if len(scans) != 1:
        raise AxonnxError(
            f"{where}: {len(scans)} loops over time in a sequence; expected one. Export the network again"
        )
    loop = _loop(scans[0], where)
    calls = _initial(graph, loop, where) + _means(loop)
    _compare(graph, calls, where)
    extra = {name for node in graph.node for name in node.output} - {call.outputs[0] for call in calls}
    extra -= set(loop.scan.output)
    if extra:
        raise AxonnxError(f"{where}: outside its step it computes {sorted(extra)[0]!r}, which no exported file does")
    return loop


@dataclass(frozen=True, eq=False)
class Loop:
    """A Scan, its body, and how many of its inputs are gone through step by step."""

    scan: onnx.NodeProto
    body: onnx.GraphProto
    entering: int

    @property
    def states(self) -> list[str]:
        """What is carried from step to step."""
        return [value.name for value in self.body.input][: -self.entering]

    @property
    def scanned(self) -> dict[str, str]:
        """The body's name of each input, and the one outside."""
        inner = [value.name for value in self.body.input][-self.entering :]
        return dict(zip(inner, self.scan.input[-self.entering :], strict=True))


def _loop(scan: onnx.NodeProto, where: str) -> Loop:
    given = {attribute.name: attribute for attribute in scan.attribute}
    if given.keys() != {"body", "num_scan_inputs"} or len(scan.attribute) != 2:
        raise AxonnxError(f"{where}: its loop over time has the attributes {sorted(given)}. Export the network again")
    loop = Loop(scan, given["body"].g, given["num_scan_inputs"].i)
    inside = (len(loop.body.input), len(loop.body.output))
    if (len(scan.input), len(scan.output)) != inside or not 1 <= loop.entering <= inside[0]:
        raise AxonnxError(
            f"{where}: its loop over time takes {len(scan.input)} and gives {len(scan.output)} tensors, its step "
            f"{inside[0]} and {inside[1]}, with {loop.entering} of the inputs step by step. Export the network again"
        )
    left = [value.name for value in loop.body.output]
    seen = [f"now/{name}" for name in scan.output[len(loop.states) :]]
    if left != [*(NEXT + state for state in loop.states), *seen]:
        raise AxonnxError(f"{where}: its loop over time does not hand states on as {left}. Export the network again")
    return loop


def _initial(graph: onnx.GraphProto, loop: Loop, where: str) -> list[Call]:
    """Zeros of the batch's size for each state; a clock at zero."""
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
    """Without the batch."""
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim][1:]


def _means(loop: Loop) -> list[Call]:
    """Each member's mean over time, and what becomes of them."""
    scan, states = loop.scan, loop.states
    totals = [scan.output[number] for number, state in enumerate(states) if state.startswith(TOTAL)]
    logits = member_names(len(totals))
    return mean_calls(scan.input[len(states)], totals, logits) + result_calls(logits)


def _compare(graph: onnx.GraphProto, expected: list[Call], where: str) -> None:
    found = {node.output[0]: node for node in graph.node if node.op_type != "Scan" and node.output}
    for call in expected:
        node = found.get(call.outputs[0])
        there = None if node is None or node.domain else Call.of(node, where)
        if there is None and call.op == "Constant":
            raise AxonnxError(
                f"{where}: the constant {call.outputs[0]!r} of its ensemble stands elsewhere: a tool that folds "
                f"constants has moved it, as onnxsim does. Leave onnxsim out, and give the file as it was exported"
            )
        if there != call:
            got = "nothing" if there is None else f"{there.op}({', '.join(there.inputs)})"
            raise AxonnxError(
                f"{where}: outside its step, {call.outputs[0]!r} should be {call.op}({', '.join(call.inputs)}) and is "
                f"{got}: the file was changed after its export. Export the network again"
            )
