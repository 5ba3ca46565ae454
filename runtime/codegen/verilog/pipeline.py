"""An integer operator's body as a pipeline of Verilog: the definition in ``runtime.format.opset`` with registers.

Each value has an interval, which follows from the certified membranes and the constants, and from it the fewest bits
that hold it. So no adder is wider than its numbers need, and none overflows. A register stands behind every operation
that costs time, so the clock does not depend on how long an equation is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from axonnx.runtime.codegen.expressions import Assignment, assignments
from axonnx.runtime.format.opset import SpikeOp

ADDERS = 2  # between two registers


@dataclass(frozen=True)
class Value:
    """A number in the pipeline.

    Attributes:
        text: Its name, or its digits if it is constant.
        low: Smallest value.
        high: Largest value.
        stage: The clock cycle in which it is there; None if it is there always.
        spent: Adders in a row that it has passed in that cycle.
        truth: Whether it is an unsigned bit.
    """

    text: str
    low: int
    high: int
    stage: int | None = None
    spent: int = 0
    truth: bool = False

    @property
    def constant(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high

    @property
    def bits(self) -> int:
        """The width of a signed number that holds it."""
        return max(self.high.bit_length(), (-self.low - 1).bit_length() if self.low < 0 else 0) + 1

    @property
    def number(self) -> str:
        """The value as a signed expression."""
        return f"$signed({{1'b0, {self.text}}})" if self.truth else self.text


def literal(number: int) -> Value:
    """Return a constant."""
    value = Value("", number, number)
    sign = "-" if number < 0 else ""
    return replace(value, text=f"{sign}{max(value.bits, abs(number).bit_length() + 1)}'sd{abs(number)}")


class Pipeline:
    """Writes the lines of one lane: wires for operations, and registers for what a later stage needs."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.late: dict[tuple[str, int], Value] = {}
        self.choices: dict[str, tuple[str, bool, int]] = {}  # a constant or 0: of which bit, its sign, the constant
        self.sums: dict[str, tuple[Value, str]] = {}  # of such a choice: what it was added to, and the choice

    def at(self, value: Value, stage: int) -> Value:
        """Return the value as it is ``stage`` cycles after the first, in registers of its own."""
        if value.stage is None or value.stage == stage:
            return value
        assert value.stage < stage, f"{value.text} is not known yet in stage {stage}"
        found = self.late.get((value.text, stage))
        if found is None:
            before = self.at(value, stage - 1)
            name = f"{value.text}_{stage}"
            kind = "reg" if value.truth else f"reg signed [{value.bits - 1}:0]"
            self.lines.append(f"{kind} {name}; always @(posedge clk) {name} <= {before.text};")
            found = self.late[value.text, stage] = replace(value, text=name, stage=stage, spent=0)
        return found

    def together(self, *values: Value, cost: int) -> tuple[int | None, int, tuple[Value, ...]]:
        """Return the stage of an operation on these values, the adders in a row up to it, and the values there."""
        stages = [value.stage for value in values if value.stage is not None]
        if not stages:
            return None, 0, values
        stage = max(stages)
        spent = max((value.spent for value in values if value.stage == stage), default=0) + cost
        if spent > ADDERS:
            stage, spent = stage + 1, cost
        return stage, spent, tuple(self.at(value, stage) for value in values)

    def made(self, name: str, text: str, low: int, high: int, stage: int | None, spent: int) -> Value:
        """Write a number."""
        if low == high:
            return literal(low)
        value = Value(name, low, high, stage, spent)
        self.lines.append(f"wire signed [{value.bits - 1}:0] {name} = {text};")
        return value

    def truth(self, name: str, text: str, stage: int | None, spent: int) -> Value:
        """Write a bit."""
        self.lines.append(f"wire {name} = {text};")
        return Value(name, 0, 1, stage, spent, truth=True)

    def run(
        self, steps: list[Assignment], known: dict[str, Value], same: Mapping[str, str] | None = None
    ) -> dict[str, Value]:
        """Write assignments, and return every value by its name in the body.

        Args:
            steps: The assignments, in order.
            known: Values that are there already.
            same: Names whose value is known to be that of another name, which needs no operation.
        """
        found, same = dict(known), same or {}
        remainders: dict[str, tuple[str, int]] = {}  # x mod 2^k, of which x − (x mod 2^k) needs no adder
        for step in steps:
            if step.output in same:
                found[step.output] = found[same[step.output]]
                continue
            if step.operation == "Constant":
                found[step.output] = literal(int(float(step.value)))
                continue
            values = [found[name] for name in step.inputs]
            if step.operation == "Mod":
                remainders[step.output] = step.inputs[0], values[1].low
            if step.operation == "Sub" and remainders.get(step.inputs[1], ("", 0))[0] == step.inputs[0]:
                found[step.output] = self._multiple(step.output, values[0], remainders[step.inputs[1]][1])
                continue
            found[step.output] = self._operation(step.output, step.operation, values)
        return found

    def _multiple(self, name: str, x: Value, of: int) -> Value:
        shift = of.bit_length() - 1
        low, high = x.low >> shift << shift, x.high >> shift << shift
        return self.made(name, f"({x.number} >>> {shift}) <<< {shift}", low, high, x.stage, x.spent)

    def _operation(self, name: str, operation: str, values: list[Value]) -> Value:
        if operation == "Cast":
            return values[0]
        a, b = values
        if operation == "Mul" and (a.truth or b.truth):
            return self._chosen(name, *((b, a) if b.truth else (a, b)))
        if operation == "Sub" and b.truth and a.low == a.high == 1:
            bit = self.truth(name, f"!{b.text}", b.stage, b.spent)
            self.choices[name] = b.text, False, 1
            return bit
        if operation == "GreaterOrEqual" and (a.low >= b.high or a.high < b.low):
            return literal(int(a.low >= b.high))
        same = _unchanged(operation, a, b) or self._completed(name, operation, a, b)
        if same is not None:
            return same
        low, high = _RANGES[operation](a, b)
        free = operation in ("Div", "Mod") or (operation == "Mul" and _power(a, b) is not None)
        before = a
        cost = 0 if free else ADDERS if operation == "Mul" else 1  # a product is several additions
        stage, spent, (a, b) = self.together(a, b, cost=cost)
        if operation == "GreaterOrEqual":
            return self.truth(name, f"{a.number} >= {b.number}", stage, spent)
        if operation == "Mul" and (power := _power(a, b)) is not None:
            return self.made(name, f"{power[0].number} <<< {power[1]}", low, high, stage, spent)
        if operation in ("Div", "Mod"):
            assert b.constant, f"{name}: {operation} by a number that is not constant"
            assert b.low & (b.low - 1) == 0, f"{name}: {operation} by {b.low}, which is no power of two"
        if operation == "Add" and b.text in self.choices:
            self.sums[name] = before, b.text
        text = _FORMS[operation].format(
            a=a.number, b=b.number, shift=b.low.bit_length() - 1, mask=literal(b.low - 1).text
        )
        return self.made(name, text, low, high, stage, spent)

    def _completed(self, name: str, operation: str, a: Value, b: Value) -> Value | None:
        """Return x + c for (x + (c if bit, else 0)) + (0 if bit, else c)."""
        if operation != "Add" or a.text not in self.sums or b.text not in self.choices:
            return None
        base, first = self.sums[a.text]
        (one, is_set, c), (other, also_set, d) = self.choices[first], self.choices[b.text]
        if one != other or is_set == also_set or c != d:
            return None
        return self._operation(name, "Add", [base, literal(c)])

    def _chosen(self, name: str, bit: Value, other: Value) -> Value:
        """Return the product of a bit and a value: the value or 0."""
        if other.constant and other.low in (0, 1):
            return bit if other.low else other
        stage, spent, (bit, other) = self.together(bit, other, cost=0)
        if other.truth:
            return self.truth(name, f"{bit.text} & {other.text}", stage, spent)
        if other.constant:
            of, is_set, _ = self.choices.get(bit.text, (bit.text, True, 1))
            self.choices[name] = of, is_set, other.low
        low, high = min(other.low, 0), max(other.high, 0)
        return self.made(name, f"{bit.text} ? {other.number} : 0", low, high, stage, spent)


