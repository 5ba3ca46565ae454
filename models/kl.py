"""The regulariser: KL divergence of the posterior from its empirical-Bayes prior, per weight or per neuron."""

import torch
from axonnx.models.normal import is_noisy
from axonnx.models.posterior import GaussianPosterior
from torch import Tensor


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
    return 0.5 * _log1p_square(gap, variance).sum() / batch


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
