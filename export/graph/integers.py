"""Integer dynamics: every layer's weights as a few levels, and neurons that count in fractions of a level.

A layer's weights become q · step with |q| ≤ 127, 7 or 1. Its neurons count in units of step / 2^lift, so currents,
biases, thresholds and resets are whole numbers, and the threshold absorbs the step: it need not be a power of two. The
step is that of the least squared error. The lift is the smallest with which a threshold has LEVELS units: then biases
and leaks are rounded by little. A read-out has no threshold. Its step is a power of two, so its sums stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, fx

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.layers import OperatorNeurons
from axonnx.export.collapse.ops import OPERATORS, operator_of
from axonnx.export.graph.capture import Captured, constant, operands
from axonnx.export.graph.ranges import SYNAPSES, Range, input_ranges
from axonnx.export.graph.rounding import Part
from axonnx.models import Network
from axonnx.models.neurons import LeakyMean
from axonnx.runtime.format.certificates import LARGEST_INTEGERS
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.opset import OPS
from axonnx.runtime.format.values import UNITS, Values, graded
from axonnx.runtime.format.widths import NotCertifiedError, bits_of, largest_membrane, most_steps

LEVELS = 128  # least units of a threshold
FINER = 2  # bits of a read-out's membrane below 8-bit weights
MOST_LIFT = 16
LEAK_BITS, FEWEST_LEAK_BITS = 12, 4
SHARES = np.linspace(0.1, 1.0, 91)  # of the largest weight that the largest level may be

aten = torch.ops.aten
PASSING = (
    aten.add.Tensor, aten.view.default, aten.reshape.default, aten.flatten.using_ints, aten.unflatten.int,
    aten.permute.default, aten.transpose.int, aten.max_pool2d.default, aten.unsqueeze.default, aten.squeeze.dim,
)  # fmt: skip  # between synapses and neurons
WITHOUT_INTEGERS = "neurons in integers are made of LIF, GeneralLIF with leaky currents, and binary neurons"


class Placed(NamedTuple):
    """The grid of a synapse whose weights are whole numbers, and the lift of its stored integers."""

    grid: int
    lift: int


@dataclass(frozen=True)
class _Feeding:
    """The synapses behind a layer's current: weight, bias, and what reaches each."""

    names: Sequence[tuple[str, str | None]]
    reached: Sequence[Range]

    @property
    def bits(self) -> int:
        """Return the bits behind the point of the finest input."""
        return max((reached.bits for reached in self.reached), default=0)


@torch.no_grad()
def to_integers(network: Network, captured: Captured, arriving: InputContract, stored: str) -> dict[str, Placed]:
    """Replace a collapsed network's weights and neurons by integers, in place.

    Returns:
        The grid and the lift of each weight tensor that feeds neurons.

    Raises:
        AxonnxError: If a part of the network has no form in integers, or a layer cannot be certified.
    """
    ranges = input_ranges(captured, Range(arriving.x_max, arriving.shift))
    found: dict[str, Placed] = {}
    for node in captured.calls():
        op = operator_of(node.target)
        if op is None or (op == "LeakyCurrent" and _heard_by_neurons(node)):
            continue
        where, make = captured.where(node), MAKERS.get(op)
        if make is None:
            raise AxonnxError(f"{where}: {op} has no form in integers; {WITHOUT_INTEGERS}", options=("weights",))
        feeding = _feeding(captured, node, ranges)
        layer = _Layer(network, where, feeding, LARGEST_INTEGERS[stored], arriving.steps or 1)
        placed = make(layer)
        for weight, _ in feeding.names:
            if weight in found:
                raise AxonnxError(f"{weight}: two layers of neurons hear this synapse; in integers each has its own")
            found[weight] = placed
    if not found:
        raise AxonnxError("no layer of neurons hears a synapse, so nothing is left to compute in integers")
    return found


def _heard_by_neurons(node: fx.Node) -> bool:
    return all(operator_of(user.target) is not None for user in node.users)


def _feeding(captured: Captured, neurons: fx.Node, ranges: Mapping[str, Range | None]) -> _Feeding:
    """Return the synapses whose sum a layer's current is; refuse what changes it on the way."""
    names: list[tuple[str, str | None]] = []
    open_nodes = [operands(neurons)[0]]
    while open_nodes:
        node = open_nodes.pop()
        if node.op == "call_function" and node.target in SYNAPSES:
            _, weight, bias = (*operands(node), None)[:3]
            name = captured.constant_of(weight)
            assert name is not None, "a synapse's weight is a constant"
            names.append((name, captured.constant_of(bias)))
        elif node.op == "call_function" and node.target in PASSING:
            open_nodes += [part for part in operands(node) if isinstance(part, fx.Node)]
        elif node.op == "call_function" and operator_of(node.target) == "LeakyCurrent":
            open_nodes.append(operands(node)[0])
        else:
            what = operator_of(node.target) or str(getattr(node, "target", node))
            raise AxonnxError(
                f"{captured.where(neurons)}: {what} stands between its synapses and it. In integers nothing scales a "
                f"current: fold the scale into the weights, and pool spikes",
                options=("weights",),
            )
    reached = [ranges[weight] for weight, _ in names]
    if any(part is None for part in reached):
        raise AxonnxError(f"{names[0][0]}: real numbers of any size reach this synapse; let spikes or counts enter it")
    return _Feeding(names, [part for part in reached if part is not None])


