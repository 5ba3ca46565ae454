"""One rule for each operator that a step may contain; it converts the node to an instruction or refuses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from axonnx.runtime.format.certificates import Synapse, check_bound, check_synapse, exact_together, joint_units
from axonnx.runtime.format.names import CLOCK, NEXT
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import REAL, SPIKES, UNITS, Values, graded, joined, product, total
from axonnx.runtime.format.widths import NotCertifiedError, bits_of, largest_membrane, most_steps, unit_bits
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Buffer,
    Conv,
    Floats,
    Linear,
    MaxPool,
    Move,
    Neurons,
    PoolPairs,
    RecurrentActivity,
    Shape,
    StepRow,
)

if TYPE_CHECKING:
    from axonnx.runtime.program.compilation import Compilation


MOST_SIDE = 2**16  # pixels

Rule = Callable[["Compilation", onnx.NodeProto], None]


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


def _synapse(c: Compilation, node: onnx.NodeProto, weight: str, bias: str | None, x: Values) -> Synapse:
    stated = c.certificates.get(weight)
    if stated is None:
        raise c.fault(node, f"the contract has no certificate for its weights {weight!r}. Export the network again")
    values = None if bias is None else c.constants[bias]
    synapse = Synapse(stated.name, c.constants[weight], values, x, stated)
    check_synapse(synapse, c.where)
    return synapse


def _sums(c: Compilation, node: onnx.NodeProto) -> Values:
    """Return the values of a synapse's sums; where neurons compute in floats nobody needs to know more."""
    synapse = c.sums[node.output[0]]
    if not c.integers_only:
        return REAL
    bits = synapse.stated.grid + synapse.stated.input_bits
    return graded(synapse.units() * 2.0**-bits, max(bits, 0))


def _weights(c: Compilation, node: onnx.NodeProto) -> tuple[str, str | None, Floats]:
    weight = c.constant(node, 1)
    bias = c.constant(node, 2) if len(node.input) > 2 and node.input[2] else None
    if c.constants[weight].ndim < 2:
        raise c.fault(node, f"its weights have the shape {list(c.constants[weight].shape)}; expected [out, in, …]")
    rows = len(c.constants[weight])
    if bias is not None and c.constants[bias].shape != (rows,):
        raise c.fault(node, f"its bias has the shape {list(c.constants[bias].shape)}; expected [{rows}]")
    return weight, bias, c.constants[weight]


def _gemm(c: Compilation, node: onnx.NodeProto) -> None:
    usual = {"transB": 0, "transA": 0, "alpha": 1.0, "beta": 1.0}
    given = c.attributes(node, usual)
    if given != {**usual, "transB": 1}:
        raise c.fault(node, f"attributes are {given}; only W·x + b with transB = 1 is supported")
    x = c.buffer(node, 0)
    weight, bias, values = _weights(c, node)
    if len(x.shape) != 1 or values.ndim != 2 or values.shape[1] != x.shape[0]:
        raise c.fault(node, f"weights {list(values.shape)} do not fit inputs {list(x.shape)}")
    c.sums[node.output[0]] = _synapse(c, node, weight, bias, x.values)
    c.write(node.output[0], (len(values),), _sums(c, node))
    c.emit(Linear(node.name, (x.name,), (node.output[0],), weight, bias))


def _conv(c: Compilation, node: onnx.NodeProto) -> None:
    usual = {
        "strides": [1, 1],
        "pads": [0, 0, 0, 0],
        "dilations": [1, 1],
        "group": 1,
        "kernel_shape": None,
        "auto_pad": b"NOTSET",
    }
    given: dict[str, Any] = c.attributes(node, usual)
    x = c.buffer(node, 0)
    weight, bias, values = _weights(c, node)
    group = given["group"]
    fits = len(x.shape) == 3 and values.ndim == 4 and values.shape[1] * group == x.shape[0] and len(values) % group == 0
    if not fits or given["auto_pad"] != b"NOTSET" or given["kernel_shape"] not in (None, list(values.shape[2:])):
        raise c.fault(
            node, f"weights {list(values.shape)} in {group} groups do not fit inputs {list(x.shape)} in two dimensions"
        )
    strides, pads, dilations = (
        _sides(c, node, key, given[key], length, least)
        for key, length, least in (("strides", 2, 1), ("pads", 4, 0), ("dilations", 2, 1))
    )
    sizes = [
        (x.shape[1 + axis] + pads[axis] + pads[2 + axis] - dilations[axis] * (values.shape[2 + axis] - 1) - 1)
        // strides[axis]
        + 1
        for axis in (0, 1)
    ]
    if min(sizes) < 1:
        raise c.fault(
            node,
            f"a kernel of {list(values.shape[2:])} does not fit an input of {list(x.shape)} with pads {list(pads)}",
        )
    c.sums[node.output[0]] = _synapse(c, node, weight, bias, x.values)
    c.write(node.output[0], (len(values), sizes[0], sizes[1]), _sums(c, node))
    how = (strides[0], strides[1]), (pads[0], pads[1], pads[2], pads[3]), (dilations[0], dilations[1])
    c.emit(Conv(node.name, (x.name,), (node.output[0],), weight, bias, *how, group))


