"""The same recurrent network in onnxruntime's fastest form: layer after layer, input products of all steps at once.

For each layer: one GEMM over [T·B, inputs], then a Scan with the recurrent GEMM and the neuron, then the next layer. It
cannot stream, and it needs the whole sequence in memory; it is the form to beat.

``folded`` goes further and gives up our bits: the reset, −θ·o[t−1], is a diagonal of the recurrent matrix, and the
read-out's mean over time is one product, Σ_t c[t] o[t] with c[t] = (1 − β^(T−t)) / (1 − β) / T for t = 0 … T − 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from axonnx.export.collapsed import Collapsed

FLOAT = TensorProto.FLOAT


def session(model: onnx.ModelProto | str, threads: int = 1) -> Any:
    """Stock onnxruntime on so many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    source = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def layer_wise(collapsed: Collapsed, folded: int | None = None) -> onnx.ModelProto:
    """The model: events [T, B, inputs] to logits [B, classes]; ``folded`` for so many time steps and no other."""
    network: Any = collapsed.network
    graph = _Graph()
    graph.node("Shape", ["events"], "batch", start=1, end=2)
    graph.node("Shape", ["events"], "steps_int", start=0, end=1)
    graph.node("Cast", ["steps_int"], "steps", to=FLOAT)
    value = "events"
    for number, layer in enumerate(network.hidden):
        value = _layer(graph, f"layer{number}", value, layer.synapse, layer.neuron, folded is not None)
    if folded is None:
        _readout(graph, value, network.readout)
    else:
        _folded_readout(graph, value, network.readout, folded)
    inputs = [helper.make_tensor_value_info("events", FLOAT, ["T", "B", network.hidden[0].synapse.weight.shape[1]])]
    outputs = [helper.make_tensor_value_info("logits", FLOAT, ["B", len(network.readout.bias)])]
    made = helper.make_graph(graph.nodes, "layer_wise", inputs, outputs, initializer=graph.constants)
    return helper.make_model(made, ir_version=10, opset_imports=[helper.make_opsetid("", 20)])


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def product(self, name: str, value: str, weight: Any, bias: Any) -> str:
        """W·x + b over all steps: [T, B, in] → [T, B, out]."""
        w = self.constant(f"{name}/weight", weight.numpy().T.copy())
        b = self.constant(f"{name}/bias", bias.numpy())
        return self.node("Add", [self.node("MatMul", [value, w], f"{name}/product"), b], f"{name}/current")

    def zeros(self, name: str, size: int) -> str:
        dims = self.constant(f"{name}/dims", np.array([size], np.int64))
        shape = self.node("Concat", ["batch", dims], f"{name}/shape", axis=0)
        return self.node("ConstantOfShape", [shape], name, value=helper.make_tensor("zero", FLOAT, [1], [0.0]))


def _layer(graph: _Graph, name: str, value: str, synapse: Any, neuron: Any, folded: bool) -> str:
    size = synapse.weight.shape[0]
    current = graph.product(name, value, synapse.weight, synapse.bias)
    reset = [
        helper.make_node("Mul", [f"{name}/threshold", "o"], ["reset"]),
        helper.make_node("Sub", ["charged", "reset"], ["h_next"]),
    ]
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["o", f"{name}/r"], ["heard"]),
            helper.make_node("Add", ["now", "heard"], ["arriving"]),
            helper.make_node("Mul", [f"{name}/decay", "h"], ["decayed"]),
            helper.make_node("Add", ["decayed", "arriving"], ["h_next" if folded else "charged"]),
            *([] if folded else reset),
            helper.make_node("GreaterOrEqual", ["h_next", f"{name}/threshold"], ["fires"]),
            helper.make_node("Cast", ["fires"], ["o_next"], to=FLOAT),
            helper.make_node("Identity", ["o_next"], ["seen"]),
        ],
        f"{name}/step",
        [helper.make_tensor_value_info(key, FLOAT, ["B", size]) for key in ("h", "o", "now")],
        [helper.make_tensor_value_info(key, FLOAT, ["B", size]) for key in ("h_next", "o_next", "seen")],
    )
    recurrent = neuron.recurrent_weight.numpy().T.copy()
    if folded:
        recurrent -= np.diag(np.broadcast_to(neuron.threshold.numpy(), size).astype(np.float32))
    graph.constant(f"{name}/r", recurrent)
    graph.constant(f"{name}/decay", neuron.decay.numpy())
    graph.constant(f"{name}/threshold", neuron.threshold.numpy())
    states = [graph.zeros(f"{name}/h0", size), graph.zeros(f"{name}/o0", size)]
    outputs = [f"{name}/h", f"{name}/o", f"{name}/spikes"]
    graph.nodes.append(helper.make_node("Scan", [*states, current], outputs, body=body, num_scan_inputs=1))
    return outputs[2]


def _readout(graph: _Graph, value: str, readout: Any) -> None:
    size = len(readout.bias)
    current = graph.product("readout", value, readout.weight, readout.bias)
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["readout/decay", "h"], ["decayed"]),
            helper.make_node("Add", ["decayed", "now"], ["h_next"]),
            helper.make_node("Add", ["s", "h_next"], ["s_next"]),
        ],
        "readout/step",
        [helper.make_tensor_value_info(key, FLOAT, ["B", size]) for key in ("h", "s", "now")],
        [helper.make_tensor_value_info(key, FLOAT, ["B", size]) for key in ("h_next", "s_next")],
    )
    graph.constant("readout/decay", readout.decay.numpy())
    states = [graph.zeros("readout/h0", size), graph.zeros("readout/s0", size)]
    graph.nodes.append(
        helper.make_node("Scan", [*states, current], ["readout/h", "readout/s"], body=body, num_scan_inputs=1)
    )
    graph.node("Div", ["readout/s", "steps"], "logits")


def _folded_readout(graph: _Graph, value: str, readout: Any, steps: int) -> None:
    decay = np.float64(readout.decay.numpy())
    weights = (1 - decay ** np.arange(steps, 0, -1)) / (1 - decay) / steps
    flat = graph.node("Reshape", [value, graph.constant("readout/rows", np.array([steps, -1]))], "readout/flat")
    row = graph.constant("readout/steps", weights.astype(np.float32)[None])
    summed = graph.node("MatMul", [row, flat], "readout/summed")
    shape = graph.constant("readout/columns", np.array([-1, readout.weight.shape[1]]))
    spikes = graph.node("Reshape", [summed, shape], "readout/spikes")
    w = graph.constant("readout/weight", readout.weight.numpy().T.copy())
    b = graph.constant("readout/bias", (readout.bias.numpy() * weights.sum()).astype(np.float32))
    graph.node("Gemm", [spikes, w, b], "logits")
