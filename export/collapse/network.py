"""Collapse: a network with a posterior in, an ordinary network with constant weights out.

``mfa`` keeps the posterior means; ``sampled`` draws weight sets from the posterior; ``stochastic`` keeps means and
variances, and neurons that fire with noise. Scale and bias, or batch norm, are folded into the weights.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.layers import (
    CollapsedCurrent,
    CollapsedDelay,
    CollapsedNeurons,
    CollapsedPool,
    CollapsedReadout,
    CollapsedSynapse,
)
from axonnx.models import AveragePool2d, GaussianPosterior, LeakyReadout, LinearReadout, Network
from axonnx.models.checking import INSTEAD, LAYERS
from axonnx.models.delays import DelayLine
from axonnx.models.general import DirectReadout, LeakyCurrent
from axonnx.models.neurons import Neurons
from axonnx.models.synapses import Conv2d, Synapse

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
Mode = Literal["mfa", "sampled", "stochastic"]


@dataclass(frozen=True)
class WeightChoice:
    """Which weights stand for a posterior: its means, or a draw from it; pruned where |mean|/std is too small."""

    generator: torch.Generator | None = None
    prune: float | None = None

    def __call__(self, posterior: GaussianPosterior) -> Tensor:
        """The weight tensor."""
        weight = posterior.mean.detach() if self.generator is None else posterior.sample(self.generator)
        return weight.clone() if self.prune is None else weight * self.kept(posterior)

    def kept(self, posterior: GaussianPosterior) -> Tensor:
        """The pruning mask: 1 for weights that stay, 0 where |mean|/std is below the limit."""
        if posterior.log_std is None or self.prune is None:
            return torch.ones_like(posterior.raw_mean)
        return (posterior.mean.abs() >= self.prune * posterior.std).to(posterior.raw_mean.dtype).detach()


@torch.no_grad()
def collapse(network: Network, choose: WeightChoice, stochastic: bool = False) -> Network:
    """A copy of ``network`` in which every layer is a constant; ``compute`` and all names stay as they are."""
    _refuse_second_names(network)
    collapsed = copy.deepcopy(network).cpu().float().eval()
    for name, module in list(collapsed.named_modules()):
        replacement = _replacement(module, choose, stochastic)
        if replacement is not None:
            _put(collapsed, name, replacement)
    _refuse_leftovers(collapsed)
    return collapsed


def needs_posterior(network: Network) -> None:
    """Refuse to sample from a network that has no posterior."""
    posteriors = [module for module in network.modules() if isinstance(module, GaussianPosterior)]
    if all(posterior.log_std is None for posterior in posteriors):
        raise AxonnxError(
            "this network has no posterior (a surrogate-gradient baseline): only the mode mfa has a meaning for it"
        )


def _replacement(module: nn.Module, choose: WeightChoice, stochastic: bool) -> nn.Module | None:
    if isinstance(module, Synapse):
        return _synapse(module, choose, stochastic)
    if isinstance(module, Neurons):
        return _neurons(module, choose, stochastic)
    if isinstance(module, LeakyCurrent):
        return CollapsedCurrent(module.decay.clone())
    if isinstance(module, DelayLine):
        return CollapsedDelay(module.delays)
    if isinstance(module, DirectReadout):
        return CollapsedReadout(None, None, module.decay.clone())
    if isinstance(module, DROPOUT):
        return nn.Identity()  # after training it is
    if isinstance(module, AveragePool2d):
        return CollapsedPool(module.window)
    if isinstance(module, LeakyReadout):
        return CollapsedReadout(module.weight.detach().clone(), module.bias.detach().clone(), module.decay.clone())
    if isinstance(module, LinearReadout):
        return CollapsedReadout(module.weight.detach().clone(), module.bias.detach().clone(), None)
    return None


def _synapse(module: Synapse, choose: WeightChoice, stochastic: bool) -> CollapsedSynapse:
    posterior, norm = module.posterior, module.norm
    geometry: dict[str, Any] = {}
    if isinstance(module, Conv2d):
        geometry = {key: getattr(module, key) for key in ("stride", "padding", "dilation", "groups")}
    weight = choose(posterior)
    per_step = None
    scale, bias = torch.ones(len(weight)), None
    if norm is not None and norm.steps is not None:
        per_step = norm.folded()[0].detach().clone(), norm.folded()[1].detach().clone()
    elif norm is not None:
        scale, bias = (part.detach().clone() for part in norm.folded())
    noisy = stochastic and posterior.log_std is not None
    gain, spread = _variances(posterior, scale, choose) if noisy else (None, None)
    weight = weight * scale.reshape(-1, *(1,) * (weight.dim() - 1))
    return CollapsedSynapse(weight, bias, gain=gain, spread=spread, per_step=per_step, **geometry)


def _variances(
    posterior: GaussianPosterior, scale: Tensor, choose: WeightChoice
) -> tuple[Tensor | None, Tensor | None]:
    """a² σ² for each channel where σ is shared, for each weight elsewhere."""
    dim = posterior.raw_mean.dim()
    if posterior.granularity != "weight" and choose.prune is None:
        gain = posterior.variance.detach().flatten() * scale.square()
        return gain.reshape(-1, *(1,) * (dim - 2)), None
    rows = (-1, *(1,) * (dim - 1))
    return None, posterior.full_variance.detach() * scale.square().reshape(rows) * choose.kept(posterior)


def _neurons(module: Neurons, choose: WeightChoice, stochastic: bool) -> CollapsedNeurons:
    try:
        operators = module.operators(stochastic)
    except ValueError as refusal:
        raise AxonnxError(str(refusal)) from None
    if module.recurrent is None:
        return CollapsedNeurons(operators, module.constants())
    posterior, gain, spread = module.recurrent.posterior, None, None
    if stochastic and (posterior.granularity == "weight" or choose.prune is not None):
        spread = posterior.full_variance.detach() * choose.kept(posterior)
    elif stochastic:
        gain = posterior.variance.detach().flatten()
    return CollapsedNeurons(operators, module.constants(), choose(posterior), gain, spread)


def _put(network: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, module)


def _refuse_second_names(network: nn.Module) -> None:
    first: dict[int, str] = {}
    for name, module in network.named_modules(remove_duplicate=False):
        known = first.setdefault(id(module), name)
        if known != name:
            raise AxonnxError(
                f"the layer {name!r} is {known!r} by a second name, and names in a file are unique: keep it once, and "
                f"call it twice"
            )


def _refuse_leftovers(network: nn.Module) -> None:
    left = [name for name, _ in network.named_parameters()]
    if left:
        owner = network.get_submodule(left[0].rpartition(".")[0])
        instead = INSTEAD.get(type(owner), LAYERS)
        raise AxonnxError(
            f"parameter {left[0]!r} belongs to a {type(owner).__name__}, which cannot be collapsed; use {instead}"
        )
