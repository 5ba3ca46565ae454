"""Run the step of the same file densely with stock onnxruntime: for comparison, dense networks and other devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.float_mode import in_default_mode
from axonnx.runtime.engines.interface import Chunk, Engine, check_input
from axonnx.runtime.engines.state import State, check_clock, check_state
from axonnx.runtime.format.names import CLOCK, NEXT, NOW_TRACE, TRACE
from axonnx.runtime.format.opset import DOMAIN, IR_VERSION, ONNX_OPSET, VERSION, function
from axonnx.runtime.program.instructions import Program, trace_sources
from axonnx.runtime.program.step_graph import StepGraph, needed_nodes

Floats = NDArray[np.float32]
FLOAT = TensorProto.FLOAT
Whole = Callable[[Mapping[str, Any]], dict[str, Any]]  # results of a whole model from its inputs
SEEN = "seen/"  # a trace inside the engine's own loop


class OrtEngine(Engine):
    """Runs one step, or a Scan over a chunk of steps, with states as inputs and outputs. It counts no operations."""

    name = "ort"

    def __init__(self, program: Program, graph: StepGraph, threads: int = 1) -> None:
        self.program, self.graph, self.threads = program, graph, threads
        self._traces = trace_sources(program)

    @in_default_mode
    def advance(self, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool = False) -> Chunk:
        """Run the whole chunk in one call of onnxruntime."""
        check_input(self.program, x)
        check_clock(self.program, check_state(self.program, state).step, len(x))
        if len(x) == 1:
            found = self._call(self._step, state, x[0], {name: drawn[0] for name, drawn in noise.items()}, trace)
            traces = {name: found[TRACE + name][None] for name in self._traces} if trace else {}
        else:
            found = self._call(self._loop, state, x, noise, trace)
            traces = {name: found[TRACE + name] for name in self._traces} if trace else {}
        arrays = {name: found[NEXT + name] for name in self.program.states}
        results = [found[f"result/{name}"] for name in self.program.logits] or [arrays[t] for t in self.program.totals]
        return Chunk(State(state.step + len(x), arrays, self.program), np.stack(results), None, traces)

    def _call(self, session: Any, state: State, x: Floats, noise: Mapping[str, Floats], trace: bool) -> dict[str, Any]:
        feeds: dict[str, Any] = {self.program.input: x, **noise, **state.arrays}
        if self.graph.clocked:
            feeds[CLOCK] = np.array([state.step], np.int64)
        wanted = [output.name for output in session.get_outputs() if trace or not output.name.startswith(TRACE)]
        try:
            return dict(zip(wanted, session.run(wanted, feeds), strict=True))
        except Exception as fault:
            raise self._fault("run", fault) from fault

    @cached_property
    def _step(self) -> Any:
        return self._session(step_model(self.program, self.graph))

    @cached_property
    def _loop(self) -> Any:
        return self._session(loop_model(self.program, self.graph))

    def _session(self, model: onnx.ModelProto) -> Any:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        providers = onnxruntime.get_available_providers()
        try:
            return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)
        except Exception as fault:  # onnxruntime's errors have no other common base class
            raise self._fault("load", fault) from fault

    def _fault(self, what: str, fault: Exception) -> AxonnxError:
        said = " ".join(str(fault).split())[:300]
        return AxonnxError(
            f"{self.program.name}: onnxruntime does not {what} it: {type(fault).__name__}: {said}. Use another engine"
        )


def step_model(program: Program, graph: StepGraph) -> onnx.ModelProto:
    """Return one step as a model: states in; states, results and traces out."""
    body = _body(program, graph, TRACE)
    return _model(body, graph)


def loop_model(program: Program, graph: StepGraph) -> onnx.ModelProto:
    """Return a model with a Scan over time around the step; states are inputs and outputs."""
    body = _body(program, graph, SEEN)
    states = [slot.name for slot in graph.states] + ([CLOCK] if graph.clocked else [])
    scanned = [graph.input, *graph.noises]
    for slot in scanned:  # inside the loop they hold one step
        _rename(body, slot.name, f"{slot.name}/now")
    left = [value.name for value in body.output]
    order = [NEXT + name for name in states]
    traces = [name for name in left if name not in order]
    _reorder(body, [*states, *(f"{slot.name}/now" for slot in scanned)], [*order, *traces])
    outer_traces = [TRACE + name.removeprefix(SEEN) for name in traces]
    scan = helper.make_node(
        "Scan",
        [*states, *(slot.name for slot in scanned)],
        [*(name + "/last" for name in order), *outer_traces],
        name="time",
        body=body,
        num_scan_inputs=len(scanned),
    )
    renamed = [helper.make_node("Identity", [f"{name}/last"], [name]) for name in order]
    kept = [value for value in body.input if value.name in states]
    inputs = [*kept, *(_value(slot.name, ["T", "B", *slot.shape]) for slot in scanned)]
    sizes = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim][1:] for value in body.output}
    outputs = [value for value in body.output if value.name in order]
    outputs += [_value(out, ["T", "B", *sizes[name]]) for name, out in zip(traces, outer_traces, strict=True)]
    return _model(helper.make_graph([scan, *renamed], "loop", inputs, outputs), graph)


def _body(program: Program, graph: StepGraph, trace_prefix: str) -> onnx.GraphProto:
    inputs = [_value(slot.name, ["B", *slot.shape]) for slot in (graph.input, *graph.states, *graph.noises)]
    outputs = [_value(NEXT + slot.name, ["B", *slot.shape]) for slot in graph.states]
    nodes = [node for node in graph.nodes if not node.output[0].startswith((TRACE, NOW_TRACE, NEXT + CLOCK))]
    if not graph.states:  # a binary network: the engine computes what follows the logits
        nodes = needed_nodes(nodes, [*program.logits, *(layer.spikes for layer in program.layers)])
    names = {name: (f"result/{name}", len(program.contract.classes)) for name in program.logits}
    for source, (output, classes) in names.items():
        nodes.append(helper.make_node("Identity", [source], [output]))
        outputs.append(_value(output, ["B", classes]))
    for name, source in trace_sources(program).items():
        nodes.append(helper.make_node("Identity", [source], [trace_prefix + name]))
        outputs.append(_value(trace_prefix + name, ["B", *program.buffers[source].shape]))
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    if graph.clocked:
        inputs.append(helper.make_tensor_value_info(CLOCK, TensorProto.INT64, [1]))
        outputs.append(helper.make_tensor_value_info(NEXT + CLOCK, TensorProto.INT64, [1]))
        constants.append(numpy_helper.from_array(np.ones(1, np.int64), "clock/one"))
        nodes.append(helper.make_node("Add", [CLOCK, "clock/one"], [NEXT + CLOCK]))
    return helper.make_graph(nodes, "step", inputs, outputs, initializer=constants)


def _rename(graph: onnx.GraphProto, old: str, new: str) -> None:
    for value in graph.input:
        value.name = new if value.name == old else value.name
    for node in graph.node:
        node.input[:] = [new if name == old else name for name in node.input]


def _reorder(graph: onnx.GraphProto, inputs: list[str], outputs: list[str]) -> None:
    """Put the states first, as the body of a Scan requires."""
    entering = {value.name: onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in graph.input}
    leaving = {value.name: onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in graph.output}
    del graph.input[:], graph.output[:]
    graph.input.extend(entering[name] for name in inputs)
    graph.output.extend(leaving[name] for name in outputs)


def _model(graph: onnx.GraphProto, step: StepGraph) -> onnx.ModelProto:
    used = sorted({node.op_type for node in step.nodes if node.domain == DOMAIN})
    return helper.make_model(
        graph,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", ONNX_OPSET), helper.make_opsetid(DOMAIN, VERSION)],
        functions=[function(name) for name in used],
    )


def _value(name: str, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, FLOAT, shape)


def stock_session(proto: onnx.ModelProto) -> Whole:
    """Return a function that runs a model as it is in stock onnxruntime: results by name from inputs by name."""
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: dict(zip(names, session.run(names, feeds), strict=True))


def stock_reference(proto: onnx.ModelProto) -> Whole:
    """Return a function that runs a model as it is in onnx.reference, which is slow."""
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(proto)
    return lambda feeds: dict(zip(evaluator.output_names, evaluator.run(None, feeds), strict=True))
