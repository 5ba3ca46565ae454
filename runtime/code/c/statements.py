"""Each instruction as statements of C, the constants that they need, and the memory that they use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from axonnx.base.errors import AxonnxError
from axonnx.runtime.code.c.memory import ALWAYS, Memory
from axonnx.runtime.code.c.text import TYPES, array, comment, identifier, number
from axonnx.runtime.codegen.array_layout import Floats, View, broadcast, memory, moved_parts, smallest, view
from axonnx.runtime.engines.noise import layer_key
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.program.instructions import (
    Arithmetic,
    AveragePool,
    Conv,
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

KERNELS = {op.name: op.function for op in OPS.values() if op.neurons}
SIGNS = {"Add": "+", "Sub": "-", "Mul": "*"}


class Statements:
    """Grows instruction by instruction: constants of the file, and the statements of one time step."""

    def __init__(self, program: Program, keep_layers: bool) -> None:
        self.program, self.memory = program, Memory(program)
        self.constants: list[str] = []
        self.step: list[str] = []
        self.weights: set[str] = set()  # the types of weights that occur
        self._variables: dict[Hashable, str] = {}  # of memory
        self._known: dict[tuple[str, str], str] = {}  # constants by type and name
        self._rows: dict[str, str] = {}  # buffers that are rows of a table
        self._at = -1
        for name in (program.input, *program.states):
            self.buffer(name)
        for self._at, instruction in enumerate(program.instructions):
            self._draw(instruction)
            self.step.append(f"/* {comment(instruction.name)}: {instruction.op} */")
            self._rule(instruction)(self, instruction)
        self._at = len(program.instructions)
        self._keep()
        self._at = ALWAYS
        layers = [name for layer in program.layers for name in (layer.spikes, layer.membrane) if name]
        for name in (*program.logits, *(layers if keep_layers else ())):
            self.buffer(name)

    def buffer(self, name: str) -> str:
        """The variable of a buffer, which the present instruction uses."""
        root = self.memory.root(name)
        if root in self._rows:
            return self._rows[root]
        return self.room(root, self.program.buffers[root].size)

    def room(self, key: Hashable, size: int) -> str:
        """The variable of so many floats of memory."""
        self.memory.use(key, size, self._at)
        if key not in self._variables:
            self._variables[key] = f"b{len(self._variables)}_{identifier(str(key))}"
        return self._variables[key]

    def declarations(self) -> tuple[list[str], dict[Hashable, int], int]:
        """The variables of all memory, where each begins, and how many floats there are."""
        places, size = self.memory.places()
        lines = [
            f"float *const {self._variables[key]} = n->memory + {at}; "
            f"/* {comment(str(key))}: {self.memory.spans[key].size} */"
            for key, at in sorted(places.items(), key=lambda item: item[1])
        ]
        return lines, places, size

    def floats(self, name: str, values: Floats) -> str:
        """The variable of a constant of the file, written once."""
        return self._constant("float", name, values)

    def integers(self, name: str, values: Floats) -> tuple[str, str, str]:
        """The type, variable and unit of weights."""
        stored = smallest(values)
        kind = TYPES[stored.values.itemsize]
        self.weights.add(kind)
        return kind, self._constant(kind, name, stored.values), number(stored.unit)

    def _constant(self, kind: str, name: str, values: Any) -> str:
        if (kind, name) not in self._known:
            variable = self._known[kind, name] = f"k{len(self._known)}_{identifier(name)}"
            self.constants.append(array(kind, variable, values, f"{name} {list(values.shape)}"))
        return self._known[kind, name]

    def operand(self, name: str, shape: Shape) -> str:
        """The element i (of channel c) of a buffer or constant that is as large as ``shape`` once it is spread."""
        if name not in self.program.buffers:
            return self._parameter(name, self.program.constants[name], shape)
        found = self.program.buffers[name].shape
        if found == shape:
            return f"{self.buffer(name)}[i]"
        if _by_channel(found, shape):
            return f"{self.buffer(name)}[c]"
        full = self.room((name, shape, self._at), int(np.prod(shape, dtype=np.int64)))
        whole = memory(shape)
        self.copy(full, view(whole, whole[...]), self.buffer(name), broadcast(found, shape), shape)
        return f"{full}[i]"

    def _parameter(self, name: str, values: Floats, shape: Shape) -> str:
        flat = values.reshape(-1)
        if (flat.view(np.int32) == flat.view(np.int32)[:1]).all():
            return number(float(flat[0]))
        if values.shape == shape:
            return f"{self.floats(name, values)}[i]"
        if _by_channel(values.shape, shape):
            return f"{self.floats(name, values)}[c]"
        return f"{self.floats(f'{name} as {list(shape)}', np.ascontiguousarray(np.broadcast_to(values, shape)))}[i]"

    def loop(self, shape: Shape, body: str) -> None:
        """A statement for each element i; c counts channels where it occurs."""
        size = int(np.prod(shape, dtype=np.int64))
        if "[c]" not in body:
            self.step.append(f"for (int i = 0; i < {size}; i++) {body}")
            return
        self.step.append(f"for (int c = 0, i = 0; c < {shape[0]}; c++)")
        self.step.append(f"    for (const int end = i + {size // shape[0]}; i < end; i++) {body}")

    def copy(self, to: str, target: View, source: str, part: View, counts: Sequence[int]) -> None:
        """One array's part into another's."""
        axes = [axis for axis, count in enumerate(counts) if count > 1]
        for depth, axis in enumerate(axes):
            self.step.append("    " * depth + f"for (int i{axis} = 0; i{axis} < {counts[axis]}; i{axis}++)")
        self.step.append("    " * len(axes) + f"{to}[{_place(target, axes)}] = {source}[{_place(part, axes)}];")

    def refuse(self, i: Instruction, why: str) -> AxonnxError:
        """An error that names the instruction."""
        return AxonnxError(f"{self.program.name}: node {i.name!r} ({i.op}) cannot be written as C: {why}")

    def _rule(self, i: Instruction) -> Rule:
        if type(i) not in RULES:
            raise self.refuse(i, f"known are {', '.join(sorted(rule.__name__ for rule in RULES))}")
        return RULES[type(i)]

    def _draw(self, i: Instruction) -> None:
        """The noise that an instruction is the first to read."""
        for name in i.reads:
            if name in self.program.noises and name not in self._variables:
                size = self.program.buffers[name].size
                call = f"normals({self.buffer(name)}, {size}, n->seed, {layer_key(name)}u, n->steps, n->sample);"
                self.step.append(call)

    def _keep(self) -> None:
        """States take their values of the next step; a state that becomes another's is saved before it changes."""
        states = set(self.program.states)
        moved = [(state, self.memory.root(source)) for state, source in self.program.after.items()]
        saved: dict[str, str] = {}
        for state, source in moved:
            if source in states and source != state and source not in saved:
                saved[source] = self.room((source, "before"), self.program.buffers[source].size)
                self._take(saved[source], self.buffer(source), source)
        for state, source in moved:
            if source != state:
                self._take(self.buffer(state), saved.get(source) or self.buffer(source), state)

    def _take(self, to: str, source: str, like: str) -> None:
        self.step.append(f"memcpy({to}, {source}, {self.program.buffers[like].size} * sizeof(float));")