@dataclass
class _Layer:
    """One layer of neurons with the synapses that it hears."""

    network: Network
    name: str
    feeding: _Feeding
    top: int
    steps: int

    @property
    def module(self) -> Any:
        """Return the layer."""
        return self.network.get_submodule(self.name)

    def step(self, power: bool) -> float:
        """Return the step of the least squared error, over all weights that the layer hears."""
        weights = torch.cat([constant(self.network, weight).double().flatten() for weight, _ in self.feeding.names])
        largest = float(weights.abs().max()) / self.top
        if largest == 0.0:
            return 1.0
        tried = SHARES * largest if not power else 2.0 ** (math.ceil(math.log2(largest)) - np.arange(4.0))
        errors = [float((_levels(weights, step, self.top) * step - weights).square().sum()) for step in tried]
        return float(tried[int(np.argmin(errors))])

    def lifted(self, first: int, attempt: Callable[[int], Any]) -> tuple[int, Any]:
        """Return the first lift that can be certified, beginning with ``first``, and what was made with it."""
        least = self.feeding.bits
        for lift in range(min(max(first, least), MOST_LIFT), least - 1, -1):
            try:
                return lift, attempt(lift)
            except NotCertifiedError as fault:
                refusal = fault
        raise AxonnxError(
            f"{self.name}: {refusal}. Store weights in fewer bits, or let less arrive", options=("weights",)
        )

    def current(self, step: float, lift: int) -> Values:
        """Return what can arrive in a time step once weights and biases are whole numbers."""
        total = sum(
            Part(weight, bias, reached).bound()
            for (weight, bias), reached in zip(self._whole(step, lift), self.feeding.reached, strict=True)
        )
        return graded(total, 0)

    def place(self, step: float, lift: int) -> Placed:
        """Write the whole numbers into the network."""
        for (weight, bias), (whole, offset) in zip(self.feeding.names, self._whole(step, lift), strict=True):
            constant(self.network, weight).copy_(whole)
            if bias is not None and offset is not None:
                constant(self.network, bias).copy_(offset)
        return Placed(-self.feeding.bits, lift)

    def _whole(self, step: float, lift: int) -> list[tuple[Tensor, Tensor | None]]:
        """Weights and biases in units; where inputs are fractions, both are multiples of what makes them whole."""
        unit, fraction = step * 2.0**-lift, 2.0**self.feeding.bits
        found = []
        for weight, bias in self.feeding.names:
            levels = _levels(constant(self.network, weight).double(), step, self.top)
            offset = None if bias is None else constant(self.network, bias).double() / (unit * fraction)
            found.append((levels * 2.0**lift, None if offset is None else offset.round() * fraction))
        return found


def _levels(weights: Tensor, step: float, top: int) -> Tensor:
    return (weights / step).round().clamp(-top, top)


def leak(decay: Tensor, bits: int = LEAK_BITS, prefix: str = "") -> dict[str, Tensor]:
    """Return the constants of a leak: the share 1 − β in 2⁻ˢ, rounded to the nearest, and so are membranes.

    A share that is a power of two becomes a shift.
    """
    share = 1.0 - decay.double()
    if not bool(((share > 0) & (share <= 1)).all()):
        raise NotCertifiedError(
            f"it keeps {float(decay.max()):g} of its membrane; in integers a membrane must leak, or it has no bound"
        )
    exact = int(torch.log2(share.min()).neg().round())
    if bool((share == 2.0**-exact).all()):
        bits = exact
    lost = (share * 2.0**bits).round().clamp(1, 2.0**bits)
    half = torch.full_like(lost, 2.0 ** (bits - 1) if bits else 0.0)
    found = {
        "lost": lost,
        "scale": torch.full_like(lost, 2.0**bits),
        "round_above": half,
        "round_below": half.clone(),
        "least": torch.zeros_like(lost),
    }
    return {prefix + name: value.float() for name, value in found.items()}


