"""The constants that a file must hold, from the training network by the formulas of the design.

    weight      a ⊙ m            bias      b                 a, b: scale and bias, or what batch norm amounts to
    gain        a² σ²            spread    a² σ² for each weight
    step_scale  a at each step   step_bias b at each step    step_gain a² at each step, and then gain and spread without

in double precision, each with the error that a file may have: half a step of its grid where it has one, and the
rounding of the few float32 operations that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from axonnx.models import GaussianPosterior, LeakyReadout, LinearReadout, Network
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import BatchNorm
from axonnx.models.synapses import Synapse
from axonnx.runtime.format.opset import OPS

UNIT = 2.0**-24  # largest relative error of one float32 operation
FEW = 8  # operations behind a constant at the most: a root, its inverse, products, an exponential


@dataclass(frozen=True)
class Expected:
    """A constant's value, what its rounding is relative to, and the weight whose grid it is on, if any."""

    value: Tensor
    size: Tensor
    grid_of: str | None = None

    def tolerance(self, grids: Mapping[str, int]) -> Tensor:
        """The largest error that is no fault."""
        half = 0.0 if self.grid_of is None else 2.0 ** -(grids[self.grid_of] + 1)
        return half + FEW * UNIT * self.size


class Folded(NamedTuple):
    """a, b and the size of the terms that b is a difference of; [channels], or [steps, channels]."""

    scale: Tensor
    bias: Tensor | None
    bias_size: Tensor


def fold(synapse: Synapse) -> Folded:
    """a = γ/√(v + ε), b = β − μ a of batch norm; a and b themselves of a scale."""
    norm = synapse.norm
    if norm is None:
        one = torch.ones(len(synapse.posterior.raw_mean), dtype=torch.float64)
        return Folded(one, None, torch.zeros_like(one))
    if not isinstance(norm, BatchNorm):
        return Folded(norm.scale, norm.bias, norm.bias.abs())
    scale = norm.scale / torch.sqrt(norm.running_variance + norm.epsilon)
    shift = norm.running_mean * scale
    return Folded(scale, norm.bias - shift, norm.bias.abs() + shift.abs())


def through_time(synapse: Synapse) -> bool:
    """Whether scale and bias differ from step to step, so that they stay apart from the weights."""
    return synapse.norm is not None and synapse.norm.steps is not None


def over_rows(vector: Tensor, like: Tensor) -> Tensor:
    """[out] to broadcast over [out, …]."""
    return vector.reshape(-1, *(1,) * (like.dim() - 1))


@torch.no_grad()
def expected_constants(network: Network, prefix: str, stochastic: bool) -> dict[str, Expected]:
    """Every constant that training made, by its name in the file."""
    found: dict[str, Expected] = {}
    for name, module in network.named_modules():
        where = f"{prefix}{name}."
        if isinstance(module, Synapse):
            found |= _of_synapse(module, where, stochastic)
        elif isinstance(module, Neurons):
            found |= _of_neurons(module, where, stochastic)
        elif isinstance(module, LeakyReadout | LinearReadout):
            found |= _of_readout(module, where)
    return found


def _of_synapse(synapse: Synapse, where: str, stochastic: bool) -> dict[str, Expected]:
    mean, (scale, bias, size), weight = synapse.posterior.mean, fold(synapse), where + "weight"
    if through_time(synapse):
        assert bias is not None
        steps = {where + "step_scale": _plain(scale), where + "step_bias": Expected(bias, size)}
        if stochastic and synapse.posterior.log_std is not None:
            steps |= {where + "step_gain": _plain(scale * scale)}
            steps |= _variances(synapse.posterior, where, "", torch.ones_like(scale[0]))
        return {weight: _plain(mean, weight), **steps}
    found = {weight: _plain(mean * over_rows(scale, mean), weight)}
    if bias is not None:
        found[where + "bias"] = Expected(bias, size, weight)
    return found | (_variances(synapse.posterior, where, "", scale) if stochastic else {})


def _of_neurons(neuron: Neurons, where: str, stochastic: bool) -> dict[str, Expected]:
    """The constants of its operators; those that the layer holds as they are must be the file's own."""
    found, constants, held = {}, neuron.constants(), dict(neuron.named_buffers(recurse=False, remove_duplicate=False))
    for name in (name for op in neuron.operators(stochastic) for name in OPS[op].parameters):
        exact = Expected(constants[name].float().double(), torch.zeros_like(constants[name]))
        found[where + name] = exact if name in held else _plain(constants[name])
    if neuron.recurrent is not None:
        posterior, weight = neuron.recurrent.posterior, where + "recurrent_weight"
        found[weight] = _plain(posterior.mean, weight)
        if stochastic:
            found |= _variances(posterior, where, "recurrent_", torch.ones(()))
    return found


def _of_readout(readout: LeakyReadout | LinearReadout, where: str) -> dict[str, Expected]:
    weight = where + "weight"
    found = {weight: _plain(readout.weight, weight), where + "bias": _plain(readout.bias, weight)}
    if isinstance(readout, LeakyReadout):
        found[where + "decay"] = _plain(readout.decay)
    return found


def _variances(posterior: GaussianPosterior, where: str, kind: str, scale: Tensor) -> dict[str, Expected]:
    """a² σ²: a number for each channel where all weights of a neuron share σ, for each weight elsewhere."""
    if posterior.log_std is None:
        return {}
    variance = torch.exp(posterior.log_std) ** 2
    if posterior.granularity == "weight":
        squares = variance * over_rows(scale, posterior.raw_mean) ** 2
        name = f"{where}{kind}spread"
        return {name: _plain(squares if posterior.mask is None else squares * posterior.mask, name)}
    gain = variance.flatten() * scale**2
    return {f"{where}{kind}gain": _plain(gain.reshape(-1, *(1,) * (posterior.raw_mean.dim() - 2)))}


def _plain(value: Tensor, grid_of: str | None = None) -> Expected:
    value = value.detach().double()
    return Expected(value, value.abs(), grid_of)
