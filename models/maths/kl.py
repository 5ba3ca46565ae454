"""The regulariser: how far signals stand above their noise, as r² or ½ ln(1 + r²) with r = value/std.

½ ln(1 + r²) is the KL divergence of N(value, std²) from its empirical-Bayes prior. r² is the constraint of
Corollary 1 itself: its pull 2r grows where neurons saturate, while that of the logarithm, r/(1 + r²), fades there.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from axonnx.models.maths.normal import VARIANCE_FLOOR, is_noisy

Form = Literal["quadratic", "log"]
_BLOCK = 1 << 16  # elements that fit a processor's cache


class Divergence(NamedTuple):
    """½ Σ ln(1 + r²) and Σ r² of one layer, over the whole batch."""

    log: Tensor
    quadratic: Tensor

    def of(self, form: Form) -> Tensor:
        """Return the sum that ``form`` asks for."""
        return self.log if form == "log" else self.quadratic


def divergence_sum(value: Tensor, variance: Tensor, form: Form = "quadratic") -> Tensor:
    """Return Σ r² or ½ Σ ln(1 + r²) with r² = value²/variance; what has no noise adds nothing."""
    total: Tensor = _Sum.apply(value, variance.expand_as(value), form)
    return total


class _Sum(torch.autograd.Function):
    """The sum with its two derivatives written out; on a CPU a part at a time: what fits its cache stays there."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, variance: Tensor, form: Form) -> Tensor:
        ctx.save_for_backward(value, variance)
        ctx.form = form
        parts = zip(_parts(value), _parts(variance), strict=True)
        squares = (_squares(d, v) for d, v in parts)
        terms = [part.sum() if form == "quadratic" else 0.5 * torch.log1p(part).sum() for part in squares]
        return torch.stack(terms).sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return 2 d/v or d/(v + d²) by d, and −½ d/v times that by v; zero where there is no noise."""
        value, variance = ctx.saved_tensors
        by_value, by_variance = (torch.empty_like(value, memory_format=torch.contiguous_format) for _ in range(2))
        whole = (value, variance, by_value, by_variance)
        for d, v, to_value, to_variance in zip(*map(_parts, whole), strict=True):
            below = 0.5 * v if ctx.form == "quadratic" else torch.addcmul(v, d, d)
            weight = below.clamp_(min=VARIANCE_FLOOR).reciprocal_().mul_(is_noisy(v) * grad)
            torch.mul(d, weight, out=to_value)
            torch.mul(to_value, d, out=to_variance).mul_(-0.5).div_(v.clamp(min=VARIANCE_FLOOR))
        return by_value, by_variance, None


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Split into flat parts of a block's length on a CPU; keep one part on devices where every operator is a launch."""
    flat = tensor.flatten()
    return flat.split(_BLOCK) if tensor.device.type == "cpu" else (flat,)


def _squares(value: Tensor, variance: Tensor) -> Tensor:
    """Return value²/variance, zero where there is no variance."""
    noisy = is_noisy(variance)
    safe = torch.where(noisy, variance, torch.ones_like(variance))
    return torch.where(noisy, value, torch.zeros_like(value)).square() / safe
