"""The regulariser: KL divergence of the posterior from its empirical-Bayes prior, per weight or per neuron."""

from typing import Any

import torch
from torch import Tensor

from axonnx.models.normal import VARIANCE_FLOOR, is_noisy
from axonnx.models.posterior import GaussianPosterior


def kl_of_weights(posterior: GaussianPosterior) -> Tensor:
    """½ Σ ln(1 + (m/σ)²) over the weights that exist."""
    if posterior.log_std is None:
        return posterior.raw_mean.new_zeros(())
    return 0.5 * _log1p_square(posterior.mean, posterior.variance.expand_as(posterior.raw_mean)).sum()


def kl_of_neurons(gap: Tensor, variance: Tensor, batch: int) -> Tensor:
    """½ Σ_i ln(1 + ((h*_i − θ)/κ_i)²): summed over neurons, positions and steps, averaged over the batch.

    ``variance`` is the whole κ² at the firing decision, base noise included; a noiseless neuron has no
    distribution and adds nothing.
    """
    total: Tensor = _NeuronKL.apply(gap, variance.expand_as(gap))
    return total / batch


class _NeuronKL(torch.autograd.Function):
    """½ Σ ln(1 + d²/v) with its two derivatives written out, a part at a time: what fits a cache stays in it."""

    @staticmethod
    def forward(ctx: Any, gap: Tensor, variance: Tensor) -> Tensor:
        ctx.save_for_backward(gap, variance)
        parts = zip(gap.flatten().split(_BLOCK), variance.flatten().split(_BLOCK), strict=True)
        return 0.5 * torch.stack([_log1p_square(d, v).sum() for d, v in parts]).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """d/(v + d²) and −½ d²/(v (v + d²)); zero where there is no noise."""
        gap, variance = ctx.saved_tensors
        by_gap, by_variance = torch.empty_like(gap), torch.empty_like(gap)
        whole = (gap, variance, by_gap, by_variance)
        for d, v, to_gap, to_variance in zip(*(part.flatten().split(_BLOCK) for part in whole), strict=True):
            weight = torch.addcmul(v, d, d).clamp_(min=VARIANCE_FLOOR).reciprocal_().mul_(is_noisy(v) * grad)
            torch.mul(d, weight, out=to_gap)
            torch.mul(to_gap, d, out=to_variance).mul_(-0.5).div_(v.clamp(min=VARIANCE_FLOOR))
        return by_gap, by_variance


_BLOCK = 1 << 16  # elements


def quadratic_of_neurons(gap: Tensor, variance: Tensor, batch: int) -> Tensor:
    """Σ_i ((h*_i − θ)/κ_i)², normalised as the KL: the constraint that Corollary 1 asks for, undamped."""
    noisy = is_noisy(variance)
    safe = torch.where(noisy, variance, torch.ones_like(variance))
    squares = torch.where(noisy, gap, torch.zeros_like(gap)).square() / safe
    return squares.sum() / batch


def _log1p_square(value: Tensor, variance: Tensor) -> Tensor:
    """ln(1 + value²/variance), zero where there is no variance."""
    noisy = is_noisy(variance)
    safe = torch.where(noisy, variance, torch.ones_like(variance))
    return torch.log1p(torch.where(noisy, value, torch.zeros_like(value)).square() / safe)
