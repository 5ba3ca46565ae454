"""The standard normal distribution, finite for every float32 argument."""

import math

import torch
from torch import Tensor

# A neuron with a smaller variance than this (κ < 1e-10) passes no gradient, instead of dividing by a κ that is all
# rounding, and has no share in the KL.
VARIANCE_FLOOR = 1e-20

INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_INV_SQRT_2 = math.sqrt(0.5)


def pdf(z: Tensor) -> Tensor:
    """Return φ(z) = exp(−z²/2) / √(2π)."""
    return torch.exp(-0.5 * z * z) * INV_SQRT_2PI


def cdf(z: Tensor) -> Tensor:
    """Return Φ(z), accurate in the lower tail; the upper tail 1 − Φ(z) is ``cdf(−z)``.

    Not ``torch.special.ndtr``: that is ½(1 + erf), which loses its digits below −3 and is 0 below −5.5 in float32.
    """
    return 0.5 * torch.erfc(-z * _INV_SQRT_2)


def logit_cdf(z: Tensor) -> Tensor:
    """Return ln(Φ(z) / (1 − Φ(z))), finite where Φ(z) underflows or rounds to one."""
    logit: Tensor = torch.special.log_ndtr(z) - torch.special.log_ndtr(-z)
    return logit


def inverse_mills(z: Tensor) -> Tensor:
    """Return φ(z) / Φ(z), which tends to −z where both vanish and to 0 where Φ tends to one."""
    ratio: Tensor = _SQRT_2_OVER_PI / torch.special.erfcx(-z * _INV_SQRT_2)
    return ratio


def is_noisy(variance: Tensor) -> Tensor:
    """Tell where a variance is large enough to count as noise."""
    return variance > VARIANCE_FLOOR


def standardise(gap: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return z = (h* − θ)/κ, κ, and the mask of noisy neurons; κ is 1 where there is no noise."""
    noisy = is_noisy(variance)
    std = torch.sqrt(torch.where(noisy, variance, torch.ones_like(variance)))
    return gap / std, std, noisy