Rule = Callable[[Statements, Any], None]


def _by_channel(found: Shape, shape: Shape) -> bool:
    """Whether there is one element for each of the first axis."""
    return len(shape) > 1 and found == (shape[0], *[1] * (len(shape) - 1))


def _place(part: View, axes: list[int]) -> str:
    terms = [f"{part.strides[axis]} * i{axis}" for axis in axes if part.strides[axis]]
    return " + ".join([*([str(part.first)] if part.first or not terms else []), *terms])


def _linear(s: Statements, i: Linear) -> None:
    weight = s.program.constants[i.weight]
    kind, rows, unit = s.integers(f"{i.weight}, transposed", weight.T)
    x, y = s.buffer(i.reads[0]), s.buffer(i.writes[0])
    words = [y, str(len(weight)), x, str(weight.shape[1]), rows, unit, _bias(s, i)]
    s.step.append(f"linear_{kind}({', '.join(words)});")


def _conv(s: Statements, i: Conv) -> None:
    weight, (x, y) = s.program.constants[i.weight], (s.program.buffers[i.reads[0]], s.program.buffers[i.writes[0]])
    outputs, inputs = len(weight) // i.group, weight.shape[1]
    grouped = weight.reshape(i.group, outputs, *weight.shape[1:]).transpose(0, 2, 3, 4, 1)
    kind, weights, unit = s.integers(f"{i.weight}, as [in, rows, columns, out]", grouped)
    sizes = [i.group, inputs, *x.shape[1:], outputs, *y.shape[1:], *weight.shape[2:], *i.pads[:2], *i.strides]
    geometry = f"&(const geometry){{{', '.join(map(str, [*sizes, *i.dilations]))}}}"
    words = [s.buffer(y.name), s.buffer(x.name), weights, unit, _bias(s, i), geometry]
    s.step.append(f"conv_{kind}({', '.join(words)});")


