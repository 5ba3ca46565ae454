"""A file in stock onnxruntime whose neurons are made to fire as told, so that every layer can be judged by itself.

The file's own step graph is kept, node by node. Only the spikes that its neurons decide are cut off from whoever hears
them, and given from outside instead: what each layer makes of the same input then shows, and no fault of one layer
hides in another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.model_file import ModelFile
from axonnx.runtime.format.names import CLOCK, NEXT, NOW_TRACE, SPIKES, TOTAL, TRACE
from axonnx.runtime.format.opset import DOMAIN, OPS
from axonnx.runtime.format.results import member_logits

Floats = NDArray[np.float32]
DECIDED = "decided/"


@dataclass
class Seen:
    """Membranes, variances and decided spikes of every layer, [(T,) B, …], and logits [members, B, classes]."""

    membranes: dict[str, Floats] = field(default_factory=dict)
    variances: dict[str, Floats] = field(default_factory=dict)
    decided: dict[str, Floats] = field(default_factory=dict)
    logits: Floats = field(default_factory=lambda: np.zeros((1, 0, 0), np.float32))


class ForcedFile:
    """One step of the file, run by onnxruntime."""

    def __init__(self, file: ModelFile) -> None:
        import onnxruntime

        self.contract: Contract = file.contract
        graph, self._outer = _step(file)
        self._membranes, self._variances, self._spikes = _cut(graph, file)
        self._inputs = [value.name for value in graph.input]
        model = helper.make_model(
            graph,
            ir_version=file.proto.ir_version,
            opset_imports=list(file.proto.opset_import),
            functions=list(file.proto.functions),
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        self._outputs = [value.name for value in graph.output]

    def run(self, x: Floats, spikes: Mapping[str, Floats], noise: Mapping[str, Floats]) -> Seen:
        """Run the whole of ``x`` with every layer firing ``spikes``."""
        if self.contract.kind == "binary":
            given = {
                self.contract.input.name: x,
                **noise,
                **{self._spikes[name]: spikes[name] for name in self._spikes},
            }
            return self._collect([self._call(given)], timed=False)
        state = self._at_rest(spikes, x.shape[1])
        found = []
        for t in range(len(x)):
            given = {self.contract.input.name: x[t], CLOCK: np.array([t], np.int64)}
            given |= {name: values[t] for name, values in noise.items()}
            given |= {value: spikes[layer][t] for layer, value in self._spikes.items()}
            given |= {SPIKES + layer: spikes[layer][t - 1] * (t > 0) for layer in self._spikes}
            found.append(self._call({**state, **given}))
            state = {name: found[-1].get(NEXT + name, value) for name, value in state.items()}
        return self._collect(found, timed=True)

    def _call(self, given: Mapping[str, Any]) -> dict[str, Floats]:
        feeds = {name: given[self._outer.get(name, name)] for name in self._inputs}
        return dict(zip(self._outputs, self._session.run(self._outputs, feeds), strict=True))

    def _at_rest(self, spikes: Mapping[str, Floats], batch: int) -> dict[str, Floats]:
        layers = {layer.name: layer for layer in self.contract.layers}
        return {
            state: np.zeros((batch, *layer.shape), np.float32) for layer in layers.values() for state in layer.states
        }

    def _collect(self, steps: list[dict[str, Floats]], timed: bool) -> Seen:
        def gather(name: str) -> Floats:
            return np.stack([step[name] for step in steps]) if timed else steps[0][name]

        seen = Seen(
            {layer: gather(name) for layer, name in self._membranes.items()},
            {layer: gather(name) for layer, name in self._variances.items()},
            {layer: gather(DECIDED + name) for layer, name in self._spikes.items()},
        )
        if timed:
            totals = [name for name in self._outputs if name.startswith(NEXT + TOTAL)]
            seen.logits = self.contract.logits_of(np.stack([steps[-1][name] for name in totals]), len(steps))
        else:
            seen.logits = member_logits(steps[0])
        return seen


def _step(file: ModelFile) -> tuple[onnx.GraphProto, dict[str, str]]:
    """Return the graph of one step, and what its inputs are called outside."""
    graph = onnx.GraphProto()
    scans = [node for node in file.proto.graph.node if node.op_type == "Scan"]
    if file.contract.kind == "binary" or file.contract.form == "step":
        graph.CopyFrom(file.proto.graph)
        return graph, {}
    if len(scans) != 1:
        raise AxonnxError(f"{file.name}: {len(scans)} Scan nodes; a sequence has one")
    graph.CopyFrom(helper.get_node_attr_value(scans[0], "body"))
    count = helper.get_node_attr_value(scans[0], "num_scan_inputs")
    inner = [value.name for value in graph.input][-count:]
    return graph, dict(zip(inner, list(scans[0].input)[-count:], strict=True))


def _cut(graph: onnx.GraphProto, file: ModelFile) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Make the spikes of all neurons inputs; the names of membranes, variances and spikes by layer."""
    membranes: dict[str, str] = {}
    variances: dict[str, str] = {}
    spikes: dict[str, str] = {}
    for node in graph.node:
        op = OPS[node.op_type] if node.domain == DOMAIN else None
        if op is not None and op.spikes is not None and op.membrane is not None:
            inputs, outputs = tuple(node.input), tuple(node.output)
            membranes[node.name] = op.value(op.membrane, inputs, outputs)
            if op.variance is not None:
                variances[node.name] = op.value(op.variance, inputs, outputs)
            spikes[node.name] = op.value(op.spikes, inputs, outputs)
            node.output[op.outputs.index(op.spikes)] = DECIDED + spikes[node.name]
    given = set(spikes.values())
    kept = [v for v in graph.output if v.name not in given and not v.name.startswith((TRACE, NOW_TRACE))]
    known = {value.name for value in kept}
    wanted = [*membranes.values(), *variances.values(), *(DECIDED + name for name in spikes.values())]
    extra = [name for name in dict.fromkeys(wanted) if name not in known]
    del graph.output[:]
    graph.output.extend([*kept, *(_any(name) for name in extra)])
    graph.input.extend(_any(name) for name in spikes.values())
    expected = [layer.name for layer in file.contract.layers if layer.op in OPS and OPS[layer.op].spikes]
    if sorted(expected) != sorted(spikes):
        raise AxonnxError(f"{file.name}: its contract names the neurons {sorted(expected)}, its graph {sorted(spikes)}")
    return membranes, variances, spikes


def _any(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
