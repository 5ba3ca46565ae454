"""From the captured step to ONNX nodes: one small rule for each torch operator, and a refusal for every other.

What has a rule here computes the same bits in every runtime: sums over exact grids, element-wise arithmetic in a
fixed order, and moves of data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from torch import fx

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.ops import operator_of
from axonnx.export.graph.capture import Captured, constant, operands
from axonnx.models import Network
from axonnx.runtime.format.opset import DOMAIN, OPS

aten = torch.ops.aten


@dataclass
class Body:
    """Nodes and constants of one time step (or of a whole binary network), and how values are called."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    used_ops: set[str] = field(default_factory=set)
    prefix: str = ""

    def emit(self, op: str, inputs: list[str], outputs: list[str], name: str, **attributes: Any) -> None:
        """One more node."""
        domain = DOMAIN if op in OPS else ""
        if domain:
            self.used_ops.add(op)
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, domain=domain, **attributes))

    def constant(self, name: str, value: NDArray[Any]) -> str:
        """Return a constant of the graph; the same name is the same value."""
        if name in self.constants:
            assert np.array_equal(self.constants[name], value), name
        self.constants[name] = value
        return name

    def initialisers(self) -> list[onnx.TensorProto]:
        """Return the constants as ONNX tensors."""
        return [numpy_helper.from_array(value, name) for name, value in self.constants.items()]


class Translation:
    """Walks a captured step and fills a ``Body``."""

    def __init__(self, captured: Captured, network: Network, body: Body) -> None:
        self.captured, self.network, self.body = captured, network, body
        self.values: dict[fx.Node, str] = {}
        self.done: dict[Any, fx.Node] = {}
        self.names: set[str] = set()
        self.outputs: dict[tuple[fx.Node, int], str] = {}
        ops = [(captured.layer(node), operator_of(node.target)) for node in captured.calls()]
        self.of_neurons = {layer for layer, op in ops if op in NEURONS}
        self.firing = {layer for layer, op in ops if op is not None and OPS[op].spikes is not None}

    def run(self, inputs: list[str], wanted: list[fx.Node]) -> list[str]:
        """Translate what ``wanted`` needs; the names of its values."""
        for node, name in zip(self.captured.inputs, inputs, strict=True):
            self.values[node] = name
        needed = _needed(wanted)
        for node in self.captured.calls():
            if node in needed and not _is_size(node):
                self._call(node)
        return [self.value(node) for node in wanted]

    def value(self, argument: Any) -> str:
        """Return the ONNX name of an operand: a value, a buffer or a number."""
        if not isinstance(argument, fx.Node):
            number = float(argument)
            return self.body.constant(f"number/{number!r}", np.array(number, np.float32))
        if argument.name in self.captured.constants:
            name = self.captured.constants[argument.name]
            tensor = constant(self.network, name).detach().cpu().numpy()
            return self.body.constant(self.body.prefix + name, tensor)
        return self.values[argument]

    def name(self, node: fx.Node, op: str) -> str:
        """Choose a unique node name: a layer's neurons, or its synapses if it has no neurons, have the layer's own."""
        layer = self.captured.layer(node)
        base = self.body.prefix + (layer or "network")
        named = (op in NEURONS and not self._beside(op, layer)) or (
            op in ("Gemm", "Conv") and layer not in self.of_neurons
        )
        first = base if named else f"{base}/{op}"
        name, number = first, 1
        while name in self.names:
            number += 1
            name = f"{first}/{op}{number}" if first == base else f"{first}{number}"
        self.names.add(name)
        return name

    def _beside(self, op: str, layer: str) -> bool:
        """Whether this is the synaptic current of neurons, whose name is theirs."""
        return OPS[op].spikes is None and layer in self.firing

    def _call(self, node: fx.Node) -> None:
        key = _key(node)
        if key in self.done:  # the same operator on the same operands: computed once
            first = self.done[key]
            self.values[node] = self.values[first]
            self.outputs |= {(node, n): out for (source, n), out in self.outputs.items() if source is first}
            return
        self.done[key] = node
        spike_op = operator_of(node.target)
        if spike_op is not None:
            self._spike_op(node, spike_op)
        elif _is_item(node):
            source, number = operands(node)
            self.values[node] = self.outputs[source, number]
        else:
            self.values[node] = RULES[node.target](self, node)

    def _spike_op(self, node: fx.Node, op: str) -> None:
        name = self.name(node, op)
        outputs = [f"{name}:{output}" for output in OPS[op].outputs]
        self.body.emit(op, [self.value(argument) for argument in operands(node)], outputs, name)
        self.values[node] = outputs[0]
        self.outputs |= {(node, number): output for number, output in enumerate(outputs)}

    def plain(self, node: fx.Node, op: str, inputs: list[str], **attributes: Any) -> str:
        """Emit a standard operator with one output."""
        name = self.name(node, op)
        output = f"{name}:out"
        self.body.emit(op, inputs, [output], name, **attributes)
        return output

    def integers(self, values: list[int]) -> str:
        """Return a constant vector of integers."""
        text = "_".join(str(value) for value in values)
        return self.body.constant(f"integers/{text}", np.array(values, np.int64))


