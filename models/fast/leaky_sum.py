"""The read-out's recurrence over a whole sequence, with its gradient in closed form."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from axonnx.models.fast import backend, core, products


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
        return _through_time(current, membrane, total, decay)

    @staticmethod
    def backward(ctx: Any, by_membrane: Tensor, by_total: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """∂s[T]/∂I[t] = Σ_{k=0}^{T−t} β^k and ∂h[T]/∂I[t] = β^(T−t)."""
        (decay,) = ctx.saved_tensors
        shape = (-1, *(1,) * by_total.dim())
        reached, summed = (factors.view(shape) for factors in _factors(decay, ctx.steps, by_total))
        grad = summed * by_total + reached * by_membrane
        return grad, decay * grad[0], by_total, None


def _through_time(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """Run the recurrence as it stands; in the core it has the same bits."""
    if core.covers(current, membrane, total, decay) and decay.numel() == 1 and current.numel() > 0:
        membrane, total = (x.detach().contiguous().clone() for x in (membrane, total))
        given, count = current.detach().contiguous(), membrane.numel()
        core.call("leaky_sum", given, membrane, total, len(current), count, float(decay), 0, count)
        return membrane, total
    if backend.triton_wanted(current, membrane, total, decay) and decay.numel() == 1 and current.numel() > 0:
        from axonnx.models.fast import lif_triton

        return lif_triton.leaky_sum(current, membrane, total, decay)
    for arriving in current.unbind(0):
        membrane = decay * membrane + arriving
        total = total + membrane
    return membrane, total


def _factors(decay: Tensor, steps: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """∂h[T]/∂I[t] and ∂s[T]/∂I[t] for every step."""
    powers = decay ** torch.arange(steps, dtype=like.dtype, device=like.device)
    return powers.flip(0), powers.cumsum(0).flip(0)


def leaky_readout(
    spikes: Tensor, weight: Tensor, bias: Tensor, membrane: Tensor, total: Tensor, decay: Tensor
) -> tuple[Tensor, Tensor]:
    """``leaky_sum`` of W·o + b for binary ``spikes`` [T, B, n] in the core.

    Forwards the additions are those of the loop. Backwards the read-out is linear in time: of the spikes only their
    counts, weighted by what each step does to the sum, reach the weights.
    """
    out: tuple[Tensor, Tensor] = _Readout.apply(spikes, weight, bias, membrane, total, decay)
    return out


def readout_applies(spikes: Tensor, *others: Tensor) -> bool:
    """Whether ``leaky_readout`` covers these."""
    return (
        spikes.dim() == 3 and spikes.numel() > 0 and core.covers(spikes, *others) and core.bits_of(spikes) is not None
    )


class _Readout(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, spikes: Tensor, weight: Tensor, bias: Tensor, membrane: Tensor, total: Tensor, decay: Tensor
    ) -> tuple[Tensor, Tensor]:
        active = core.active_of(spikes)
        ctx.save_for_backward(active.bits, weight, decay)
        ctx.shape = spikes.shape
        current, _ = products.forward(spikes, active, weight, bias)
        return _through_time(current, membrane, total, decay)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_membrane: Tensor, by_total: Tensor) -> tuple[Tensor | None, ...]:
        bits, weight, decay = ctx.saved_tensors
        reached, summed = _factors(decay, ctx.shape[0], by_total)
        by_spikes, by_weight, by_bias = None, torch.zeros_like(weight), torch.zeros_like(weight[:, 0])
        last = torch.zeros_like(by_total)
        for factors, grad in ((summed, by_total), (reached, by_membrane)):
            if not grad.any():
                continue
            by_weight += grad.t() @ _weighted_counts(bits, factors, ctx.shape)
            by_bias += factors.sum() * grad.sum(0)
            last += factors[0] * grad
            if ctx.needs_input_grad[0]:
                through = factors[:, None, None] * (grad @ weight)
                by_spikes = through if by_spikes is None else by_spikes + through
        return by_spikes, by_weight, by_bias, decay * last, by_total, None


def _weighted_counts(bits: Tensor, factors: Tensor, shape: torch.Size) -> Tensor:
    """Σ_t f[t]·o[t] of each sample."""
    steps, batch, inputs = shape
    counts, factors = torch.empty(batch, inputs), factors.contiguous()
    core.share_out(
        lambda begin, end: core.call("weighted_counts", bits, factors, counts, steps, batch, inputs, begin, end),
        batch,
        steps * batch * inputs // 16,
    )
    return counts
