"""How far a file's membranes may be from those of the training network, given the same spikes.

Between given spikes a current is linear in the weights, so an error of the weights reaches it through the same network
as the weights do: a copy of the network whose weights are the *errors* allowed, fed with absolute values, sums up
exactly the largest deviation there can be, through every wiring a user may have written:

    E[t] = ½ Σ_j 2^−s |x_j| + …          (half a grid step for each weight and bias)

A second copy with the weights' absolute values gives the size M of the numbers that are added up, and with it the
rounding of the float32 operations, k u M[t]. From there on the operators' own bodies are followed, operation by
operation, with a value and the largest error that it can have: a running error analysis, which holds for any neuron.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from axonnx.export.verify.constants_check import FEW, UNIT, fold, over_rows, through_time
from axonnx.models import MEAN_FIELD, Forced, LeakyReadout, LinearReadout, Network, SpikingNetwork
from axonnx.models.general import DirectReadout, LeakyCurrent
from axonnx.models.maths.current import Current
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.network import Output
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.synapses import Synapse
from axonnx.runtime.codegen.expressions import assignments
from axonnx.runtime.format.opset import OPS, SpikeOp

Amount = Callable[[str, Tensor], Tensor]  # what stands for the weights of a name and value
DECISION = "decision"


class Inexact(NamedTuple):
    """A number in double precision, and how far a file's float32 may be from it."""

    value: Tensor
    error: Tensor


@dataclass(frozen=True)
class LayerBounds:
    """The largest deviation of a layer's membranes, where its decision may go either way, and that of variances."""

    membrane: Tensor
    undecided: Tensor
    variance: Tensor | None = None


@dataclass(frozen=True)
class Bounds:
    """What may deviate by how much: layers by name, and the logits."""

    layers: Mapping[str, LayerBounds]
    logits: Tensor


class Bounding:
    """The two copies of one reference network, made once and run for each batch; the reference keeps its currents."""

    def __init__(self, reference: Network, grids: Mapping[str, int]) -> None:
        self.reference = reference
        self.errors = _amounts(reference, lambda name, _value: torch.tensor(_half_step(grids, name)), errors=True)
        self.sizes = _amounts(reference, lambda _name, value: value.abs(), errors=False)
        self.leaks = any(isinstance(module, LeakyCurrent) for module in reference.modules())
        synapses = sum(isinstance(module, Synapse) for module in reference.modules())
        self.roundings = 2 * FEW + synapses  # of one step: a constant's, and those of sums of currents

    @torch.no_grad()
    def of(self, x: Tensor, output: Output, noise: Mapping[str, Tensor]) -> Bounds:
        """Return the bounds for input ``x`` where layers fire as in ``output``, with this ``noise``."""
        spikes = {name: seen.spikes for name, seen in output.observations.items()}
        error, size = (network(x, Forced(spikes, MEAN_FIELD)) for network in (self.errors, self.sizes))
        timed = isinstance(self.reference, SpikingNetwork)
        unit, steps = self.roundings * UNIT, len(x) if timed else 1
        layers = {}
        for name, fired in spikes.items():
            current, wrong, largest = (_current(found, name) for found in (output, error, size))
            rounding = unit * largest.mean
            if self.leaks:  # a leaky current has decays of its own: as if nothing had ever leaked
                rounding = rounding.cummax(0).values * steps
            given = {"current": Inexact(current.mean, wrong.mean + rounding), "spikes": exact(fired)}
            if name in noise:
                given |= {"noise": exact(noise[name]), "variance": _variance(current, wrong, unit)}
            layers[name] = self._layer(name, given, timed)
        times = steps * (steps if self.leaks else 1)
        return Bounds(layers, error.logits + times * unit * size.logits)

    def _layer(self, name: str, given: Mapping[str, Inexact], timed: bool) -> LayerBounds:
        """Return a layer's operators over all time steps, from rest."""
        neuron = self.reference.get_submodule(name)
        assert isinstance(neuron, Neurons)
        ops = [OPS[op] for op in neuron.operators("noise" in given)]
        constants = {key: Inexact(value, FEW * UNIT * value.abs()) for key, value in neuron.constants().items()}
        zeros = exact(torch.zeros_like(given["current"].value[0] if timed else given["current"].value))
        state, found = dict.fromkeys((state for op in ops for state in op.states), zeros), []
        for now in _steps(given) if timed else [given]:
            values = {**now, **constants, **state}
            if ops[-1].states and "variance" in now:
                values["arriving_variance"] = now["variance"]
            for op in ops:
                follow(op, values, now["spikes"])
                if op is not ops[-1]:
                    values["current"] = values[op.outputs[0]]
            state = {key: values[f"next_{key}"] for key in state}
            found.append([values[key].error for key in (ops[-1].membrane, DECISION, ops[-1].variance) if key])
        return LayerBounds(*(torch.stack(errors) if timed else errors[0] for errors in zip(*found, strict=True)))


def exact(value: Tensor) -> Inexact:
    """Return a number without an error."""
    return Inexact(value.double(), torch.zeros_like(value, dtype=torch.float64))


