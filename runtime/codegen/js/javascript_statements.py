"""Write each instruction as a JavaScript statement, with the arrays that it needs."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
    Floats,
    Instruction,
    Linear,
    MaxPool,
    Move,
    Neurons,
    PoolPairs,
    Program,
    RecurrentActivity,
    Shape,
    StepRow,
)
from axonnx.runtime.program.layer_noise import layer_key

Bytes = NDArray[np.int8]  # used for arrays of any type: its strides count elements

FINEST = 40  # most fractional bits that are tried for integers
INTEGERS = {
    "Int8Array": (2**7, "<i1"),
    "Int16Array": (2**15, "<i2"),
    "Int24": (2**23, "<i4"),
}  # exclusive limit and storage of each type


class Statements:
    """Collects constants of the file, arrays of a network and statements of a step, instruction by instruction."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.constants: list[str] = []
        self.arrays: list[str] = []
        self.step: list[str] = []
        self._variables: dict[str, str] = {}  # of buffers
        self._known: dict[Any, str] = {}  # constants, expanded operands and lists of active inputs, each by its origin
        for name in (program.input, *program.states, *program.noises):
            self.buffer(name)
        for name in program.noises:
            self.step.append(f"normals({self.buffer(name)}, seed, {layer_key(name)}, step, sample);")
        for instruction in program.instructions:
            self.step.append(f"// {quoted(instruction.name)}: {instruction.op}")
            self._rule(instruction)(self, instruction)
        self._keep()

    def buffer(self, name: str) -> str:
        """Return the variable of a buffer."""
        if name not in self._variables:
            self._variables[name] = f"b{len(self._variables)}"
            size = self.program.buffers[name].size
            self.arrays.append(f"const {self._variables[name]} = new Float32Array({size});  // {quoted(name)}")
        return self._variables[name]

    def alias(self, name: str, of: str) -> None:
        """Put two buffers into one array."""
        self._variables[name] = self.buffer(of)

    def constant(self, key: str, values: Floats) -> str:
        """Return the variable of a constant array; each is written once."""
        if key not in self._known:
            self._known[key] = f"k{len(self.constants)}"
            self.constants.append(f"const {self._known[key]} = {literal(values)};  // {quoted(key)}")
        return self._known[key]

    def operand(self, name: str, shape: Shape) -> str:
        """Return a buffer or constant with one element for each of ``shape``; buffers are expanded in each step."""
        constant = self.program.constants.get(name)
        plain = self.buffer(name) if constant is None else self.constant(name, constant)
        found = self.program.buffers[name].shape if constant is None else constant.shape
        if found == shape:
            return plain
        if (name, shape) not in self._known:
            whole, part = _memory(shape), _memory(found)
            full = self._known[name, shape] = self.scratch(f"new Float32Array({whole.size})")
            expand = _copy(full, whole, whole, plain, part, np.broadcast_to(part, shape))
            (self.step if constant is None else self.arrays).append(expand)
        return self._known[name, shape]

    def scratch(self, what: str) -> str:
        """Add a variable for the array that the expression ``what`` makes."""
        self.arrays.append(f"const a{len(self.arrays)} = {what};")
        return f"a{len(self.arrays) - 1}"

    def active(self, name: str) -> str:
        """Return the list of a buffer's active inputs and their number, computed once per step."""
        x = self.buffer(name)
        if ("active", x) not in self._known:
            places = self.scratch(f"new Int32Array({self.program.buffers[name].size})")
            self._known["active", x] = f"{places}, n{x}"
            self.step.append(f"const n{x} = active({x}, {places});")
        return self._known["active", x]

    def call(self, kernel: str, i: Instruction, *given: object) -> None:
        """Add the call of a kernel on the buffers that the instruction writes and the given arguments."""
        self.step.append(f"{kernel}({', '.join(map(str, [*map(self.buffer, i.writes), *given]))});")

    def refuse(self, i: Instruction, why: str) -> AxonnxError:
        """Return an error that names the instruction."""
        return AxonnxError(
            f"{self.program.name}: node {i.name!r} ({i.op}) cannot be written as JavaScript: {why}. Run the ONNX file "
            f"with "
            f"onnxruntime-web instead"
        )

    def _rule(self, i: Instruction) -> Rule:
        if type(i) not in RULES:
            raise self.refuse(i, f"known are {', '.join(sorted(rule.__name__ for rule in RULES))}")
        return RULES[type(i)]

    def _keep(self) -> None:
        """Replace states by their next values; save a state first if it becomes the value of another one."""
        states = {self.buffer(name) for name in self.program.states}
        moved = [(self.buffer(state), self.buffer(source)) for state, source in self.program.after.items()]
        saved = {}
        for state, source in moved:
            if source in states and source != state:
                saved[source] = self.scratch(f"new Float32Array({source}.length)")
                self.step.append(f"{saved[source]}.set({source});")
        self.step += [f"{state}.set({saved.get(source, source)});" for state, source in moved if state != source]


Rule = Callable[[Statements, Any], None]


def quoted(name: str) -> str:
    """Return a name that is safe in a comment and in a page."""
    return json.dumps(name)[1:-1].replace("<", "\\u003c")


def literal(values: Floats) -> str:
    """Return a JavaScript expression for an array: a·2^s as integers of 8, 16 or 24 bits if they are exact."""
    scaled = values.astype(np.float64)
    largest = float(np.abs(scaled).max(initial=0.0))
    for bits in range(-FINEST, FINEST):
        integers, most = scaled * 2.0**bits, largest * 2.0**bits
        kinds = [(name, kind) for name, (below, kind) in INTEGERS.items() if most < below]
        if not kinds:
            break
        if (integers == np.rint(integers)).all():
            name, kind = kinds[0]
            data = np.ascontiguousarray(integers.astype(kind))
            if name == "Int24":
                data = data.reshape(-1, 1).view(np.uint8)[:, :3]  # the top byte carries no information
            return _constant(data, name, 2.0**-bits)
    return _constant(np.ascontiguousarray(values, "<f4"), "Float32Array", 1.0)


