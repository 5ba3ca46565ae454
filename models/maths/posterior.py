"""The variational posterior: independent Gaussian weights w ~ N(m, σ²)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

Granularity = Literal["layer", "neuron", "weight"]
Spread = Literal["learned", "fixed", "none"]
Init = Literal["wide", "narrow"]


class GaussianPosterior(nn.Module):
    """Means and standard deviations of a weight tensor ``[out, in, …]``.

    ``granularity`` says how many σ there are: one a ``layer`` (default), one a ``neuron`` (first axis) or one
    a ``weight``. ``spread`` says whether they are ``learned``, ``fixed`` at σ₀ or absent (``none``, the
    surrogate-gradient baselines). ``mask`` (0 or 1 for each weight) removes connections from everything: the
    forward pass, its gradient, the KL and samples.

    Means begin in U(±√(6/fan_in)) (``wide``, Kaiming's for rectifiers) or U(±1/√fan_in) (``narrow``, torch's own and
    the authors'), σ at ``initial_std``/√fan_in: so E[z²] begins near 8 or 1.3.
    """

    mask: Tensor | None
    log_std: Tensor | None

    def __init__(
        self,
        shape: tuple[int, ...],
        granularity: Granularity = "layer",
        spread: Spread = "learned",
        mask: Tensor | None = None,
        init: Init = "wide",
        initial_std: float = 0.5,
    ) -> None:
        super().__init__()
        self.granularity: Granularity = granularity
        self.spread: Spread = spread
        self.raw_mean = nn.Parameter(torch.empty(shape))
        self.register_buffer("mask", mask, persistent=False)
        fan_in = math.prod(shape[1:])
        nn.init.kaiming_uniform_(self.raw_mean, a=0.0 if init == "wide" else math.sqrt(5.0))
        self._register_log_std(_std_shape(shape, granularity), math.log(initial_std / math.sqrt(fan_in)))

    def _register_log_std(self, shape: tuple[int, ...], log_std: float) -> None:
        if self.spread == "learned":
            self.log_std = nn.Parameter(torch.full(shape, log_std))
        else:
            self.register_buffer("log_std", torch.full(shape, log_std) if self.spread == "fixed" else None)

    @property
    def mean(self) -> Tensor:
        """m, zero where masked."""
        return self.raw_mean if self.mask is None else self.raw_mean * self.mask

    @property
    def std(self) -> Tensor:
        """σ = exp(log σ), in the shape of its granularity."""
        if self.log_std is None:
            raise ValueError("this layer has no posterior (spread = 'none'), so its weights have no std")
        return torch.exp(self.log_std)

    @property
    def variance(self) -> Tensor:
        """σ², in the shape of its granularity."""
        if self.log_std is None:
            raise ValueError("this layer has no posterior (spread = 'none'), so its weights have no variance")
        return torch.exp(2.0 * self.log_std)

    @property
    def full_variance(self) -> Tensor:
        """σ² of each single weight, zero where masked."""
        variance = self.variance.expand_as(self.raw_mean)
        return variance if self.mask is None else variance * self.mask

    def noise_of(
        self, product: Callable[[Tensor, Tensor], Tensor], x: Tensor, scale: Tensor | None = None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Σ_j (a_i σ_ij)² x_j² for ``product(x², weight)``, as the activity and gain of a ``Current``."""
        if self.log_std is None:
            return None, None
        gain = self.shared_gain(scale)
        if gain is None:
            return product(x.square(), self.full_variance * _square_rows(scale, self.raw_mean.dim())), None
        return product(x.square(), torch.ones_like(self.raw_mean[:1])), gain

    def shared_gain(self, scale: Tensor | None = None) -> Tensor | None:
        """a_i² σ_i² for each channel, where all weights of a neuron share their σ; None where they do not.

        Then Σ_j σ² x_j² = σ² Σ_j x_j², and noise costs one extra neuron a layer.
        """
        if self.log_std is None or self.granularity == "weight" or self.mask is not None:
            return None
        gain = self.variance.flatten() if scale is None else self.variance.flatten() * scale.square()
        return gain.reshape(-1, *(1,) * (self.raw_mean.dim() - 2))

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw one weight set w = m + σ ε."""
        if self.log_std is None:
            return self.mean.detach().clone()
        noise = torch.randn(
            self.raw_mean.shape, generator=generator, device=self.raw_mean.device, dtype=self.raw_mean.dtype
        )
        drawn = self.raw_mean + self.std * noise
        return (drawn if self.mask is None else drawn * self.mask).detach()

    @cached_property
    def existing(self) -> int:
        """How many weights are not masked: asked of the device once, not at every step."""
        return self.raw_mean.numel() if self.mask is None else int(self.mask.sum())

    def extra_repr(self) -> str:
        """Shape, granularity and spread."""
        return f"{list(self.raw_mean.shape)}, granularity={self.granularity}, spread={self.spread}"


def _std_shape(shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    if granularity == "layer":
        return (1,) * len(shape)
    if granularity == "neuron":
        return (shape[0],) + (1,) * (len(shape) - 1)
    if granularity == "weight":
        return shape
    raise ValueError(f"granularity is {granularity!r}; known are 'layer', 'neuron' and 'weight'")


def _square_rows(scale: Tensor | None, dim: int) -> Tensor | float:
    """a² for each row of a weight tensor."""
    return 1.0 if scale is None else scale.square().reshape(-1, *(1,) * (dim - 1))