Rule = Callable[[Translation, fx.Node], str]
NEURONS = {op.name for op in OPS.values() if op.neurons}


def _shape(node: Any) -> list[int]:
    """Return the shape without the batch, which stays open."""
    return [int(size) for size in node.meta["val"].shape[1:]]


def _rank(node: Any) -> int:
    return len(node.meta["val"].shape)


def _linear(t: Translation, node: fx.Node) -> str:
    if _rank(operands(node)[0]) != 2:
        raise AxonnxError(
            f"{t.captured.where(node)}: linear synapses on {_rank(operands(node)[0])} axes; flatten to [B, features]"
        )
    return t.plain(node, "Gemm", [t.value(argument) for argument in operands(node) if argument is not None], transB=1)


def _conv2d(t: Translation, node: fx.Node) -> str:
    """Translate a convolution, and a reshape that changes nothing.

    onnxruntime joins a convolution with the sum or the product behind it: it begins to add up at the other summand
    (a membrane, a residual stream), or multiplies the weights by the factor, and both leave the grid. It joins
    nothing across a reshape, which costs no time.
    """
    x, weight, bias, stride, padding, dilation, groups = (*operands(node), *(None,) * 7)[:7]
    inputs = [t.value(argument) for argument in (x, weight, bias) if argument is not None]
    stride, padding = stride or [1, 1], padding or [0, 0]
    out = t.plain(
        node,
        "Conv",
        inputs,
        strides=list(stride),
        pads=[*padding, *padding],
        dilations=list(dilation or [1, 1]),
        group=groups or 1,
    )
    return t.plain(node, "Reshape", [out, t.integers([0, *_shape(node)])])


def _binary(op: str) -> Rule:
    def rule(t: Translation, node: fx.Node) -> str:
        return t.plain(node, op, [t.value(argument) for argument in operands(node)[:2]])

    return rule


def _average_pool(t: Translation, node: fx.Node) -> str:
    x, window, *rest = operands(node)
    stride = rest[0] if rest and rest[0] else window
    if any(rest[1:]) or list(stride) != list(window):
        raise AxonnxError(
            f"{t.captured.where(node)}: average pooling with padding or overlapping windows has no exact form here; "
            f"pool without them (AveragePool2d)"
        )
    return t.plain(node, "AveragePool", [t.value(x)], kernel_shape=list(window), strides=list(stride))


def _max_pool(t: Translation, node: fx.Node) -> str:
    x, window, stride, padding, dilation, ceil = (*operands(node), *(None,) * 4)[:6]
    plain = all(value in (None, [], [usual] * 2) for value, usual in ((padding, 0), (dilation, 1))) and not ceil
    sides = _shape(x)[-2:]
    if not plain or list(stride or window) != list(window) or any(a % b for a, b in zip(sides, window, strict=True)):
        raise AxonnxError(
            f"{t.captured.where(node)}: a maximum over windows of {list(window)} on inputs of {sides}; windows must "
            f"stand side by side and cover them, without padding: nn.MaxPool2d(window)"
        )
    return t.plain(node, "MaxPool", [t.value(x)], kernel_shape=list(window), strides=list(window))


def _reshape(t: Translation, node: fx.Node) -> str:
    return t.plain(node, "Reshape", [t.value(operands(node)[0]), t.integers([0, *_shape(node)])])


def _flatten(t: Translation, node: fx.Node) -> str:
    if _shape(node) == _shape(operands(node)[0]):
        return t.value(operands(node)[0])
    return _reshape(t, node)


def _cat(t: Translation, node: fx.Node) -> str:
    parts, axis = (*operands(node), 0)[:2]
    return t.plain(node, "Concat", [t.value(part) for part in parts], axis=int(axis) % _rank(node))