def _constant(data: NDArray[Any], kind: str, unit: float) -> str:
    return f"constant('{b64encode(data.tobytes()).decode()}', {kind}, {unit!r})"


def _memory(shape: Shape) -> Bytes:
    return np.empty(shape, np.int8)


def _copy(to: str, out: Bytes, target: Bytes, source: str, x: Bytes, part: Bytes) -> str:
    """Return a statement that copies a part of one array to a part of another, from their offsets and strides."""
    first, begin = target.ctypes.data - out.ctypes.data, part.ctypes.data - x.ctypes.data
    sides = f"{to}, {first}, {list(target.strides)}, {source}, {begin}, {list(part.strides)}"
    return f"copy({sides}, {list(part.shape)});"


def _linear(s: Statements, i: Linear) -> None:
    rows = s.constant(f"{i.weight}, transposed", s.program.constants[i.weight].T)
    s.call("linear", i, s.buffer(i.reads[0]), s.active(i.reads[0]), rows, _bias(s, i))


def _conv(s: Statements, i: Conv) -> None:
    weight, (x, y) = s.program.constants[i.weight], (s.program.buffers[i.reads[0]], s.program.buffers[i.writes[0]])
    outputs, inputs = len(weight) // i.group, weight.shape[1]
    grouped = weight.reshape(i.group, outputs, *weight.shape[1:]).transpose(0, 2, 3, 4, 1)
    rows = s.constant(f"{i.weight}, as [in, rows, columns, out]", grouped)
    sizes = [*x.shape[1:], *y.shape, *weight.shape[2:], inputs, outputs, *i.pads[:2], *i.strides, *i.dilations]
    sums, geometry = s.scratch(f"new Float32Array({y.size})"), s.scratch(str(sizes))
    s.call("conv", i, s.buffer(x.name), s.active(x.name), rows, _bias(s, i), sums, geometry)


def _bias(s: Statements, i: Linear | Conv) -> str:
    return "null" if i.bias is None else s.constant(i.bias, s.program.constants[i.bias])


def _neurons(s: Statements, i: Neurons) -> None:
    shape, op, given = s.program.buffers[i.writes[0]].shape, OPS[i.spike_op], {**i.operands, **i.parameters}
    s.call(op.function, i, *(s.operand(given[name], shape) for name in op.inputs))


def _arithmetic(s: Statements, i: Arithmetic) -> None:
    shape = s.program.buffers[i.writes[0]].shape
    s.call(i.kind.lower(), i, *(s.operand(name, shape) for name in i.reads))


def _recurrent_activity(s: Statements, i: RecurrentActivity) -> None:
    _check_exact(s, i)
    s.call("recurrentActivity", i, s.buffer(i.reads[0]))


def _pool(s: Statements, i: PoolPairs | AveragePool | MaxPool) -> None:
    if isinstance(i, AveragePool):
        _check_exact(s, i)
    kernel = {PoolPairs: "poolPairs", AveragePool: "averagePool", MaxPool: "maxPool"}[type(i)]
    window = () if isinstance(i, PoolPairs) else i.window
    s.call(kernel, i, s.buffer(i.reads[0]), s.program.buffers[i.reads[0]].shape[2], *window)


def _check_exact(s: Statements, i: Instruction) -> None:
    if not s.program.buffers[i.writes[0]].values.dyadic:
        raise s.refuse(i, "its sums exceed the exact integers of float32, so their bits depend on the order")


def _step_row(s: Statements, i: StepRow) -> None:
    table, size = s.constant(i.table, s.program.constants[i.table]), s.program.buffers[i.writes[0]].size
    s.step.append(f"{s.buffer(i.writes[0])}.set({table}.subarray(step * {size}, (step + 1) * {size}));")


def _move(s: Statements, i: Move) -> None:
    if i.kind == "Reshape":
        s.alias(i.writes[0], i.reads[0])
        return
    out, start = _memory(s.program.buffers[i.writes[0]].shape), 0
    for name in i.reads:
        x = _memory(s.program.buffers[name].shape)
        target, part = _moved(i, x, out, start)
        start += x.shape[i.how] if i.kind == "Concat" else 0
        s.step.append(_copy(s.buffer(i.writes[0]), out, target, s.buffer(name), x, part))


def _moved(i: Move, x: Bytes, out: Bytes, start: int) -> tuple[Bytes, Bytes]:
    """Return the part of a move's result that an operand fills, and the part of the operand that fills it.

    ``start`` is the position of the operand among joined operands.
    """
    if i.kind not in ("Concat", "Pad"):
        return out, i.apply([x[None]])[0]  # numpy returns views for slices, transposes and broadcasts
    first = [start * (axis == i.how) for axis in range(x.ndim)] if i.kind == "Concat" else [pad[0] for pad in i.how]
    return out[tuple(slice(begin, begin + size) for begin, size in zip(first, x.shape, strict=True))], x


RULES: dict[type[Instruction], Rule] = {
    Linear: _linear,
    Conv: _conv,
    Neurons: _neurons,
    Arithmetic: _arithmetic,
    RecurrentActivity: _recurrent_activity,
    PoolPairs: _pool,
    AveragePool: _pool,
    MaxPool: _pool,
    StepRow: _step_row,
    Move: _move,
}
