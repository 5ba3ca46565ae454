"""What a contract says of its layers, against the nodes of the graph: neither export's code nor the run is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from axonnx.runtime.format.contract import LayerContract
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import Neurons, Program

STATED = ("threshold", "decay")


def wrong_statements(program: Program) -> Iterator[str]:
    """Every statement about a layer that is not what its node computes with."""
    nodes = {node.layer: node for node in program.instructions if isinstance(node, Neurons)}
    for layer in program.contract.layers:
        node = nodes.get(layer.name)
        held = _without_node(layer) if node is None else _of_node(node, program)
        for key in ("op", "reset", *STATED):
            stated, computes = getattr(layer, key), held.get(key)
            if stated != computes:
                yield f"layer {layer.name!r}: the contract states {key} {stated!r}, its node has {computes!r}"
    named = {layer.name for layer in program.contract.layers}
    yield from (f"layer {name!r} is in the graph and not in the contract" for name in nodes.keys() - named)


def _without_node(layer: LayerContract) -> dict[str, Any]:
    """A read-out without memory, or a delay line, by the frames that it keeps."""
    return {"op": "DelayLine" if layer.states == (f"delayed/{layer.name}",) else "Gemm"}


def _of_node(node: Neurons, program: Program) -> dict[str, Any]:
    parameters = dict(node.parameters)
    if node.op == "LeakyCurrent":  # a layer by itself
        parameters["decay"] = parameters["synaptic_decay"]
    spans = {key: _span(program.constants[parameters[key]]) for key in STATED if key in parameters}
    return {"op": node.op, "reset": OPS[node.op].reset, **spans}


def _span(values: np.ndarray) -> float | tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return low if low == high else (low, high)
