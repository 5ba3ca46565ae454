"""What values can reach a synapse: the largest magnitude, and how many bits there are behind the point.

Worked out on the captured graph, so it holds for every input that the contract admits, not only for those that were
tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.ops import operator_of
from axonnx.export.graph.capture import Captured, operands
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import UNITS

aten = torch.ops.aten


@dataclass(frozen=True)
class Range:
    """Multiples of 2^−bits whose magnitude is at most ``largest``."""

    largest: float
    bits: int

    @property
    def exact(self) -> bool:
        """Whether every such number is a float32."""
        return self.largest * 2.0**self.bits < UNITS


SPIKES = Range(1.0, 0)
FIRST = {"spikes": SPIKES, "delayed": Range(0.0, 0)}  # of states; a delay line joins its own with what arrives
Known = dict[fx.Node, "Range | None"]  # None: any real number


def input_ranges(captured: Captured, network_input: Range) -> dict[str, Range | None]:
    """For each weight tensor that a linear or conv operator reads: the range of the other operand."""
    known: Known = dict.fromkeys(captured.graph.nodes)
    first, *rest = captured.inputs
    known[first] = network_input
    for node, slot in zip(rest, (*captured.signature.states, *captured.signature.noises), strict=False):
        known[node] = FIRST.get(slot.field)
    found: dict[str, Range | None] = {}
    for node in captured.calls():
        value = _range(node, known, captured)
        known[node] = value if value is not None and value.exact else None
        if node.target in SYNAPSES:
            x, weight, *_ = operands(node)
            name = captured.constant_of(weight)
            if name is None:
                raise AxonnxError(
                    f"{captured.where(node)}: the weights of a linear map or convolution are worked out in compute(), "
                    f"so no grid can be laid over them; keep them in a layer"
                )
            found[name] = _either(found[name], known[x]) if name in found else known[x]
    return found


def _either(one: Range | None, other: Range | None) -> Range | None:
    """Return the range that holds for both: a synapse may be used twice."""
    if one is None or other is None:
        return None
    return Range(max(one.largest, other.largest), max(one.bits, other.bits))


SYNAPSES = (aten.linear.default, aten.conv2d.default)


def _same(node: fx.Node, known: Known) -> Range | None:
    return known[operands(node)[0]]


def _sum(node: fx.Node, known: Known) -> Range | None:
    """Return the range of a sum or a difference: of their magnitudes there is only one."""
    terms = [_operand(argument, known) for argument in operands(node)]
    if any(term is None for term in terms):
        return None
    return Range(sum(term.largest for term in terms if term), max(term.bits for term in terms if term))


def _product(node: fx.Node, known: Known) -> Range | None:
    terms = [_operand(argument, known) for argument in operands(node)]
    if len(terms) != 2 or terms[0] is None or terms[1] is None:
        return None
    return Range(terms[0].largest * terms[1].largest, terms[0].bits + terms[1].bits)


def _mean(node: fx.Node, known: Known, where: str) -> Range:
    before = _same(node, known)
    window = operands(node)[1]
    height, width = window[0], window[-1]
    if height * width & (height * width - 1):
        raise AxonnxError(
            f"{where}: an average over {height} × {width} pixels is not exact; pool over windows of a power of two "
            f"(AveragePool2d)"
        )
    if before is None:
        raise AxonnxError(
            f"{where}: an average over real numbers depends on the order of additions; pool spikes or event counts, "
            f"and currents with AveragePool2d.current"
        )
    found = Range(before.largest, before.bits + (height * width).bit_length() - 1)
    if not found.exact:
        raise AxonnxError(
            f"{where}: sums over {height} × {width} pixels of up to {before.largest:g} do not fit into float32; pool "
            f"over smaller windows, or clip the input"
        )
    return found


def _joined(node: fx.Node, known: Known) -> Range | None:
    parts = [known[part] for part in operands(node)[0]]
    if any(part is None for part in parts):
        return None
    return Range(max(part.largest for part in parts if part), max(part.bits for part in parts if part))


def _item(node: fx.Node, known: Known) -> Range | None:
    """One of a spike operator's outputs."""
    source, number = operands(node)
    op = operator_of(getattr(source, "target", None))
    return SPIKES if op is not None and OPS[op].outputs[number] == OPS[op].spikes else None


def _activity(node: fx.Node, known: Known) -> Range | None:
    before = _same(node, known)
    neurons = node.meta["val"].shape[-1]
    return None if before is None else Range(neurons * before.largest**2, 2 * before.bits)


RULES: dict[Any, Callable[[fx.Node, Known], Range | None]] = {
    aten.flatten.using_ints: _same,
    aten.view.default: _same,
    aten.reshape.default: _same,
    aten.unflatten.int: _same,
    aten.pad.default: _same,
    aten.constant_pad_nd.default: _same,
    aten.slice.Tensor: _same,
    aten.permute.default: _same,
    aten.transpose.int: _same,
    aten.unsqueeze.default: _same,
    aten.squeeze.dim: _same,
    aten.expand_as.default: _same,
    aten.max_pool2d.default: _same,
    aten.add.Tensor: _sum,
    aten.sub.Tensor: _sum,
    aten.mul.Tensor: _product,
    aten.cat.default: _joined,
}


def _any(node: fx.Node, known: Known) -> Range | None:
    """Any real number; of several outputs each is asked for by itself (``_item``)."""


# Of the operators that give anything but spikes alone.
SPIKE_OP_RANGES: dict[str, Callable[[fx.Node, Known], Range | None]] = {
    **{op.name: _any for op in OPS.values() if op.neurons},
    "RecurrentActivity": _activity,
    "PoolPairs": _any,
}


def _range(node: fx.Node, known: Known, captured: Captured) -> Range | None:
    if getattr(node.target, "__name__", "") == "getitem":
        return _item(node, known)
    op = operator_of(node.target)
    if op is not None:
        return SPIKES if OPS[op].outputs == (OPS[op].spikes,) else SPIKE_OP_RANGES[op](node, known)
    if node.target == aten.avg_pool2d.default:
        return _mean(node, known, captured.where(node))
    rule = RULES.get(node.target)
    return None if rule is None else rule(node, known)


def _operand(argument: Any, known: Known) -> Range | None:
    """Return a tensor's range, or that of a dyadic number in the graph."""
    if isinstance(argument, fx.Node):
        return known[argument]
    if isinstance(argument, int):
        return Range(abs(float(argument)), 0)
    return None