def _sides(c: Compilation, node: onnx.NodeProto, key: str, given: Any, length: int, least: int) -> tuple[int, ...]:
    """Return ``length`` integers from ``least`` to the largest side of an image; refuse others."""
    if len(given) != length or not all(least <= number <= MOST_SIDE for number in given):
        raise c.fault(node, f"{key} is {list(given)}; expected {length} integers from {least} to {MOST_SIDE}")
    return tuple(given)


def _arithmetic(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    names = [c.resolve(name) for name in node.input]
    if node.op_type == "Mul" and names[0] == names[1] and c.buffer(node, 0).values == SPIKES:
        c.aliases[node.output[0]] = names[0]  # 0² = 0 and 1² = 1
        return
    shapes, values = zip(*(_operand(c, node, number) for number in (0, 1)), strict=True)
    kind: Any = node.op_type
    c.write(node.output[0], _broadcast(c, node, shapes), product(*values) if kind == "Mul" else total(list(values)))
    exact = kind == "Add" and _is_one_sum(c, names)
    c.emit(Arithmetic(node.name, tuple(names), (node.output[0],), kind, exact))


def _operand(c: Compilation, node: onnx.NodeProto, number: int) -> tuple[Shape | None, Values]:
    """Return a buffer's shape and values; the shape is None for constants, which adapt to the other operand."""
    if c.resolve(node.input[number]) in c.buffers:
        buffer = c.buffer(node, number)
        return buffer.shape, buffer.values
    return None, constant_values(c.constants[c.constant(node, number)])


def _broadcast(c: Compilation, node: onnx.NodeProto, shapes: tuple[Shape | None, ...]) -> Shape:
    buffers = [shape for shape in shapes if shape is not None]
    ranks = {len(shape) for shape in buffers}
    constants = [
        c.constants[c.resolve(name)].shape for name, shape in zip(node.input, shapes, strict=True) if shape is None
    ]
    if len(ranks) != 1 or any(len(shape) > max(ranks) for shape in constants):
        raise c.fault(node, f"operands of shapes {[*buffers, *constants]} would be broadcast across the batch")
    try:
        return np.broadcast_shapes(*buffers, *constants)
    except ValueError:
        raise c.fault(node, f"operands of shapes {[*buffers, *constants]} cannot be broadcast") from None


def _is_one_sum(c: Compilation, names: list[str]) -> bool:
    """Return whether one accumulator can exactly hold the sum of two synapses; recurrent synapses must allow that."""
    if not all(name in c.sums for name in names) or names[0] == names[1]:
        return False
    a, b = (c.sums[name] for name in names)
    if any(synapse.stated.weight.endswith("recurrent_weight") for synapse in (a, b)):
        check_bound(joint_units(a, b), [a, b], c.where)
    return exact_together(a, b)


def constant_values(constant: Floats) -> Values:
    """Return the grid of a constant's values, or real numbers if the grid needs more than 16 bits."""
    for bits in range(17):
        scaled = constant.astype(np.float64) * 2.0**bits
        if (scaled == np.rint(scaled)).all():
            return graded(float(np.abs(constant).max(initial=0.0)), bits)
    return REAL


def _windows(c: Compilation, node: onnx.NodeProto, more: dict[str, object]) -> tuple[Buffer, tuple[int, int], Shape]:
    """Return the input of a pooling, its window, and the shape of its result; windows must tile the input."""
    usual = {"kernel_shape": None, "strides": None, "pads": [0] * 4, "ceil_mode": 0, "dilations": [1, 1]}
    given: dict[str, Any] = c.attributes(node, {**usual, "auto_pad": b"NOTSET", **more})
    x, window = c.buffer(node, 0), _sides(c, node, "windows", given["kernel_shape"] or (), 2, 1)
    plain = given["strides"] == list(window) and not any(given["pads"]) and given["dilations"] == [1, 1]
    if len(x.shape) != 3 or not plain or given["auto_pad"] != b"NOTSET" or given.get("storage_order"):
        raise c.fault(node, f"windows are {list(window)}; only windows side by side, without padding, are supported")
    if given["ceil_mode"] or any(size % side for size, side in zip(x.shape[1:], window, strict=True)):
        raise c.fault(node, f"windows of {list(window)} do not divide inputs of {list(x.shape)}")
    return x, (window[0], window[1]), (x.shape[0], x.shape[1] // window[0], x.shape[2] // window[1])


def _average_pool(c: Compilation, node: onnx.NodeProto) -> None:
    x, window, shape = _windows(c, node, {"count_include_pad": 0})
    pixels = window[0] * window[1]
    if pixels & (pixels - 1):
        raise c.fault(node, f"windows are {list(window)}; only windows with a power of two of pixels are exact")
    if not x.values.dyadic:
        raise c.fault(
            node, "the bits of a sum of real numbers depend on the order of additions; pool currents with PoolPairs"
        )
    c.write(node.output[0], shape, graded(x.values.largest, x.values.bits + pixels.bit_length() - 1))
    c.emit(AveragePool(node.name, (x.name,), (node.output[0],), window))


def _max_pool(c: Compilation, node: onnx.NodeProto) -> None:
    x, window, shape = _windows(
        c, node, {"storage_order": 0}
    )  # of currents too: a neuron cannot see the sign of a zero
    c.write(node.output[0], shape, x.values)
    c.emit(MaxPool(node.name, (x.name,), (node.output[0],), window))


def _identity(c: Compilation, node: onnx.NodeProto) -> None:
    c.attributes(node, {})
    c.aliases[node.output[0]] = c.buffer(node, 0).name


STANDARD_RULES: dict[str, tuple[int, int, Rule]] = {  # smallest and largest number of operands, and the rule
    "Gemm": (2, 3, _gemm),
    "Conv": (2, 3, _conv),
    "Add": (2, 2, _arithmetic),
    "Sub": (2, 2, _arithmetic),
    "Mul": (2, 2, _arithmetic),
    "AveragePool": (1, 1, _average_pool),
    "MaxPool": (1, 1, _max_pool),
    "Identity": (1, 1, _identity),
    "Reshape": (2, 2, _reshape),
    "Concat": (1, 2**10, _concat),
    "Pad": (2, 2, _pad),
    "Slice": (5, 5, _slice),
    "Transpose": (1, 1, _transpose),
    "Shape": (1, 1, _shape),
    "Expand": (2, 2, _expand),
    "Gather": (2, 2, _gather),
}


def _neurons(c: Compilation, node: onnx.NodeProto) -> None:
    op = OPS[node.op_type]
    if op.integers != c.integers_only and op.name != "Heaviside":
        raise c.fault(
            node,
            f"the contract states {c.file.contract.dynamics} dynamics, and this operator computes in "
            f"{'int32' if op.integers else 'float32'}. Export the network again",
        )
    c.attributes(node, {})
    operands = {name: c.buffer(node, number) for number, name in enumerate(op.operands)}
    parameters = {name: c.constant(node, number) for number, name in enumerate(op.parameters, len(operands))}
    shape = operands["current"].shape
    for name, buffer in operands.items():
        if buffer.shape != shape:
            raise c.fault(node, f"its {name} has shape {list(buffer.shape)}, but its current has {list(shape)}")
    _check_parameters(c, node, parameters, shape)
    values = _integer_values(c, node, operands["current"].values, parameters) if c.integers_only else {}
    for name, output in zip(op.outputs, node.output, strict=True):
        c.write(output, shape, SPIKES if name == op.spikes else values.get(name, REAL))
    names = {name: buffer.name for name, buffer in operands.items()}
    c.emit(Neurons(node.name, tuple(names.values()), tuple(node.output), op.name, _layer(c, node), names, parameters))


def _integer_values(
    c: Compilation, node: onnx.NodeProto, current: Values, parameters: dict[str, str]
) -> dict[str, Values]:
    """Certify the widths of a layer of a network in integers; return the values that its outputs can have."""
    op, constants = OPS[node.op_type], {name: c.constants[key] for name, key in parameters.items()}
    if op.name == "Heaviside":
        if not current.dyadic or current.bits or (constants["threshold"] != np.rint(constants["threshold"])).any():
            raise c.fault(node, f"its current is {current}; in a network of integers it and θ are whole numbers")
        return {}
    try:
        largest = largest_membrane(op, current, constants)
        bits = unit_bits(constants["unit"]) if "unit" in constants else 0
    except NotCertifiedError as fault:
        raise c.fault(node, str(fault)) from None
    stated = next((layer for layer in c.file.contract.layers if layer.name == _layer(c, node)), None)
    if "next_membrane" in op.outputs and (stated is None or stated.width is None or stated.width < bits_of(largest)):
        raise c.fault(
            node,
            f"its membranes can reach {largest}, which takes {bits_of(largest)} bits; the contract certifies "
            f"{None if stated is None else stated.width}. A weight or the certificate was changed; export the network "
            f"again",
        )
    found = dict.fromkeys(("next_membrane", "next_synaptic"), graded(largest, 0))
    if "most" in constants:
        found["next_counts"] = graded(float(constants["most"].max()), 0)
    if "unit" in constants:
        found["next_total"] = graded((UNITS - 1) * 2.0**-bits, max(bits, 0))
        c.most_steps = min(c.most_steps or UNITS, most_steps(largest))
    return found


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


SPIKE_RULES: dict[str, Rule] = {
    **{op.name: _neurons for op in OPS.values() if op.neurons},
    "RecurrentActivity": _recurrent_activity,
    "PoolPairs": _pool_pairs,
}
