"""The spike operators, domain ``ai.axonnx`` version 1: the body of each operator is its definition.

A file contains the bodies as ONNX local functions. An engine that knows an operator runs its own kernel; every other
runtime runs the body in standard operators, with the same bits. The order of the operations is part of the definition:
float arithmetic is not associative, so no engine may reorder it or fuse multiplications with additions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import onnx

DOMAIN = "ai.axonnx"
ONNX_OPSET = 20


@dataclass(frozen=True)
class SpikeOp:
    """One operator: everything that engines, exporter and verifier need to know about it.

    The names of its values state their roles. ``current`` arrives at a layer's neurons. An operand ``x`` with an output
    ``next_x`` is a state. An output that ends in ``spikes`` is 0 or 1. Neurons decide on ``next_membrane`` and
    ``next_variance``. If neurons have a membrane, it is the first output, and spikes are the last.

    Attributes:
        name: Its name in a file.
        about: Its purpose, for people.
        formula: Its equation, for people.
        operands: Inputs that change from step to step.
        parameters: Inputs that are constants of the graph; they follow the operands.
        outputs: Its outputs.
        body: The definition, in ONNX's textual form.
        reset: How a spike resets its membrane, if it is the same for all neurons.
        integers: Whether it computes in int32. Its inputs and outputs are whole numbers in float32, so that every
            engine moves them as it moves all others; a certificate keeps them below 2²⁴, where float32 is exact.
    """

    name: str
    about: str
    formula: str
    operands: tuple[str, ...]
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    body: str
    reset: Literal["subtract", "zero"] | None = None
    integers: bool = False

    @property
    def inputs(self) -> tuple[str, ...]:
        """All inputs, in the order of a node."""
        return self.operands + self.parameters

    @property
    def states(self) -> tuple[str, ...]:
        """Operands that are carried from one time step to the next."""
        return tuple(name for name in self.operands if f"next_{name}" in self.outputs)

    @property
    def text(self) -> str:
        """The function as ONNX's parser reads it."""
        signature = f"{self.name} ({', '.join(self.inputs)}) => ({', '.join(self.outputs)})"
        return f'<opset_import: ["" : {ONNX_OPSET}], domain: "{DOMAIN}">\n{signature} {{\n{self.body}\n}}'

    @property
    def function(self) -> str:
        """Name of its Python function: LIFToZero is ``lif_to_zero``."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", self.name).lower()

    @property
    def neurons(self) -> bool:
        """Whether it is a layer of neurons, which have a current as input."""
        return "current" in self.operands

    @property
    def spikes(self) -> str | None:
        """The output that is 0 or 1; None if nothing fires."""
        return next((name for name in self.outputs if name.endswith("spikes")), None)

    @property
    def membrane(self) -> str | None:
        """The value that is compared with the threshold: an output, or the current of neurons without memory."""
        return self._decided_on("next_membrane", "current")

    @property
    def variance(self) -> str | None:
        """The membrane's variance; None if there is no noise."""
        return self._decided_on("next_variance", "variance")

    def _decided_on(self, output: str, without_memory: str) -> str | None:
        if self.spikes is None:
            return None
        return output if output in self.outputs else without_memory if without_memory in self.inputs else None

    def value(self, name: str, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> str:
        """Return the name that a node with these inputs and outputs gives the definition's value ``name``."""
        if name in self.outputs:
            return outputs[self.outputs.index(name)]
        return inputs[self.inputs.index(name)]


__all__ = ["DOMAIN", "IR_VERSION", "ONNX_OPSET", "OPS", "READOUTS", "VERSION", "SpikeOp", "function"]

# How each read-out makes one number of those of all time steps; those that add divide by the number of steps.
READOUTS: dict[str, Literal["mean", "last", "maximum"]] = {
    "LeakySum": "mean",
    "IntegerSum": "mean",
    "LeakyLast": "last",
    "LeakyMaximum": "maximum",
}

VERSION = 1
IR_VERSION = 10  # onnxruntime reads it since 1.18 (2024)


_NOISY_DECISION = """
    gap = Sub({membrane}, threshold)
    size = Abs(gap)
    signed_square = Mul(gap, size)
    needed = Neg(signed_square)
    noise_size = Abs(noise)
    noise_square = Mul(noise, noise_size)
    push = Mul({variance}, noise_square)
    fires = GreaterOrEqual(push, needed)
    {spikes} = Cast <to = 1> (fires)"""

_LIF_STATE = ("current", "membrane", "spikes")
_NOISY_STATE = ("current", "arriving_variance", "noise", "membrane", "variance", "spikes")
_LIF_CONSTANTS = ("decay", "threshold")

_SUBTRACT = """
    decayed = Mul(decay, membrane)
    charged = Add(decayed, current)
    reset = Mul(threshold, spikes)
    next_membrane = Sub(charged, reset)"""

_TO_ZERO = """
    one = Constant <value_float = 1.0> ()
    kept = Sub(one, spikes)
    kept_membrane = Mul(membrane, kept)
    decayed = Mul(decay, kept_membrane)
    next_membrane = Add(decayed, current)"""

_GENERAL_CONSTANTS = (*_LIF_CONSTANTS, "zeroed", "taken", "late_zeroed", "late_taken")

_LEFT_BY_SPIKES = """
    one = Constant <value_float = 1.0> ()
    zeroed_now = Mul(zeroed, spikes)
    kept_now = Sub(one, zeroed_now)
    kept = Mul(membrane, kept_now)
    taken_now = Mul(taken, spikes)
    left = Sub(kept, taken_now)
    decayed = Mul(decay, left)
    charged = Add(decayed, current)"""

_LATE_RESET = """
    zeroed_late = Mul(late_zeroed, spikes)
    kept_late = Sub(one, zeroed_late)
    remaining = Mul({charged}, kept_late)
    taken_late = Mul(late_taken, spikes)
    next_membrane = Sub(remaining, taken_late)"""

_FIRE = """
    fires = GreaterOrEqual(next_membrane, threshold)
    next_spikes = Cast <to = 1> (fires)"""

_SPREAD = """
    decay_squared = Mul(decay, decay)
    remembered = Mul(decay_squared, {variance})
    next_variance = Add(remembered, arriving_variance)
    total_variance = Add(next_variance, base_variance)"""

_NOISY_FIRE = _NOISY_DECISION.format(membrane="next_membrane", variance="total_variance", spikes="next_spikes")

_LEAK = ("lost", "scale", "round_above", "round_below", "least")
_SYNAPTIC_LEAK = tuple(f"synaptic_{name}" for name in _LEAK)  # a layer may have both
_RESETS = ("zeroed", "taken", "late_zeroed", "late_taken")


_WHOLE_CONSTANTS = """
    unity = Constant <value_float = 1.0> ()
    one = Cast <to = 6> (unity)
    zero = Sub(one, one)"""


def _whole(*names: str) -> str:
    """Return the lines that convert inputs to int32; a 0 and a 1 come with them."""
    casts = "".join(f"\n    whole_{name} = Cast <to = 6> ({name})" for name in names)
    return casts + _WHOLE_CONSTANTS


# A quotient of integers is rounded towards zero in ONNX, and Mod has the sign of its divisor: so a multiple of the
# divisor is divided, and the quotient is rounded down.
_LEAKED = """
    forward = GreaterOrEqual({left}, zero)
    above = Cast <to = 6> (forward)
    below = Sub(one, above)
    raised_above = Mul(whole_{of}round_above, above)
    raised_below = Mul(whole_{of}round_below, below)
    share = Mul({left}, whole_{of}lost)
    raised = Add(share, raised_above)
    numerator = Add(raised, raised_below)
    rest = Mod(numerator, whole_{of}scale)
    multiple = Sub(numerator, rest)
    quotient = Div(multiple, whole_{of}scale)
    smallest = Min({left}, whole_{of}least)
    leak = Max(quotient, smallest)
    decayed = Sub({left}, leak)"""

_INTEGER_CHARGE = (
    """
    zeroed_now = Mul(whole_zeroed, {fired})
    kept_now = Sub(one, zeroed_now)
    kept = Mul(whole_membrane, kept_now)
    taken_now = Mul(whole_taken, {number})
    left = Sub(kept, taken_now)"""
    + _LEAKED.format(left="left", of="")
    + """
    charged = Add(decayed, whole_current)
    zeroed_late = Mul(whole_late_zeroed, {fired})
    kept_late = Sub(one, zeroed_late)
    remaining = Mul(charged, kept_late)
    taken_late = Mul(whole_late_taken, {number})
    whole_next = Sub(remaining, taken_late)
    next_membrane = Cast <to = 1> (whole_next)"""
)

_LEAK_FORMULA = "d(v) = v − max(⌊(v m + ρ) / 2ˢ⌋, min(v, ℓ))"

OPS: dict[str, SpikeOp] = {
    op.name: op
    for op in (
        SpikeOp(
            "Heaviside",
            "Binary neurons without memory: a neuron fires where its current reaches its threshold.",
            "o = 1 where I ≥ θ",
            ("current",),
            ("threshold",),
            ("spikes",),
            "    fires = GreaterOrEqual(current, threshold)\n    spikes = Cast <to = 1> (fires)",
        ),
        SpikeOp(
            "StochasticHeaviside",
            "Binary neurons whose current is Gaussian: a neuron fires where current and noise together reach "
            "its threshold. The noise is an input, so a pass can be repeated bit by bit.",
            "o = 1 where I + κ ε ≥ θ, decided as κ² (ε|ε|) ≥ d|d| with d = θ − I",
            ("current", "variance", "noise"),
            ("threshold",),
            ("spikes",),
            _NOISY_DECISION.format(membrane="current", variance="variance", spikes="spikes"),
        ),
        SpikeOp(
            "LIF",
            "One time step of leaky integrate-and-fire neurons. A spike subtracts the threshold from the "
            "membrane, at the next time step.",
            "h' = β h + I − θ o;   o' = 1 where h' ≥ θ",
            _LIF_STATE,
            _LIF_CONSTANTS,
            ("next_membrane", "next_spikes"),
            _SUBTRACT + _FIRE,
            reset="subtract",
        ),
        SpikeOp(
            "LIFToZero",
            "One time step of leaky integrate-and-fire neurons. A spike sets the membrane to zero, at the next "
            "time step.",
            "h' = β (h (1 − o)) + I;   o' = 1 where h' ≥ θ",
            _LIF_STATE,
            _LIF_CONSTANTS,
            ("next_membrane", "next_spikes"),
            _TO_ZERO + _FIRE,
            reset="zero",
        ),
        SpikeOp(
            "StochasticLIF",
            "One time step of leaky integrate-and-fire neurons with a Gaussian membrane: mean and variance are "
            "integrated, and the neuron fires with noise that is an input. A spike subtracts the threshold from "
            "the mean, at the next time step; the variance is not reset.",
            "h' = β h + I − θ o;   v' = β² v + Var I;   o' = 1 where h' + κ ε ≥ θ with κ² = v' + σ_base²",
            _NOISY_STATE,
            (*_LIF_CONSTANTS, "base_variance"),
            ("next_membrane", "next_variance", "next_spikes"),
            _SUBTRACT + _SPREAD.format(variance="variance") + _NOISY_FIRE,
            reset="subtract",
        ),
        SpikeOp(
            "StochasticLIFToZero",
            "As StochasticLIF, with a reset to zero: a spike forgets the membrane and its variance, at the next "
            "time step.",
            "h' = β (h (1 − o)) + I;   v' = β² (v (1 − o)) + Var I;   o' as in StochasticLIF",
            _NOISY_STATE,
            (*_LIF_CONSTANTS, "base_variance"),
            ("next_membrane", "next_variance", "next_spikes"),
            _TO_ZERO
            + "\n    kept_variance = Mul(variance, kept)"
            + _SPREAD.format(variance="kept_variance")
            + _NOISY_FIRE,
            reset="zero",
        ),
        SpikeOp(
            "LeakySum",
            "One time step of a read-out: a leaky membrane that never fires, and the sum of it over time. "
            "Logits are the sum over the number of time steps.",
            "h' = β h + I;   s' = s + h'",
            ("current", "membrane", "total"),
            ("decay",),
            ("next_membrane", "next_total"),
            "    decayed = Mul(decay, membrane)\n    next_membrane = Add(decayed, current)\n"
            "    next_total = Add(total, next_membrane)",
        ),
        SpikeOp(
            "LeakyLast",
            "One time step of a read-out that decides by its last time step: a leaky membrane that never fires. Logits "
            "are that membrane, after the last step so far.",
            "h' = β h + I;   s' = h'",
            ("current", "membrane", "total"),
            ("decay",),
            ("next_membrane", "next_total"),
            "    decayed = Mul(decay, membrane)\n    next_membrane = Add(decayed, current)\n"
            "    one = Constant <value_float = 1.0> ()\n    next_total = Mul(next_membrane, one)",
        ),
        SpikeOp(
            "LeakyMaximum",
            "One time step of a read-out that decides by a maximum over time: a leaky membrane that never fires, and "
            "the largest one so far. Logits are that maximum. In the first step there is nothing to compare with, so "
            "that a membrane which is always below zero has a maximum below zero.",
            "h' = β h + I;   s' = h' where h' ≥ s or b = 0, else s;   b' = 1",
            ("current", "membrane", "total", "begun"),
            ("decay",),
            ("next_membrane", "next_total", "next_begun"),
            """
    decayed = Mul(decay, membrane)
    next_membrane = Add(decayed, current)
    one = Constant <value_float = 1.0> ()
    rises = GreaterOrEqual(next_membrane, total)
    higher = Cast <to = 1> (rises)
    lower = Sub(one, higher)
    kept = Mul(lower, begun)
    taken = Sub(one, kept)
    before = Mul(kept, total)
    now = Mul(taken, next_membrane)
    next_total = Add(before, now)
    unbegun = Sub(one, begun)
    next_begun = Add(begun, unbegun)""",
        ),
        SpikeOp(
            "LeakyCurrent",
            "One time step of synapses with a time constant of their own: the current that reaches the neurons decays. "
            "As a layer by itself it is a leaky integrator, whose output is graded.",
            "i' = α i + I",
            ("current", "synaptic"),
            ("synaptic_decay",),
            ("next_synaptic",),
            "    decayed = Mul(synaptic_decay, synaptic)\n    next_synaptic = Add(decayed, current)",
        ),
        SpikeOp(
            "GeneralLIF",
            "One time step of leaky integrate-and-fire neurons as other libraries define them: a spike acts on its "
            "membrane at once (z, r: before the decay) or one step later (Z, R: after it), sets it to zero or takes an "
            "amount from it, which need not be the threshold. With all four zero there is no reset. Neurons that fire "
            "only above θ (>) have the next larger float32 for their threshold, which is the same decision.",
            "h' = (β (h (1 − z o) − r o) + I) (1 − Z o) − R o;   o' = 1 where h' ≥ θ",
            _LIF_STATE,
            _GENERAL_CONSTANTS,
            ("next_membrane", "next_spikes"),
            _LEFT_BY_SPIKES + _LATE_RESET.format(charged="charged") + _FIRE,
        ),
        SpikeOp(
            "AdaptiveLIF",
            "GeneralLIF with adaptation: spikes (and the membrane) raise a value that decays, and that value raises "
            "the threshold (f: ALIF) or lowers the current (g: adLIF).",
            "a' = δ a + c h + b o;   h' = (β (h (1 − z o) − r o) + I − g a') (1 − Z o) − R o;   "
            "o' = 1 where h' ≥ θ + f a'",
            (*_LIF_STATE, "adaptation"),
            (
                *_GENERAL_CONSTANTS,
                *("adaptation_decay", "membrane_share", "spike_share", "current_gain", "threshold_gain"),
            ),
            ("next_membrane", "next_adaptation", "next_spikes"),
            _LEFT_BY_SPIKES
            + """
    remembered = Mul(adaptation_decay, adaptation)
    from_membrane = Mul(membrane_share, membrane)
    raised = Add(remembered, from_membrane)
    from_spikes = Mul(spike_share, spikes)
    next_adaptation = Add(raised, from_spikes)
    held_back = Mul(current_gain, next_adaptation)
    arrived = Sub(charged, held_back)"""
            + _LATE_RESET.format(charged="arrived")
            + """
    lifted = Mul(threshold_gain, next_adaptation)
    level = Add(threshold, lifted)
    fires = GreaterOrEqual(next_membrane, level)
    next_spikes = Cast <to = 1> (fires)""",
        ),
        SpikeOp(
            "ResonateAndFire",
            "One time step of neurons that oscillate: the point (resonance, membrane) is rotated and damped, the "
            "current drives the resonance, and a neuron fires if its membrane reaches its threshold. So it responds "
            "to input at its own frequency. A spike subtracts the threshold from the membrane, at the next time step.",
            "x' = a x − b y + I;   y' = b x + a y − θ o;   o' = 1 where y' ≥ θ",
            (*_LIF_STATE, "resonance"),
            ("kept", "turned", "threshold"),
            ("next_membrane", "next_resonance", "next_spikes"),
            """
    from_resonance = Mul(turned, resonance)
    left = Mul(kept, membrane)
    swung = Add(from_resonance, left)
    reset = Mul(threshold, spikes)
    next_membrane = Sub(swung, reset)
    remaining = Mul(kept, resonance)
    to_membrane = Mul(turned, membrane)
    rotated = Sub(remaining, to_membrane)
    next_resonance = Add(rotated, current)"""
            + _FIRE,
            reset="subtract",
        ),
        SpikeOp(
            "IntegerLIF",
            "One time step of leaky integrate-and-fire neurons in integers. The leak m / 2ˢ of the membrane is rounded "
            "down after ρ is added, which may differ above and below zero: ρ = 2ˢ − 1 rounds the remaining "
            "v (2ˢ − m) / 2ˢ down, 0 rounds it up (with m = 1 that is v − (v >> s)), and 2ˢ − 1 above with 0 below "
            "rounds it towards zero. A positive membrane loses at least ℓ. Resets are those of GeneralLIF. Neurons "
            "that fire only above θ (>) have the threshold θ + 1, which is the same decision.",
            f"v' = (d(v (1 − z o) − r o) + I) (1 − Z o) − R o;   o' = 1 where v' ≥ θ;   {_LEAK_FORMULA}",
            _LIF_STATE,
            (*_LEAK, "threshold", *_RESETS),
            ("next_membrane", "next_spikes"),
            _whole(*_LIF_STATE, *_LEAK, "threshold", *_RESETS)
            + _INTEGER_CHARGE.format(fired="whole_spikes", number="whole_spikes")
            + """
    fires = GreaterOrEqual(whole_next, whole_threshold)
    next_spikes = Cast <to = 1> (fires)""",
            integers=True,
        ),
        SpikeOp(
            "IntegerBurst",
            "IntegerLIF with several spikes in one time step: as many as the membrane holds thresholds, and no more "
            "than n. Each of them takes its amount from the membrane.",
            "v' = (d(v (1 − z b) − r c) + I) (1 − Z b) − R c with b = min(c, 1);   "
            f"c' = min(max(v', 0) / θ rounded down, n);   {_LEAK_FORMULA}",
            ("current", "membrane", "counts"),
            (*_LEAK, "threshold", *_RESETS, "most"),
            ("next_membrane", "next_counts"),
            _whole("current", "membrane", "counts", *_LEAK, "threshold", *_RESETS, "most")
            + "\n    whole_fired = Min(whole_counts, one)"
            + _INTEGER_CHARGE.format(fired="whole_fired", number="whole_counts")
            + """
    positive = Max(whole_next, zero)
    thresholds = Div(positive, whole_threshold)
    several = Min(thresholds, whole_most)
    next_counts = Cast <to = 1> (several)""",
            integers=True,
        ),
        SpikeOp(
            "IntegerCurrent",
            "One time step of synapses with a time constant of their own, in integers: the current that reaches the "
            "neurons decays as the membrane of IntegerLIF does. As a layer by itself its output is graded.",
            f"i' = d(i) + I;   {_LEAK_FORMULA}",
            ("current", "synaptic"),
            _SYNAPTIC_LEAK,
            ("next_synaptic",),
            _whole("current", "synaptic", *_SYNAPTIC_LEAK)
            + _LEAKED.format(left="whole_synaptic", of="synaptic_")
            + """
    charged = Add(decayed, whole_current)
    next_synaptic = Cast <to = 1> (charged)""",
            integers=True,
        ),
        SpikeOp(
            "IntegerSum",
            "One time step of a read-out in integers: a leaky membrane that never fires, and the sum of it over time "
            "in multiples of a power of two, u. Logits are the sum over the number of time steps.",
            f"v' = d(v) + I;   s' = s + u v';   {_LEAK_FORMULA}",
            ("current", "membrane", "total"),
            (*_LEAK, "unit"),
            ("next_membrane", "next_total"),
            _whole("current", "membrane", *_LEAK)
            + _LEAKED.format(left="whole_membrane", of="")
            + """
    charged = Add(decayed, whole_current)
    next_membrane = Cast <to = 1> (charged)
    grown = Mul(next_membrane, unit)
    next_total = Add(total, grown)""",
            integers=True,
        ),
        SpikeOp(
            "RecurrentActivity",
            "The variance that recurrent synapses with one common σ² cause, without the factor σ²: each neuron "
            "receives the spikes of all others, but not its own.",
            "a_i = Σ_k o_k² − o_i²: what reaches neuron i from all others",
            ("spikes",),
            (),
            ("activity",),
            "    squares = Mul(spikes, spikes)\n    axes = Constant <value_ints = [-1]> ()\n"
            "    sum = ReduceSum <keepdims = 1> (squares, axes)\n    activity = Sub(sum, squares)",
        ),
        SpikeOp(
            "PoolPairs",
            "Average pooling of currents over squares of 2 × 2. A current is any real number, so the order of "
            "the additions shows in its bits; here it is fixed. Larger windows are several of these in a row.",
            "((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order",
            ("x",),
            (),
            ("y",),
            """    axes = Constant <value_ints = [-2, -1]> ()
    ends = Constant <value_ints = [9223372036854775807, 9223372036854775807]> ()
    steps = Constant <value_ints = [2, 2]> ()
    at_a = Constant <value_ints = [0, 0]> ()
    at_b = Constant <value_ints = [0, 1]> ()
    at_c = Constant <value_ints = [1, 0]> ()
    at_d = Constant <value_ints = [1, 1]> ()
    a = Slice(x, at_a, ends, axes, steps)
    b = Slice(x, at_b, ends, axes, steps)
    c = Slice(x, at_c, ends, axes, steps)
    d = Slice(x, at_d, ends, axes, steps)
    top = Add(a, b)
    bottom = Add(c, d)
    sum = Add(top, bottom)
    quarter = Constant <value_float = 0.25> ()
    y = Mul(sum, quarter)""",
        ),
    )
}


@cache
def function(name: str) -> onnx.FunctionProto:
    """Return the operator ``name`` as an ONNX local function."""
    from onnx import parser  # the native core is built from the bodies before onnx is installed

    return parser.parse_function(OPS[name].text)
