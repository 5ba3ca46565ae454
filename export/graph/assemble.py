"""The whole ONNX model: a step as it is, or as the body of a Scan over time; one network, or an ensemble of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from axonnx.export.graph.capture import Member
from axonnx.export.graph.step_module import Signature, Slot
from axonnx.export.graph.translate import Body, Translation
from axonnx.runtime.format.contract import METADATA_KEY, Contract
from axonnx.runtime.format.names import CLOCK, FINAL, INITIAL, INPUT, NEXT, NOW_TRACE, TOTAL, TRACE
from axonnx.runtime.format.opset import DOMAIN, IR_VERSION, ONNX_OPSET, VERSION, function
from axonnx.runtime.format.outer_graph import ANY, result_shapes
from axonnx.runtime.format.results import member_names, readout_calls, result_nodes

Form = Literal["sequence", "step"]
FLOAT = TensorProto.FLOAT


@dataclass(frozen=True)
class Step:
    """All members' nodes as one graph body."""

    body: Body
    states: list[Slot]
    noises: list[Slot]
    traces: list[Slot]
    trace_values: list[str]
    logits: list[str]  # of binary networks
    signature: Signature


def translate_step(members: list[Member], with_traces: bool) -> Step:
    """Translate every member; new states are called ``next/<state>``."""
    body = Body()
    states, noises, traces, trace_values, logits = [], [], [], [], []
    renames: dict[str, str] = {}
    for member in members:
        body.prefix = member.prefix
        signature = member.captured.signature
        mine = member.slots("states"), member.slots("noises"), member.slots("traces") if with_traces else []
        outputs = next(node.args[0] for node in member.captured.graph.nodes if node.op == "output")
        new_states, out_logits, seen = _split(outputs, signature)
        clock = [CLOCK] if signature.clocked else []
        inputs = [INPUT, *(slot.name for slot in mine[0]), *(slot.name for slot in mine[1]), *clock]
        walk = Translation(member.captured, member.network, body)
        values = walk.run(inputs, [*new_states, *out_logits, *(seen if with_traces else [])])
        states += mine[0]
        noises += mine[1]
        traces += mine[2]
        renames |= {value: NEXT + slot.name for slot, value in zip(mine[0], values, strict=False)}
        logits += values[len(new_states) : len(new_states) + len(out_logits)]
        trace_values += values[len(new_states) + len(out_logits) :]
    _rename(body.nodes, renames)
    trace_values = [renames.get(value, value) for value in trace_values]
    return Step(body, states, noises, traces, trace_values, logits, members[0].captured.signature)


def step_model(step: Step, contract: Contract) -> onnx.ModelProto:
    """One time step as a graph: states in, states out."""
    signature = step.signature
    inputs = [_value(INPUT, ["B", *signature.input_shape])]
    inputs += [_value(slot.name, ["B", *slot.shape]) for slot in (*step.states, *step.noises)]
    outputs = [_value(NEXT + slot.name, ["B", *slot.shape]) for slot in step.states]
    if signature.clocked:
        inputs.append(helper.make_tensor_value_info(CLOCK, TensorProto.INT64, [1]))
    nodes = [*step.body.nodes, *_identities(step.trace_values, [TRACE + slot.name for slot in step.traces])]
    outputs += [_value(TRACE + slot.name, ["B", *slot.shape]) for slot in step.traces]
    if not signature.spiking:
        nodes += result_nodes(step.logits)
        outputs = _results(contract) + outputs
    return _model(nodes, inputs, outputs, step.body.initialisers(), step, contract)


def sequence_model(step: Step, contract: Contract) -> onnx.ModelProto:
    """Make a Scan over time whose states begin at zero; logits follow from what the read-out made of them."""
    signature = step.signature
    scan_inputs = [INPUT, *(slot.name for slot in step.noises)]
    inner = {name: f"{name}/now" for name in scan_inputs}
    body = _scan_body(step, inner)
    initial = [INITIAL + slot.name for slot in step.states] + ([INITIAL + CLOCK] if signature.clocked else [])
    final = [FINAL + slot.name for slot in step.states] + ([FINAL + CLOCK] if signature.clocked else [])
    traces = [TRACE + slot.name for slot in step.traces]
    scan = helper.make_node(
        "Scan",
        [*initial, *scan_inputs],
        [*final, *traces],
        name="time",
        body=body,
        num_scan_inputs=len(scan_inputs),
    )
    nodes = [*_initial_states(step), scan, *_readout_nodes(step, contract)]
    constants = _shape_constants(step)
    inputs = [_value(INPUT, ["T", "B", *signature.input_shape])]
    inputs += [_value(slot.name, ["T", "B", *slot.shape]) for slot in step.noises]
    outputs = _results(contract) + [_value(TRACE + slot.name, ["T", "B", *slot.shape]) for slot in step.traces]
    return _model(nodes, inputs, outputs, constants, step, contract)


