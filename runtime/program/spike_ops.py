"""Rules for the spike operators; operands and constants have the names of the operator's definition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import onnx

from axonnx.runtime.format.names import NEXT
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import REAL, SPIKES, graded
from axonnx.runtime.program.instructions import Neurons, PoolPairs, RecurrentActivity, Shape

if TYPE_CHECKING:
    from axonnx.runtime.program.compilation import Compilation


def _neurons(c: Compilation, node: onnx.NodeProto) -> None:
    op = OPS[node.op_type]
    c.attributes(node, {})
    operands = {name: c.buffer(node, number) for number, name in enumerate(op.operands)}
    parameters = {name: c.constant(node, number) for number, name in enumerate(op.parameters, len(operands))}
    shape = operands["current"].shape
    for name, buffer in operands.items():
        if buffer.shape != shape:
            raise c.fault(node, f"its {name} has shape {list(buffer.shape)}, but its current has {list(shape)}")
    _check_parameters(c, node, parameters, shape)
    for name, output in zip(op.outputs, node.output, strict=True):
        c.write(output, shape, SPIKES if name == op.spikes else REAL)
    names = {name: buffer.name for name, buffer in operands.items()}
    c.emit(Neurons(node.name, tuple(names.values()), tuple(node.output), op.name, _layer(c, node), names, parameters))


def _check_parameters(c: Compilation, node: onnx.NodeProto, parameters: dict[str, str], shape: Shape) -> None:
    for name, constant in parameters.items():
        given = c.constants[constant].shape
        try:
            fits = np.broadcast_shapes(given, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise c.fault(node, f"its {name} has shape {list(given)}, but its neurons have {list(shape)}")


def _layer(c: Compilation, node: onnx.NodeProto) -> str:
    """Return the contract's layer of a node, found by the state that it writes, or by its own name."""
    for layer in c.file.contract.layers:
        if any(NEXT + state in node.output for state in layer.states):
            return layer.name
    named = [layer.name for layer in c.file.contract.layers if f"{node.name}/".startswith(f"{layer.name}/")]
    return max(named, key=len, default=node.name)


def _recurrent_activity(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    x = c.buffer(node, 0)
    if not x.values.dyadic or len(x.shape) != 1:
        raise c.fault(node, f"expected spikes or counts of a layer [B, neurons], but got {x.values} {list(x.shape)}")
    c.write(node.output[0], x.shape, graded(x.size * x.values.largest**2, 2 * x.values.bits))
    c.emit(RecurrentActivity(node.name, (x.name,), (node.output[0],)))


def _pool_pairs(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    x = c.buffer(node, 0)
    if len(x.shape) != 3 or x.shape[1] % 2 or x.shape[2] % 2:
        raise c.fault(node, f"squares of 2 × 2 do not divide inputs of {list(x.shape)}")
    values = graded(x.values.largest, x.values.bits + 2) if x.values.dyadic else REAL
    c.write(node.output[0], (x.shape[0], x.shape[1] // 2, x.shape[2] // 2), values)
    c.emit(PoolPairs(node.name, (x.name,), (node.output[0],)))


SPIKE_RULES: dict[str, Callable[[Compilation, onnx.NodeProto], None]] = {
    **{op.name: _neurons for op in OPS.values() if op.neurons},
    "RecurrentActivity": _recurrent_activity,
    "PoolPairs": _pool_pairs,
}