def _pad(t: Translation, node: fx.Node) -> str:
    x, pads, *by = operands(node)
    if any(value not in (0, None, "constant") for value in by):
        raise AxonnxError(f"{t.captured.where(node)}: padding by {by[-1]!r}; only padding by zeros has a form here")
    rank = _rank(node)
    pairs = [(0, 0)] * (rank - len(pads) // 2) + [(pads[i], pads[i + 1]) for i in range(len(pads) - 2, -1, -2)]
    ends = t.integers([before for before, _ in pairs] + [after for _, after in pairs])
    return t.plain(node, "Pad", [t.value(x), ends])


def _slice(t: Translation, node: fx.Node) -> str:
    x, axis, start, end, step = (*operands(node), *(None,) * 5)[:5]
    if _shape(node) == _shape(x) and axis != 0:
        return t.value(x)
    if axis in (0, None):  # of all samples: any other slice of the batch was refused when it was captured
        return t.value(x)
    bounds = [t.integers([int(value)]) for value in (start or 0, 2**62 if end is None else end, axis, step or 1)]
    return t.plain(node, "Slice", [t.value(x), *bounds])


def _permute(t: Translation, node: fx.Node) -> str:
    x, order = operands(node)
    return t.plain(node, "Transpose", [t.value(x)], perm=[int(axis) % _rank(node) for axis in order])


def _expand_as(t: Translation, node: fx.Node) -> str:
    x, like = operands(node)
    if _shape(x) == _shape(like):
        return t.value(x)
    shape = t.plain(node, "Shape", [t.value(like)])
    return t.plain(node, "Expand", [t.value(x), shape])


def _index_select(t: Translation, node: fx.Node) -> str:
    table, axis, index = operands(node)
    return t.plain(node, "Gather", [t.value(table), t.value(index)], axis=int(axis))


RULES: dict[Any, Rule] = {
    aten.linear.default: _linear,
    aten.conv2d.default: _conv2d,
    aten.add.Tensor: _binary("Add"),
    aten.sub.Tensor: _binary("Sub"),
    aten.mul.Tensor: _binary("Mul"),
    aten.avg_pool2d.default: _average_pool,
    aten.max_pool2d.default: _max_pool,
    aten.flatten.using_ints: _flatten,
    aten.view.default: _reshape,
    aten.reshape.default: _reshape,
    aten.unflatten.int: _reshape,
    aten.cat.default: _cat,
    aten.pad.default: _pad,
    aten.constant_pad_nd.default: _pad,
    aten.slice.Tensor: _slice,
    aten.permute.default: _permute,
    aten.expand_as.default: _expand_as,
    aten.index_select.default: _index_select,
}


def check_operators(captured: Captured) -> None:
    """Refuse a step that needs an operator without a rule here."""
    output = next(node for node in captured.graph.nodes if node.op == "output")
    needed = _needed(output.all_input_nodes)
    for node in captured.calls():
        known = node.target in RULES or operator_of(node.target) is not None or _is_item(node) or _is_size(node)
        if node in needed and not known:
            raise AxonnxError(
                f"{captured.where(node)}: the operator {node.target} has no form that gives the same bits in every "
                f"runtime. Build the step of axonnx.models layers, sums, reshapes, concatenations, zero padding, "
                f"slices, maxima and averages over windows side by side ({len(RULES) + len(OPS)} operators are "
                f"known)"
            )
        if node in needed and node.kwargs:  # the rules read positions alone
            raise AxonnxError(
                f"{captured.where(node)}: {node.target} with {dict(node.kwargs)} has no exact form here; write it as "
                f"several plain operators"
            )


def _is_item(node: fx.Node) -> bool:
    """One of several outputs."""
    return getattr(node.target, "__name__", "") == "getitem"


def _is_size(node: fx.Node) -> bool:
    """Return the number of samples, which no rule asks for."""
    return isinstance(node.meta.get("val"), torch.SymInt)


def _needed(wanted: list[fx.Node]) -> set[fx.Node]:
    needed, todo = set(), list(wanted)
    while todo:
        node = todo.pop()
        if node not in needed:
            needed.add(node)
            todo.extend(node.all_input_nodes)
    return needed


def _key(node: fx.Node) -> Any:
    return (node.target, _freeze(operands(node)), _freeze(node.kwargs))


def _freeze(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_freeze(part) for part in value)
    return tuple(sorted(value.items())) if isinstance(value, dict) else value