_FORMS = {
    "Add": "{a} + {b}", "Sub": "{a} - {b}", "Mul": "{a} * {b}", "Max": "({a} >= {b}) ? {a} : {b}",
    "Min": "({a} <= {b}) ? {a} : {b}", "Div": "{a} >>> {shift}", "Mod": "{a} & {mask}",  # of a multiple: no rounding
}  # fmt: skip


def _power(a: Value, b: Value) -> tuple[Value, int] | None:
    """Return the factor and the shift of a product with a power of two."""
    for x, factor in ((a, b), (b, a)):
        if factor.constant and factor.low > 0 and factor.low & (factor.low - 1) == 0:
            return x, factor.low.bit_length() - 1
    return None


def _products(a: Value, b: Value) -> tuple[int, int]:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


_RANGES = {
    "Add": lambda a, b: (a.low + b.low, a.high + b.high),
    "Sub": lambda a, b: (a.low - b.high, a.high - b.low),
    "Mul": _products,
    "Max": lambda a, b: (max(a.low, b.low), max(a.high, b.high)),
    "Min": lambda a, b: (min(a.low, b.low), min(a.high, b.high)),
    "Div": lambda a, b: (-(-a.low // b.high) if a.low < 0 else a.low // b.high, a.high // b.low),
    "Mod": lambda a, b: (0, b.high - 1),
    "GreaterOrEqual": lambda a, b: (0, 1),
}


def _unchanged(operation: str, a: Value, b: Value) -> Value | None:
    """Return the operand that an operation leaves as it is; its bits need no adder."""
    if operation in ("Add", "Sub") and b.constant and b.low == 0:
        return a
    if operation == "Add" and a.constant and a.low == 0:
        return b
    if operation in ("Mul", "Div") and b.constant and b.low == 1:
        return a
    if operation == "Mul" and a.constant and a.low == 1:
        return b
    if operation in ("Max", "Min"):
        if a.low >= b.high:
            return a if operation == "Max" else b
        if b.low >= a.high:
            return b if operation == "Max" else a
    return None


def halves(op: SpikeOp) -> tuple[list[Assignment], list[Assignment], str]:
    """Split the body of neurons into what leads to the new membrane and what is decided on it.

    Returns:
        The first half, the second half, and the name of the new membrane in both.
    """
    steps = list(assignments(op))
    made = {step.output: step for step in steps}
    membrane = made[op.outputs[0]].inputs[0]  # a cast of it is the output
    first = _behind(membrane, made, set())
    head = [step for step in steps if step.output in first]
    rest = [step for step in steps if step.output not in first and step.output != op.outputs[0]]
    return head, rest, membrane


def _behind(name: str, made: Mapping[str, Assignment], found: set[str]) -> set[str]:
    if name in made and name not in found:
        found.add(name)
        for each in made[name].inputs:
            _behind(each, made, found)
    return found