def _certified(op: str, current: Values, made: Callable[[int], dict[str, Tensor]]) -> tuple[int, dict[str, Tensor]]:
    """Return the largest membrane, and constants with as many bits of leak as can be certified."""
    for bits in range(LEAK_BITS, FEWEST_LEAK_BITS - 1, -1):
        constants = made(bits)
        held = {name: constants[name].numpy() for name in OPS[op].parameters}
        try:
            return largest_membrane(OPS[op], current, held), constants
        except NotCertifiedError as fault:
            refusal = fault
    raise refusal


def _resets(module: Any, op: str, unit: float, threshold: Tensor) -> dict[str, Tensor]:
    """Return when and how a spike resets its membrane, in units."""
    nothing = torch.zeros_like(threshold)
    found = dict.fromkeys(("zeroed", "taken", "late_zeroed", "late_taken"), nothing)
    if op == "LIF":
        found["late_taken"] = threshold.clone()
    elif op == "LIFToZero":
        found["zeroed"] = torch.ones_like(threshold)
    else:
        for name in found:
            value = getattr(module, name).float()
            found[name] = value if name.endswith("zeroed") else (value / unit).round()
    return found


def _spiking(layer: _Layer) -> Placed:
    """Make a layer of leaky integrate-and-fire neurons, behind synaptic currents if it has them."""
    module, step = layer.module, layer.step(power=False)
    *before, last = module.operators

    def attempt(lift: int) -> tuple[int, dict[str, Tensor]]:
        unit, current = step * 2.0**-lift, layer.current(step, lift)
        threshold = (module.threshold.double() / unit).round().float()
        constants: dict[str, Tensor] = {}
        if before:
            make = partial(leak, module.synaptic_decay, prefix="synaptic_")
            largest, constants = _certified("IntegerCurrent", current, make)
            current = graded(largest, 0)
        fixed = {"threshold": threshold, **_resets(module, last, unit, threshold)}
        largest, own = _certified("IntegerLIF", current, lambda bits: {**leak(module.decay, bits), **fixed})
        return largest, {**constants, **own}

    first = math.ceil(math.log2(max(LEVELS * step / float(module.threshold.min()), 1.0)))
    lift, (largest, constants) = layer.lifted(first, attempt)
    placed = layer.place(step, lift)
    operators = ("IntegerCurrent", "IntegerLIF") if before else ("IntegerLIF",)
    made: Any = OperatorNeurons(operators, constants, module.recurrent_weight)
    made.width, made.counts_in = bits_of(largest), step * 2.0**-lift
    parent, _, name = layer.name.rpartition(".")
    setattr(layer.network.get_submodule(parent), name, made)
    return placed


def _binary(layer: _Layer) -> Placed:
    """Make a layer of binary neurons: a whole current reaches θ where it reaches the next whole number."""
    module, step = layer.module, layer.step(power=False)

    def attempt(lift: int) -> None:
        if not layer.current(step, lift).dyadic:
            raise NotCertifiedError(f"its current can reach {UNITS}")

    lift, _ = layer.lifted(_fineness(layer), attempt)
    placed = layer.place(step, lift)
    module.threshold = (module.threshold.double() / (step * 2.0**-lift)).ceil().float()
    module.counts_in = step * 2.0**-lift
    return placed


def _fineness(layer: _Layer) -> int:
    """Return the lift with which a unit is as fine as that of 8-bit weights, and finer by FINER bits."""
    return math.ceil(math.log2(LARGEST_INTEGERS["int8"] / layer.top)) + FINER


def _readout(layer: _Layer) -> Placed:
    """Make a read-out: its unit is a power of two, so that logits need no other scale."""
    module: Any = layer.module
    if not isinstance(module, LeakyMean) or not layer.feeding.names:
        raise AxonnxError(f"{layer.name}: a read-out without weights has no form in integers", options=("weights",))
    step = layer.step(power=True)

    def attempt(lift: int) -> tuple[int, dict[str, Tensor]]:
        unit = {"unit": torch.tensor(step * 2.0**-lift)}
        made = _certified("IntegerSum", layer.current(step, lift), lambda bits: {**leak(module.decay, bits), **unit})
        if most_steps(made[0]) < layer.steps:
            raise NotCertifiedError(f"the sum of its membranes over {layer.steps} time steps can reach {UNITS}")
        return made

    lift, (largest, constants) = layer.lifted(_fineness(layer), attempt)
    placed = layer.place(step, lift)
    made: Any = module
    for name, value in constants.items():
        made.register_buffer(name, value)
    del made.decay
    made.op, made.constants, made.operator = "IntegerSum", OPS["IntegerSum"].parameters, OPERATORS["IntegerSum"]
    made.width, made.counts_in = bits_of(largest), step * 2.0**-lift
    return placed


MAKERS: dict[str, Callable[[_Layer], Placed]] = {
    "LIF": _spiking,
    "LIFToZero": _spiking,
    "GeneralLIF": _spiking,
    "Heaviside": _binary,
    "LeakySum": _readout,
}
