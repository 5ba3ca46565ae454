"""Collapse: a network with a posterior in, an ordinary network with constant weights out.

``mfa`` keeps the posterior means; ``sampled`` draws weight sets from the posterior; ``stochastic`` keeps means and
variances, and neurons that fire with noise. Scale and bias, or batch norm, are folded into the weights.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.collapse.layers import ConstantSynapse, OperatorNeurons
from axonnx.export.collapse.ops import OPERATORS
from axonnx.models import GaussianPosterior, Network
from axonnx.models.checking import INSTEAD, LAYERS
from axonnx.models.synapses import Synapse

DROPOUT = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
Mode = Literal["mfa", "sampled", "stochastic"]


@dataclass(frozen=True)
class WeightChoice:
    """Which weights stand for a posterior: its means, or a draw from it; pruned where |mean|/std is too small."""

    generator: torch.Generator | None = None
    prune: float | None = None

    def __call__(self, posterior: GaussianPosterior) -> Tensor:
        """Return the weight tensor."""
        weight = posterior.mean.detach() if self.generator is None else posterior.sample(self.generator)
        return weight.clone() if self.prune is None else weight * self.kept(posterior)

    def kept(self, posterior: GaussianPosterior) -> Tensor:
        """Return the pruning mask: 1 for weights that stay, 0 where |mean|/std is below the limit."""
        if posterior.log_std is None or self.prune is None:
            return torch.ones_like(posterior.raw_mean)
        return (posterior.mean.abs() >= self.prune * posterior.std).to(posterior.raw_mean.dtype).detach()


@dataclass(frozen=True)
class Constants:
    """What layers become: constant weights as ``choose`` has them; with variances if the network stays stochastic."""

    choose: WeightChoice
    stochastic: bool

    def operator(self, name: str) -> Callable[..., Any]:
        """Return the operator of that name."""
        return partial(_apply, name)

    def synapse(self, synapse: Synapse, **geometry: Any) -> ConstantSynapse:
        """Weights with scale and bias in them, but for those of time steps."""
        posterior, norm = synapse.posterior, synapse.norm
        weight, per_step = self.choose(posterior), None
        scale, bias = torch.ones(len(weight)), None
        if norm is not None and norm.steps is not None:
            per_step = norm.folded()[0].detach().clone(), norm.folded()[1].detach().clone()
        elif norm is not None:
            scale, bias = (part.detach().clone() for part in norm.folded())
        gain, spread = self._variances(posterior, scale)
        weight = weight * scale.reshape(-1, *(1,) * (weight.dim() - 1))
        return ConstantSynapse(weight, bias, gain=gain, spread=spread, per_step=per_step, **geometry)

    def neurons(
        self, operators: Sequence[str], constants: Mapping[str, Tensor], recurrent: GaussianPosterior | None
    ) -> OperatorNeurons:
        """Operators with constants; with weights from the layer to itself."""
        if recurrent is None:
            return OperatorNeurons(operators, constants)
        return OperatorNeurons(
            operators, constants, self.choose(recurrent), *self._variances(recurrent, torch.ones(()))
        )

    def _variances(self, posterior: GaussianPosterior, scale: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """a² σ² for each channel where σ is shared, for each weight elsewhere; nothing where there is no noise."""
        if not self.stochastic or posterior.log_std is None:
            return None, None
        dim = posterior.raw_mean.dim()
        if posterior.granularity != "weight" and self.choose.prune is None:
            gain = posterior.variance.detach().flatten() * scale.square()
            return gain.reshape(-1, *(1,) * (dim - 2)), None
        rows = (-1, *(1,) * (dim - 1))
        return None, posterior.full_variance.detach() * scale.square().reshape(rows) * self.choose.kept(posterior)


def _apply(name: str, *inputs: Tensor) -> Any:
    return OPERATORS[name](*inputs)


@torch.no_grad()
def collapse(network: Network, choose: WeightChoice, stochastic: bool = False) -> Network:
    """Copy ``network`` with a constant for every layer; ``compute`` and all names stay as they are."""
    _refuse_second_names(network)
    collapsed, constants = copy.deepcopy(network).cpu().float().eval(), Constants(choose, stochastic)
    for name, module in list(collapsed.named_modules()):
        if isinstance(module, DROPOUT):
            _put(collapsed, name, nn.Identity())  # after training it is
        elif hasattr(module, "collapsed"):
            try:
                _put(collapsed, name, module.collapsed(constants))
            except ValueError as refusal:
                raise AxonnxError(str(refusal)) from None
    _refuse_leftovers(collapsed)
    return collapsed


def needs_posterior(network: Network) -> None:
    """Refuse to sample from a network that has no posterior."""
    posteriors = [module for module in network.modules() if isinstance(module, GaussianPosterior)]
    if all(posterior.log_std is None for posterior in posteriors):
        raise AxonnxError(
            "this network has no posterior (a surrogate-gradient baseline): only the mode mfa has a meaning for it"
        )


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
