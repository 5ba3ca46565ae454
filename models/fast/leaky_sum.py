"""The read-out's recurrence over a whole sequence, with its gradient in closed form."""

from typing import Any

import torch
from torch import Tensor


def leaky_sum(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """h[t] = β·h[t−1] + I[t] and s[t] = s[t−1] + h[t] over ``current`` [T, …]: the last h and s.

    The additions happen in this order, step by step, so that a streamed network gives the same bits.
    """
    assert not decay.requires_grad, "the read-out's decay is a constant"
    out: tuple[Tensor, Tensor] = _LeakySum.apply(current, membrane, total, decay)
    return out


class _LeakySum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(decay)
        ctx.steps = current.shape[0]
        for arriving in current.unbind(0):
            membrane = decay * membrane + arriving
            total = total + membrane
        return membrane, total

    @staticmethod
    def backward(ctx: Any, by_membrane: Tensor, by_total: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """∂s[T]/∂I[t] = Σ_{k=0}^{T−t} β^k and ∂h[T]/∂I[t] = β^(T−t)."""
        (decay,) = ctx.saved_tensors
        powers = decay ** torch.arange(ctx.steps, dtype=by_total.dtype, device=by_total.device)
        shape = (-1, *(1,) * by_total.dim())
        reached = powers.flip(0).view(shape)
        summed = powers.cumsum(0).flip(0).view(shape)
        grad = summed * by_total + reached * by_membrane
        return grad, decay * grad[0], by_total, None
