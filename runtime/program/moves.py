"""Rules for the operators that only move data: their effect on one sample, as numpy arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import onnx

from axonnx.runtime.format.names import CLOCK
from axonnx.runtime.format.values import REAL, Values, joined
from axonnx.runtime.program.instructions import Buffer, Move, Shape, StepRow

if TYPE_CHECKING:
    from axonnx.runtime.program.compilation import Compilation


def _emit(c: Compilation, node: onnx.NodeProto, sources: list[Buffer], shape: Shape, how: Any, values: Values) -> None:
    kind: Any = node.op_type
    c.write(node.output[0], shape, values)
    c.emit(Move(node.name, tuple(source.name for source in sources), (node.output[0],), kind, how))


def _reshape(c: Compilation, node: onnx.NodeProto) -> None:
    if c.attributes(node, {"allowzero": 0})["allowzero"]:
        raise c.fault(node, "allowzero is set; expected 0, because a shape of 0 means the batch")
    x, shape = c.buffer(node, 0), c.integers(node, 1)
    if not shape or shape[0] != 0 or min(shape[1:], default=1) < 1 or math.prod(shape[1:]) != x.size:
        raise c.fault(
            node, f"cannot reshape {list(x.shape)} to {shape}; expected [0, …] with the same number of values"
        )
    _emit(c, node, [x], tuple(shape[1:]), tuple(shape[1:]), x.values)


def _concat(c: Compilation, node: onnx.NodeProto) -> None:
    parts = [c.buffer(node, number) for number in range(len(node.input))]
    rank = len(parts[0].shape)
    axis: Any = c.attributes(node, {"axis": 0})["axis"]
    axis = axis + rank + 1 if axis < 0 else axis
    rest = {tuple(size for at, size in enumerate(part.shape, 1) if at != axis) for part in parts}
    if not 1 <= axis <= rank or len(rest) != 1 or len({len(part.shape) for part in parts}) != 1:
        raise c.fault(node, f"shapes {[list(part.shape) for part in parts]} cannot be joined along axis {axis}")
    shape = list(parts[0].shape)
    shape[axis - 1] = sum(part.shape[axis - 1] for part in parts)
    _emit(c, node, parts, tuple(shape), axis - 1, joined([part.values for part in parts]))


def _pad(c: Compilation, node: onnx.NodeProto) -> None:
    mode = c.attributes(node, {"mode": b"constant"})["mode"]
    x, ends = c.buffer(node, 0), c.integers(node, 1)
    rank = len(x.shape) + 1
    pairs = tuple(zip(ends[1:rank], ends[rank + 1 :], strict=False))
    if mode != b"constant" or len(ends) != 2 * rank or min(ends) < 0 or ends[0] or ends[rank]:
        raise c.fault(node, f"pads are {ends}; only zeros around each sample are supported")
    shape = tuple(before + size + after for size, (before, after) in zip(x.shape, pairs, strict=True))
    _emit(c, node, [x], shape, pairs, x.values)


def _slice(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    x = c.buffer(node, 0)
    starts, ends, axes, steps = (c.integers(node, number) for number in range(1, 5))
    if not len(starts) == len(ends) == len(axes) == len(steps) == len({axis % (len(x.shape) + 1) for axis in axes}):
        raise c.fault(node, f"starts {starts}, ends {ends}, axes {axes} and steps {steps} have different lengths")
    cut = [slice(None)] * len(x.shape)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = axis + len(x.shape) + 1 if axis < 0 else axis
        if not 1 <= axis <= len(x.shape) or step < 1:
            raise c.fault(
                node, f"takes axis {axis} in steps of {step}; the batch cannot be sliced, and steps must be positive"
            )
        cut[axis - 1] = slice(start, end, step)
    shape = tuple(len(range(size)[part]) for size, part in zip(x.shape, cut, strict=True))
    if min(shape, default=1) < 1:
        raise c.fault(node, f"nothing is left of inputs of shape {list(x.shape)}")
    _emit(c, node, [x], shape, tuple(cut), x.values)


def _transpose(c: Compilation, node: onnx.NodeProto) -> None:
    order: Any = c.attributes(node, {"perm": []})["perm"]
    x = c.buffer(node, 0)
    if sorted(order) != list(range(len(x.shape) + 1)) or order[0] != 0:
        raise c.fault(node, f"axes are {order}; expected the batch first and every axis once")
    inner = tuple(axis - 1 for axis in order[1:])
    _emit(c, node, [x], tuple(x.shape[axis] for axis in inner), inner, x.values)


def _shape(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    c.shapes[node.output[0]] = c.buffer(node, 0).shape


def _expand(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    x, shape = c.buffer(node, 0), c.shapes.get(node.input[1])
    if shape is None or len(shape) != len(x.shape) or any(a not in (1, b) for a, b in zip(x.shape, shape, strict=True)):
        raise c.fault(node, f"inputs of shape {list(x.shape)} cannot be expanded to the shape {node.input[1]!r}")
    _emit(c, node, [x], shape, shape, x.values)


def _gather(c: Compilation, node: onnx.NodeProto) -> None:
    axis = c.attributes(node, {"axis": 0})["axis"]
    table = c.constant(node, 0)
    if node.input[1] != CLOCK or not c.graph.clocked or axis != 0 or c.constants[table].ndim < 2:
        raise c.fault(node, "expected a row of a constant table, selected by the time step")
    c.write(node.output[0], c.constants[table].shape[1:], REAL)
    c.emit(StepRow(node.name, (), (node.output[0],), table))


MOVES: dict[str, tuple[int, int, Callable[[Compilation, onnx.NodeProto], None]]] = {  # as ``STANDARD_RULES``
    "Reshape": (2, 2, _reshape),
    "Concat": (1, 2**10, _concat),
    "Pad": (2, 2, _pad),
    "Slice": (5, 5, _slice),
    "Transpose": (1, 1, _transpose),
    "Shape": (1, 1, _shape),
    "Expand": (2, 2, _expand),
    "Gather": (2, 2, _gather),
}
