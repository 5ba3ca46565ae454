"""Translate a neuron operator's body to another language: one definition for every engine.

The body in ``runtime.format.opset`` is the only equation of an operator on the deployed side. It is a list of
assignments; each language states how it writes one operation. Nothing is reordered, so all languages round alike.

This module imports only the standard library, because the native core is built from it before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from axonnx.runtime.format.opset import SpikeOp

_ASSIGNMENT = re.compile(r"(\w+) = (\w+)\s*(?:<\s*\w+ = ([^>]*?)\s*>)?\s*\(([^)]*)\)")
OPERATIONS = (
    "Add", "Sub", "Mul", "GreaterOrEqual", "Abs", "Neg", "Cast", "Constant", "Mod", "Div", "Min", "Max",
)  # fmt: skip

Kind = Literal["float", "whole", "truth"]  # whole: int32
CASTS: dict[str, Kind] = {"1": "float", "6": "whole"}  # ONNX's numbers of types
ONLY_WHOLE = ("Mod", "Div", "Min", "Max")


class Assignment(NamedTuple):
    """The assignment ``output = operation(*inputs)`` of a ``kind`` of numbers from operands of the kind ``given``.

    ``value`` is the number of a constant, or ONNX's number of the type that a cast gives.
    """

    output: str
    operation: str
    inputs: tuple[str, ...]
    value: str
    given: Kind = "float"
    kind: Kind = "float"


class Language(NamedTuple):
    """How a language writes each operation; ``{0}`` and ``{1}`` are its operands, or a constant's number.

    A divisor that is called a scale is a power of two, and what it divides is a multiple of it: then a language may
    shift. The divisor of Mod is always a power of two.
    """

    forms: Mapping[str, str]  # float32, and int32 where no other form is stated
    whole: Mapping[str, str]  # of int32 operands
    casts: Mapping[tuple[Kind, Kind], str]

    def expression(self, step: Assignment) -> str:
        """Return the right side of an assignment."""
        if step.operation == "Cast":
            return self.casts[step.given, step.kind].format(*step.inputs)
        forms = {**self.forms, **self.whole} if step.given == "whole" else self.forms
        operands = (step.value,) if step.operation == "Constant" else step.inputs
        shifts = step.operation == "Div" and step.inputs[1].endswith("scale")
        return forms["Shift" if shifts else step.operation].format(*operands)


# C operators work on vectors too. The functions are those of native/vectors.h, where a vector may have one lane.
C = Language(
    {
        "Add": "{0} + {1}", "Sub": "{0} - {1}", "Mul": "{0} * {1}", "GreaterOrEqual": "at_least({0}, {1})",
        "Abs": "magnitude({0})", "Neg": "-{0}", "Constant": "splat((scalar){0}f)",
    },
    {
        "GreaterOrEqual": "at_least_whole({0}, {1})", "Mod": "{0} & ({1} - 1)", "Div": "{0} / {1}",
        "Shift": "shifted({0}, {1})", "Min": "smaller_whole({0}, {1})", "Max": "larger_whole({0}, {1})",
    },
    {
        ("truth", "float"): "numbers_of({0})", ("truth", "whole"): "whole_of(numbers_of({0}))",
        ("float", "whole"): "whole_of({0})", ("whole", "float"): "floats({0})",
    },
)  # fmt: skip
JAVASCRIPT = Language(
    {
        "Add": "round({0} + {1})", "Sub": "round({0} - {1})", "Mul": "round({0} * {1})", "GreaterOrEqual": "{0} >= {1}",
        "Abs": "Math.abs({0})", "Neg": "-{0}", "Constant": "round({0})",
    },
    {
        "Add": "({0} + {1}) | 0", "Sub": "({0} - {1}) | 0", "Mul": "Math.imul({0}, {1})", "Mod": "{0} & ({1} - 1)",
        "Div": "({0} / {1}) | 0", "Shift": "{0} / {1}", "Min": "Math.min({0}, {1})", "Max": "Math.max({0}, {1})",
    },
    {
        ("truth", "float"): "({0} ? 1 : 0)", ("truth", "whole"): "({0} ? 1 : 0)", ("float", "whole"): "{0} | 0",
        ("whole", "float"): "round({0})",
    },
)  # fmt: skip


C_TYPES: dict[Kind, str] = {"float": "vec", "whole": "ivec", "truth": "mask"}


def assignments(op: SpikeOp) -> tuple[Assignment, ...]:
    """Parse the body of an operator, line by line."""
    found = []
    kinds: dict[str, Kind] = dict.fromkeys(op.inputs, "float")
    for line in filter(None, map(str.strip, op.body.splitlines())):
        matched = _ASSIGNMENT.fullmatch(line)
        assert matched is not None, f"{op.name}: {line!r} is no assignment"
        output, operation, value = matched[1], matched[2], matched[3] or ""
        assert operation in OPERATIONS, f"{op.name}: {line!r} cannot be lowered; known are {OPERATIONS}"
        names = tuple(name.strip() for name in matched[4].split(",") if name.strip())
        given = {kinds[name] for name in names} or {"float"}
        assert len(given) == 1, f"{op.name}: {line!r} has operands of several types"
        assert operation not in ONLY_WHOLE or given == {"whole"}, f"{op.name}: {line!r} is lowered for int32 alone"
        (kinds[output],) = given
        if operation in ("Cast", "GreaterOrEqual"):
            kinds[output] = CASTS[value] if operation == "Cast" else "truth"
        found.append(Assignment(output, operation, names, value, given.pop(), kinds[output]))
    return tuple(found)


def c_step(op: SpikeOp, known: Mapping[str, int] | None = None) -> str:
    """Return C code for one step of LANES neurons: it reads operands, stores results and returns spikes as bits.

    The current and the previous spikes are arguments, because they may already be in registers. Parameters that are
    ``known`` are written as numbers, so that the compiler leaves out what a zero or a power of two makes trivial.
    """
    known = known or {}
    lines = [f"/* {op.formula} */", f"INLINE mask step_{op.function}(const layer *l, int32_t i, const scalar *k, "]
    lines[-1] += "vec current, vec spikes)\n{"
    lines.append("    (void)l, (void)i, (void)k, (void)current, (void)spikes;")
    read = {name for step in assignments(op) for name in step.inputs}  # a state may only be written
    lines += [
        f"    const vec {name} = load(l->in[{number}] + i);"
        for number, name in enumerate(op.operands)
        if name in read - {"current", "spikes"}
    ]
    lines += [
        f"    const vec {name} = " + (f"splat({known[name]});" if name in known else f"load(k + {number} * l->period);")
        for number, name in enumerate(op.parameters)
    ]
    fires = "0"
    for step in assignments(op):
        if step.operation == "Cast" and step.output == op.spikes:
            fires = step.inputs[0]
            continue
        lines.append(f"    const {C_TYPES[step.kind]} {step.output} = {C.expression(step)};")
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