def _scan_body(step: Step, inner: dict[str, str]) -> onnx.GraphProto:
    signature = step.signature
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in step.body.nodes]
    _rename(nodes, inner)
    inputs = [_value(slot.name, ["B", *slot.shape]) for slot in step.states]
    outputs = [_value(NEXT + slot.name, ["B", *slot.shape]) for slot in step.states]
    constants = step.body.initialisers()
    if signature.clocked:
        inputs.append(helper.make_tensor_value_info(CLOCK, TensorProto.INT64, [1]))
        outputs.append(helper.make_tensor_value_info(NEXT + CLOCK, TensorProto.INT64, [1]))
        constants.append(numpy_helper.from_array(np.ones(1, np.int64), "one_step"))
        nodes.append(helper.make_node("Add", [CLOCK, "one_step"], [NEXT + CLOCK], name="clock"))
    inputs.append(_value(inner[INPUT], ["B", *signature.input_shape]))
    inputs += [_value(inner[slot.name], ["B", *slot.shape]) for slot in step.noises]
    seen = [NOW_TRACE + slot.name for slot in step.traces]
    nodes += _identities(step.trace_values, seen)
    outputs += [_value(name, ["B", *slot.shape]) for name, slot in zip(seen, step.traces, strict=True)]
    return helper.make_graph(nodes, "step", inputs, outputs, initializer=constants)


def _initial_states(step: Step) -> list[onnx.NodeProto]:
    nodes = [helper.make_node("Shape", [INPUT], ["batch"], name="batch", start=1, end=2)]
    for slot in step.states:
        shape = f"shape/{slot.name}"
        nodes.append(helper.make_node("Concat", ["batch", _dims(slot.shape)], [shape], name=shape, axis=0))
        nodes.append(
            helper.make_node(
                "ConstantOfShape",
                [shape],
                [INITIAL + slot.name],
                name=INITIAL + slot.name,
                value=helper.make_tensor("zero", FLOAT, [1], [0.0]),
            )
        )
    return nodes


def _dims(shape: tuple[int, ...]) -> str:
    return "dims/" + "x".join(str(size) for size in shape)


def _shape_constants(step: Step) -> list[onnx.TensorProto]:
    shapes = {slot.shape for slot in step.states}
    constants = [numpy_helper.from_array(np.array(shape, np.int64), _dims(shape)) for shape in sorted(shapes)]
    if step.signature.clocked:
        constants.append(numpy_helper.from_array(np.zeros(1, np.int64), INITIAL + CLOCK))
    return constants


def _readout_nodes(step: Step, contract: Contract) -> list[onnx.NodeProto]:
    totals = [FINAL + slot.name for slot in step.states if slot.name.startswith(TOTAL)]
    logits = member_names(len(totals))
    return [call.node() for call in readout_calls(contract, INPUT, totals, logits)] + result_nodes(logits)


def _results(contract: Contract) -> list[onnx.ValueInfoProto]:
    shapes = result_shapes(contract).items()
    return [_value(name, ["B" if size == ANY else size for size in shape]) for name, shape in shapes]


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
    step: Step,
    contract: Contract,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "axonnx", inputs, outputs, initializer=constants)
    model = helper.make_model(
        graph,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[function(name) for name in sorted(step.body.used_ops)],
        producer_name="axonnx",
    )
    helper.set_model_props(model, {METADATA_KEY: contract.model_dump_json()})
    return model


def _split(outputs: Any, signature: Signature) -> tuple[list[Any], list[Any], list[Any]]:
    """Name the captured outputs, which come flat: states, logits of binary networks, traces."""
    flat = list(outputs)
    states, logits = len(signature.states), 0 if signature.spiking else 1
    return flat[:states], flat[states : states + logits], flat[states + logits :]


def _identities(values: list[str], names: list[str]) -> list[onnx.NodeProto]:
    return [helper.make_node("Identity", [v], [n], name=n) for v, n in zip(values, names, strict=True)]


def _rename(nodes: list[onnx.NodeProto], renames: dict[str, str]) -> None:
    for node in nodes:
        node.input[:] = [renames.get(name, name) for name in node.input]
        node.output[:] = [renames.get(name, name) for name in node.output]


def _value(name: str, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, shape)
