"""Translate a neuron operator's body to another language: one definition for every engine.

The body in ``runtime.format.opset`` is the only equation of an operator on the deployed side. It is a list of
assignments; each language states how it writes one operation. Nothing is reordered, so all languages round alike.

This module imports only the standard library, because the native core is built from it before anything is installed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from axonnx.runtime.format.opset import SpikeOp

_ASSIGNMENT = re.compile(r"(\w+) = (\w+)\s*(?:<\s*\w+ = ([^>]*?)\s*>)?\s*\(([^)]*)\)")
OPERATIONS = ("Add", "Sub", "Mul", "GreaterOrEqual", "Abs", "Neg", "Cast", "Constant")


class Assignment(NamedTuple):
    """The assignment ``output = operation(*inputs)``; ``value`` is the number of a constant."""

    output: str
    operation: str
    inputs: tuple[str, ...]
    value: str


class Language(NamedTuple):
    """How a language writes each operation; ``{0}`` and ``{1}`` are its operands, or a constant's number."""

    add: str
    sub: str
    mul: str
    at_least: str  # a truth value …
    number: str  # … as 1.0 or 0.0
    absolute: str
    negative: str
    constant: str

    def expression(self, step: Assignment) -> str:
        """Return the right side of an assignment."""
        forms = (self.add, self.sub, self.mul, self.at_least, self.absolute, self.negative, self.number, self.constant)
        operands = (step.value,) if step.operation == "Constant" else step.inputs
        return dict(zip(OPERATIONS, forms, strict=True))[step.operation].format(*operands)


# C operators work on vectors too. The functions are those of native/vectors.h, where a vector may have one lane.
C = Language(
    "{0} + {1}", "{0} - {1}", "{0} * {1}", "at_least({0}, {1})", "numbers_of({0})", "magnitude({0})", "-{0}",
    "splat({0}f)",
)  # fmt: skip
JAVASCRIPT = Language(
    "round({0} + {1})", "round({0} - {1})", "round({0} * {1})", "{0} >= {1}", "({0} ? 1 : 0)", "Math.abs({0})", "-{0}",
    "round({0})",
)  # fmt: skip


def assignments(op: SpikeOp) -> tuple[Assignment, ...]:
    """Parse the body of an operator, line by line."""
    found = []
    for line in filter(None, map(str.strip, op.body.splitlines())):
        matched = _ASSIGNMENT.fullmatch(line)
        assert matched is not None, f"{op.name}: {line!r} is no assignment"
        assert matched[2] in OPERATIONS, f"{op.name}: {line!r} cannot be lowered; known are {OPERATIONS}"
        names = tuple(name.strip() for name in matched[4].split(",") if name.strip())
        found.append(Assignment(matched[1], matched[2], names, matched[3] or ""))
    return tuple(found)


def c_step(op: SpikeOp) -> str:
    """Return C code for one step of LANES neurons: it reads operands, stores results and returns spikes as bits.

    The current and the previous spikes are arguments, because they may already be in registers.
    """
    lines = [f"/* {op.formula} */", f"INLINE mask step_{op.function}(const layer *l, int32_t i, const float *k, "]
    lines[-1] += "vec current, vec spikes)\n{"
    lines.append("    (void)l, (void)i, (void)k, (void)current, (void)spikes;")
    lines += [
        f"    const vec {name} = load(l->in[{number}] + i);"
        for number, name in enumerate(op.operands)
        if name not in ("current", "spikes")
    ]
    lines += [f"    const vec {name} = load(k + {number} * l->period);" for number, name in enumerate(op.parameters)]
    fires = "0"
    for step in assignments(op):
        if step.operation == "Cast" and step.output == op.spikes:
            fires = step.inputs[0]
            continue
        kind = "mask" if step.operation == "GreaterOrEqual" else "vec"
        lines.append(f"    const {kind} {step.output} = {C.expression(step)};")
    stored = [name for name in op.outputs if name != op.spikes]
    lines += [f"    store(l->out[{op.outputs.index(name)}] + i, {name});" for name in stored]
    return "\n".join([*lines, f"    return {fires};\n}}\n"])


def javascript_function(op: SpikeOp) -> str:
    """Return a JavaScript function for all neurons of a layer; arguments are the results, then the inputs."""
    arrays = ", ".join([*(f"{name}To" for name in op.outputs), *(f"{name}Of" for name in op.inputs)])
    lines = [f"// {op.formula}", f"function {op.function}({arrays}) {{"]
    lines.append(f"  for (let i = 0; i < {op.outputs[0]}To.length; i++) {{")
    lines += [f"    const {name} = {name}Of[i];" for name in op.inputs]
    lines += [f"    const {step.output} = {JAVASCRIPT.expression(step)};" for step in assignments(op)]
    lines += [f"    {name}To[i] = {name};" for name in op.outputs]
    return "\n".join([*lines, "  }", "}"])
