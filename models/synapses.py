"""Synapses: from spikes to the Gaussian current they cause, by local reparameterisation.

h* = a ⊙ (m·o) + b and κ² = a² ⊙ Σ_j σ_ij² o_j². Noise is drawn where neurons fire, for each neuron, position
and time step of its own, never for a weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models.collapsing import Choice
from axonnx.models.fast import core
from axonnx.models.fast.conv_moments import Window, conv_moments
from axonnx.models.fast.linear_moments import linear_moments, linear_product
from axonnx.models.maths.current import Current, needs_spikes
from axonnx.models.maths.posterior import GaussianPosterior
from axonnx.models.normalisation import ChannelScale, make_normalisation
from axonnx.models.pooling import over_maps
from axonnx.models.run import Run
from axonnx.models.variant import BAYESIAN, Variant

Side = int | tuple[int, int]  # of a window: one for both axes, or one each


class Synapse(nn.Module, ABC):
    """Weights with a posterior, followed by the variant's normalisation."""

    def __init__(self, posterior: GaussianPosterior, variant: Variant, spatial: int) -> None:
        super().__init__()
        self.posterior = posterior
        self.norm = make_normalisation(variant, posterior.raw_mean.shape[0], spatial)

    @abstractmethod
    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Apply the linear map of this synapse with any weight of its shape (or a single row of it)."""

    def constants(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return a ⊙ m, b and a: what scale and bias make of the posterior's means."""
        weight = self.posterior.mean
        if not isinstance(self.norm, ChannelScale) or self.norm.steps is not None:
            return weight, None, None
        scale, bias = self.norm.folded()
        return weight * scale.reshape(-1, *(1,) * (weight.dim() - 1)), bias, scale

    def moments(self, x: Tensor) -> Current:
        """Return mean and variance of a ⊙ (W·x) + b over the posterior."""
        weight, bias, scale = self.constants()
        noise = self.posterior.noise_of(self.product, x, scale)
        return Current(self.product(x, weight, bias), *noise)

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the layer as a file has it."""
        return choice.synapse(self)

    def forward(self, x: Tensor, run: Run) -> Current:
        """Return the current that spikes (or graded input) ``x`` cause."""
        current = self.moments(needs_spikes(x, run.name(self)))
        if self.norm is None or (isinstance(self.norm, ChannelScale) and self.norm.steps is None):
            return current  # or it is in the weights already
        scaled: Current = self.norm(current, run)
        return scaled


class Linear(Synapse):
    """All-to-all synapses on the last axis."""

    def __init__(self, inputs: int, outputs: int, variant: Variant = BAYESIAN) -> None:
        posterior = _posterior((outputs, inputs), variant)
        super().__init__(posterior, variant, spatial=0)

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x Wᵀ + b."""
        return linear_product(x, weight, bias)

    def moments(self, x: Tensor) -> Current:
        """Return mean and variance of a ⊙ (W·x) + b; of shared variances the gain alone is left to multiply."""
        weight, bias, scale = self.constants()
        gain = self.posterior.shared_gain(scale)
        if gain is None:
            return super().moments(x)
        return Current(*linear_moments(x, weight, bias), gain)


class Conv2d(Synapse):
    """Convolutional synapses on the last three axes [C, H, W]; every position has noise of its own.

    With ``groups`` every weight has a variance of its own: channels of different groups share no inputs.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Side,
        variant: Variant = BAYESIAN,
        *,
        stride: Side = 1,
        padding: Side = 0,
        dilation: Side = 1,
        groups: int = 1,
    ) -> None:
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        single = variant if groups == 1 else replace(variant, granularity="weight")
        posterior = _posterior((outputs, inputs // groups, height, width), single)
        super().__init__(posterior, variant, spatial=2)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x ∗ W + b."""
        if self.groups == 1:
            return conv_moments(x, weight, bias, self._window, activity=False)[0]
        if core.covers(x, weight, bias):
            core.say_in_torch("grouped convolutions")
        how = (self.stride, self.padding, self.dilation, self.groups)
        return over_maps(x, lambda maps: nnf.conv2d(maps, weight, bias, *how))

    def moments(self, x: Tensor) -> Current:
        """Return mean and variance of a ⊙ (W ∗ x) + b; of shared variances the gain alone is left to multiply."""
        weight, bias, scale = self.constants()
        gain = self.posterior.shared_gain(scale)
        if gain is None or self.groups != 1:
            return super().moments(x)
        return Current(*conv_moments(x, weight, bias, self._window), gain)

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the layer as a file has it."""
        sides = {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}
        return choice.synapse(self, **sides, groups=self.groups)

    @property
    def _window(self) -> Window:
        sides = (self.stride, self.padding, self.dilation)
        return Window(*([side, side] if isinstance(side, int) else list(side) for side in sides))

    def extra_repr(self) -> str:
        """Return stride and padding."""
        return f"stride={self.stride}, padding={self.padding}"


class Recurrent(nn.Module):
    """Synapses from a layer to itself one step later, without self connection: Σ_{k≠i} r_ik o_k.

    The zero diagonal is the posterior's mask, so it holds in the forward pass, gradient, KL, samples and export. With
    ``self_connections`` (networks of other libraries have them) there is no mask.
    """

    def __init__(self, size: int, variant: Variant = BAYESIAN, self_connections: bool = False) -> None:
        super().__init__()
        mask = None if self_connections else 1.0 - torch.eye(size)
        self.posterior = _posterior((size, size), variant, mask)

    @property
    def noisy(self) -> bool:
        """Whether its weights have a posterior."""
        return self.posterior.log_std is not None

    def weights(self) -> tuple[Tensor, Tensor | None]:
        """Return means, and what ``moments`` needs of the variances: once for each pass, not for each step."""
        if self.posterior.log_std is None:
            return self.posterior.mean, None
        shared = self.posterior.granularity != "weight"
        return (self.posterior.mean, self.posterior.variance.flatten() if shared else self.posterior.full_variance)

    def moments(self, spikes: Tensor, mean: Tensor, variance: Tensor | None) -> Current:
        """Return mean and variance of the recurrent current; shared σ: Σ_{k≠i} σ² o_k² = σ² (Σ_k o_k² − o_i²)."""
        current = nnf.linear(spikes, mean)
        if variance is None:
            return Current(current)
        squares = spikes.square()
        if variance.dim() == 2:
            return Current(current, nnf.linear(squares, variance))
        heard = squares.sum(-1, keepdim=True)
        return Current(current, variance * (heard if self.posterior.mask is None else heard - squares))


def _posterior(shape: tuple[int, ...], variant: Variant, mask: Tensor | None = None) -> GaussianPosterior:
    return GaussianPosterior(
        shape, variant.granularity, variant.spread, mask, init=variant.init, initial_std=variant.initial_std
    )
