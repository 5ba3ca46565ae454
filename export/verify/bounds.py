"""How far a file's membranes may be from those of the training network, given the same spikes.

Between given spikes a membrane is linear in the weights, so an error of the weights reaches it through the same network
as the weights do: a copy of the network whose weights are the *errors* allowed, fed with absolute values, sums up
exactly the largest deviation there can be, through every wiring a user may have written:

    E[t] = β E[t−1] + ½ Σ_j 2^−s |x_j| + …          (half a grid step for each weight and bias)

A second copy with the weights' absolute values gives the size M of the numbers that are added up, and with it the
rounding of the float32 operations of each step, k u M[t], which leaks like the membrane: R[t] = β R[t−1] + k u M[t].
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from axonnx.export.verify.expected import FEW, UNIT, fold, over_rows, through_time
from axonnx.models import LIF, MEAN_FIELD, BinaryNeuron, Forced, LeakyReadout, LinearReadout, Network, SpikingNetwork
from axonnx.models.general import DirectReadout, GeneralLIF, LeakyCurrent
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.network import Output
from axonnx.models.neurons import hold_threshold
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.synapses import Synapse

Amount = Callable[[str, Tensor], Tensor]  # what stands for the weights of a name and value


@dataclass(frozen=True)
class Bounds:
    """The largest deviation of each membrane, of its variance, and of the logits."""

    membranes: Mapping[str, Tensor]
    variances: Mapping[str, Tensor]
    logits: Tensor


class Bounding:
    """The two copies of one reference network, made once and run for each batch."""

    def __init__(self, reference: Network, grids: Mapping[str, int]) -> None:
        self.reference = reference
        self.errors = _amounts(reference, lambda name, _value: torch.tensor(_half_step(grids, name)), -0.0)
        self.sizes = _amounts(reference, lambda _name, value: value.abs(), -1.0)
        self.leaks = any(isinstance(module, LeakyCurrent) for module in reference.modules())
        synapses = sum(isinstance(module, Synapse) for module in reference.modules())
        self.roundings = 2 * FEW + synapses  # of one step: a constant's, the neuron's, and those of sums of currents

    @torch.no_grad()
    def of(self, x: Tensor, output: Output) -> Bounds:
        """The bounds for input ``x`` where layers fire as in ``output``."""
        spikes = {name: seen.spikes for name, seen in output.observations.items()}
        error, size = (network(x, Forced(spikes, MEAN_FIELD)) for network in (self.errors, self.sizes))
        unit, steps = self.roundings * UNIT, x.shape[0] if isinstance(self.reference, SpikingNetwork) else 1
        membranes, variances = {}, {}
        for name, seen in size.observations.items():
            rounding = self._leaked(name, unit * seen.gap)
            membranes[name] = error.observations[name].gap + rounding
            known, bound = output.observations[name].variance, error.observations[name].variance
            if known is not None and bound is not None:
                variances[name] = bound + self._leaked(name, unit * known)
        times = steps * (steps if self.leaks else 1)
        return Bounds(membranes, variances, error.logits + times * unit * size.logits)

    def _leaked(self, name: str, step_errors: Tensor) -> Tensor:
        """R[t] = β R[t−1] + r[t]"""
        neuron = self.reference.get_submodule(name)
        if isinstance(neuron, GeneralLIF):
            return self._leaked_by(neuron, step_errors)
        if not isinstance(neuron, LIF):
            return step_errors
        total, found = torch.zeros_like(step_errors[0]), []
        for now in step_errors:
            total = neuron.decay * total + now
            found.append(total)
        return torch.stack(found)

    def _leaked_by(self, neuron: GeneralLIF, step_errors: Tensor) -> Tensor:
        """R[t] = β R[t−1] + R_i[t] + A[t], where R_i = α R_i + r of a synaptic current, and A of an adaptation.

        Adaptation acts by its gains: A = (|g| + |f|) R_a, and R_a = δ R_a + |c| R + r. A leaky current before the
        neurons has decays of its own; r is then taken as if nothing had ever leaked.
        """
        if self.leaks:
            step_errors = step_errors.cummax(0).values * len(step_errors)
        by = neuron.adaptation
        alpha = torch.zeros(()) if neuron.synaptic_decay is None else neuron.synaptic_decay.abs()
        current = adapted = total = torch.zeros_like(step_errors[0])
        found = []
        for now in step_errors:
            current = alpha * current + now
            if by is not None:
                gains = by.current_gain.abs() + by.threshold_gain.abs()
                adapted = by.adaptation_decay.abs() * adapted + gains * by.membrane_share.abs() * total + now
            total = neuron.dynamics.decay.abs() * total + current + adapted
            found.append(total)
        return torch.stack(found)


def _half_step(grids: Mapping[str, int], name: str) -> float:
    return 2.0 ** -(grids[name] + 1) if name in grids else 0.0


@torch.no_grad()
def _amounts(reference: Network, amount: Amount, threshold: float) -> Network:
    """A copy that carries amounts instead of weights; thresholds times ``threshold``, so that a reset adds up."""
    network = copy.deepcopy(reference)
    for name, module in network.named_modules():
        where = f"{name}."
        if isinstance(module, Synapse):
            _synapse(module, where, amount)
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.bias.copy_(amount(where + "weight", module.bias).expand_as(module.bias))
            module.weight.copy_(amount(where + "weight", module.weight).expand_as(module.weight))
        if isinstance(module, LIF):
            module.log_base_std = None
            if module.recurrent is not None:
                posterior = module.recurrent.posterior
                _fill(posterior, amount(where + "recurrent_weight", posterior.mean), where + "recurrent_spread", amount)
        if isinstance(module, GeneralLIF):
            _general(module, where, amount, threshold)
        if isinstance(module, LIF | BinaryNeuron):
            hold_threshold(module, threshold * module.threshold.abs())
        if isinstance(module, DirectReadout) and threshold == 0.0:
            module.register_forward_pre_hook(_without_spikes)
        if isinstance(module, Synapse | LeakyReadout | LinearReadout):
            module.register_forward_pre_hook(lambda _module, given: (given[0].abs(), *given[1:]))
    return network


def _general(neuron: GeneralLIF, where: str, amount: Amount, threshold: float) -> None:
    """Resets, thresholds and adaptation so that everything adds up; constants are the file's own, without an error."""
    if neuron.recurrent is not None:
        posterior = neuron.recurrent.posterior
        posterior.raw_mean.copy_(amount(where + "recurrent_weight", posterior.mean).expand_as(posterior.raw_mean))
    for name in ("decay", "synaptic_decay", "adaptation_decay", "membrane_share"):
        if getattr(neuron, name, None) is not None:
            setattr(neuron, name, getattr(neuron, name).abs())
    for name in ("threshold", "taken", "late_taken"):
        setattr(neuron, name, threshold * getattr(neuron, name).abs())
    if neuron.adaptive:
        neuron.spike_share = -threshold * cast(Tensor, neuron.spike_share).abs()
        for name in ("current_gain", "threshold_gain"):
            setattr(neuron, name, -getattr(neuron, name).abs())


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