def follow(op: SpikeOp, values: dict[str, Inexact], spikes: Inexact) -> None:
    """Add the results of an operator's body to ``values``; its spikes are given, and ``DECISION`` is what they decide.

    A comparison's value is whether a neuron fires, its error whether that may be wrong.
    """
    for step in assignments(op):
        parts = [values[name] for name in step.inputs]
        if step.operation == "Cast":
            values |= {DECISION: parts[0], step.output: spikes}
        else:
            values[step.output] = OPERATIONS[step.operation](*parts, *filter(None, [step.value]))


def _sum(sign: int) -> Callable[..., Inexact]:
    return lambda a, b: _rounded(a.value + sign * b.value, a.error + b.error)


def _product(a: Inexact, b: Inexact) -> Inexact:
    return _rounded(a.value * b.value, a.value.abs() * b.error + b.value.abs() * a.error + a.error * b.error)


def _rounded(value: Tensor, error: Tensor) -> Inexact:
    """Return a result of float32: what it inherits, and half a unit in the last place of what is rounded."""
    return Inexact(value, error + UNIT * (value.abs() + error))


OPERATIONS: dict[str, Callable[..., Inexact]] = {
    "Add": _sum(1),
    "Sub": _sum(-1),
    "Mul": _product,
    "GreaterOrEqual": lambda a, b: Inexact(a.value >= b.value, (a.value - b.value).abs() <= a.error + b.error),
    "Abs": lambda a: Inexact(a.value.abs(), a.error),
    "Neg": lambda a: Inexact(-a.value, a.error),
    "Constant": lambda number: exact(torch.tensor(float(number))),
}


def _steps(given: Mapping[str, Inexact]) -> Iterator[dict[str, Inexact]]:
    """Return the values of each time step."""
    for t in range(len(given["current"].value)):
        yield {key: Inexact(part.value[t], part.error[t]) for key, part in given.items()}


def _current(output: Output, name: str) -> Current:
    assert output.currents is not None, "a network that is bounded keeps its currents"
    return output.currents[name]


def _variance(current: Current, wrong: Current, unit: float) -> Inexact:
    variance, error = current.variance, wrong.variance
    assert variance is not None
    return Inexact(variance, unit * variance + (0.0 if error is None else error))


def _half_step(grids: Mapping[str, int], name: str) -> float:
    return 2.0 ** -(grids[name] + 1) if name in grids else 0.0


@torch.no_grad()
def _amounts(reference: Network, amount: Amount, errors: bool) -> Network:
    """Return a copy that carries amounts instead of weights, and keeps what reaches its neurons."""
    network = copy.deepcopy(reference)
    network.keeps_currents = True
    for name, module in network.named_modules():
        where = f"{name}."
        if isinstance(module, Synapse):
            _synapse(module, where, amount)
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.bias.copy_(amount(where + "weight", module.bias).expand_as(module.bias))
            module.weight.copy_(amount(where + "weight", module.weight).expand_as(module.weight))
        if isinstance(module, Neurons) and module.recurrent is not None:
            posterior = module.recurrent.posterior
            _fill(posterior, amount(where + "recurrent_weight", posterior.mean), where + "recurrent_spread", amount)
        if isinstance(module, DirectReadout) and errors:
            module.register_forward_pre_hook(_without_spikes)
        if isinstance(module, Synapse | LeakyReadout | LinearReadout):
            module.register_forward_pre_hook(lambda _module, given: (given[0].abs(), *given[1:]))
    return network


def _without_spikes(_module: nn.Module, given: tuple[object, ...]) -> tuple[object, ...]:
    """Spikes that are read out as they are have no error."""
    return (torch.zeros_like(given[0]), *given[1:]) if isinstance(given[0], Tensor) else given


def _synapse(synapse: Synapse, where: str, amount: Amount) -> None:
    scale, bias, size = fold(synapse)
    mean, posterior = synapse.posterior.mean, synapse.posterior
    if through_time(synapse):
        assert synapse.norm is not None
        _fill(posterior, amount(where + "weight", mean), where + "spread", amount)
        synapse.norm.scale.copy_(scale.abs())
        synapse.norm.bias.copy_(amount("", size).expand_as(size))
        if isinstance(synapse.norm, BatchNorm):
            synapse.norm.running_mean.zero_()
            synapse.norm.running_variance.fill_(1.0 - synapse.norm.epsilon)
        return
    _fill(posterior, amount(where + "weight", mean * over_rows(scale, mean)), where + "spread", amount)
    synapse.norm = ChannelScale(len(mean)).double().requires_grad_(False)
    if bias is not None:
        synapse.norm.bias.copy_(amount(where + "weight", size).expand_as(size))


def _fill(posterior: GaussianPosterior, means: Tensor, variances: str, amount: Amount) -> None:
    """Amounts for means and, where variances are on a grid of their own, for those."""
    posterior.raw_mean.copy_(means.expand_as(posterior.raw_mean))
    if posterior.log_std is not None:
        variance = amount(variances, torch.zeros_like(posterior.raw_mean)).double().expand_as(posterior.raw_mean)
        posterior.granularity = "weight"
        posterior.log_std = nn.Parameter(0.5 * torch.log(variance), requires_grad=False)