def _bias(s: Statements, i: Linear | Conv) -> str:
    return "NULL" if i.bias is None else s.floats(i.bias, s.program.constants[i.bias])


def _neurons(s: Statements, i: Neurons) -> None:
    if i.spike_op not in KERNELS:
        raise s.refuse(i, f"known are {', '.join(KERNELS)}")
    shape, given = s.program.buffers[i.writes[0]].shape, {**i.operands, **i.parameters}
    words = [f"&{s.buffer(name)}[i]" for name in i.writes]
    words += [s.operand(given[name], shape) for name in OPS[i.spike_op].inputs]
    s.loop(shape, f"{KERNELS[i.spike_op]}({', '.join(words)});")


def _arithmetic(s: Statements, i: Arithmetic) -> None:
    shape = s.program.buffers[i.writes[0]].shape
    a, b = (s.operand(name, shape) for name in i.reads)
    s.loop(shape, f"{s.buffer(i.writes[0])}[i] = {a} {SIGNS[i.kind]} {b};")


def _recurrent_activity(s: Statements, i: RecurrentActivity) -> None:
    _check_exact(s, i)
    size = s.program.buffers[i.reads[0]].size
    s.step.append(f"recurrent_activity({s.buffer(i.writes[0])}, {s.buffer(i.reads[0])}, {size});")


def _pool(s: Statements, i: PoolPairs | AveragePool | MaxPool) -> None:
    kernel = {PoolPairs: "pool_pairs", AveragePool: "average_pool", MaxPool: "max_pool"}[type(i)]
    window = () if isinstance(i, PoolPairs) else i.window
    if isinstance(i, AveragePool):
        _check_exact(s, i)
    channels, rows, columns = s.program.buffers[i.writes[0]].shape
    words = [s.buffer(i.writes[0]), s.buffer(i.reads[0]), *map(str, (channels * rows, columns, *window))]
    s.step.append(f"{kernel}({', '.join(words)});")


def _check_exact(s: Statements, i: Instruction) -> None:
    if not s.program.buffers[i.writes[0]].values.dyadic:
        raise s.refuse(i, "its sums are beyond what float32 holds exactly, so their order would show")


def _step_row(s: Statements, i: StepRow) -> None:
    name, size = i.writes[0], s.program.buffers[i.writes[0]].size
    s._rows[name] = f"r{len(s._rows)}_{identifier(name)}"
    table = s.floats(i.table, s.program.constants[i.table])
    s.step.append(f"const float *const {s._rows[name]} = {table} + (size_t)n->steps * {size};")


def _move(s: Statements, i: Move) -> None:
    if i.kind == "Reshape":
        s.step.pop()  # the same memory under another name
        return
    y, out, start = s.buffer(i.writes[0]), memory(s.program.buffers[i.writes[0]].shape), 0
    if i.kind == "Pad":
        s.step.append(f"memset({y}, 0, {out.size} * sizeof(float));")
    for name in i.reads:
        x = memory(s.program.buffers[name].shape)
        target, part = moved_parts(i.kind, i.how, x, out, start)
        start += x.shape[i.how] if i.kind == "Concat" else 0
        s.copy(y, view(out, target), s.buffer(name), view(x, part), part.shape)


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
