"""A layer of spiking neurons over a whole sequence, with its backward pass through time written by hand.

The same recurrences as ``neurons.integrate`` and the same bits, without a graph node for each operation of each
time step: slopes are taken for all steps at once, weight gradients in one product, and only what the backward
pass cannot recompute is kept (h* − θ, κ², spikes, noise).

Backwards in time, with s the estimator's slopes and W the recurrent means:

    ∂L/∂o[t]  = incoming + (W − θ)ᵀ ∂L/∂h*[t+1] + (through κ² of the recurrence)
    ∂L/∂h*[t] = incoming + β  ∂L/∂h*[t+1] + s_h[t] ∂L/∂o[t]
    ∂L/∂κ²[t] = incoming + β² ∂L/∂κ²[t+1] + s_κ[t] ∂L/∂o[t]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from axonnx.models.estimators import Estimator
from torch import Tensor


@dataclass(frozen=True)
class Recurrence:
    """Means [n, n] (zero diagonal) and variances ([1] or [n] shared, [n, n] otherwise) of recurrent weights."""

    mean: Tensor
    variance: Tensor | None


@dataclass(frozen=True)
class SequenceOutput:
    """Spikes, h* − θ and the decision's κ² for every step, and the membrane's state after the last."""

    spikes: Tensor
    gap: Tensor
    decision_variance: Tensor | None
    membrane: Tensor
    variance: Tensor | None


def lif_sequence(
    mean: Tensor,
    variance: Tensor | None,
    noise: Tensor | None,
    initial: tuple[Tensor, Tensor | None, Tensor],
    decay: Tensor,
    threshold: Tensor,
    base_variance: Tensor | None,
    recurrence: Recurrence | None,
    estimator: Estimator,
) -> SequenceOutput:
    """Run T steps of ``mean``/``variance`` [T, B, …] from the ``initial`` membrane, variance and spikes."""
    weight, spread = (None, None) if recurrence is None else (recurrence.mean, recurrence.variance)
    outputs = _LIFSequence.apply(
        mean, variance, noise, *initial, decay, threshold, base_variance, weight, spread, estimator
    )
    return SequenceOutput(*outputs)


class _LIFSequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mean: Tensor,
        variance: Tensor | None,
        noise: Tensor | None,
        membrane: Tensor,
        remembered: Tensor | None,
        last_spikes: Tensor,
        decay: Tensor,
        threshold: Tensor,
        base: Tensor | None,
        weight: Tensor | None,
        spread: Tensor | None,
        estimator: Estimator,
    ) -> tuple[Tensor | None, ...]:
        spikes, gap = torch.empty_like(mean), torch.empty_like(mean)
        total = None if variance is None else torch.empty_like(mean)
        first_membrane, first_variance, first_spikes = membrane, remembered, last_spikes
        transposed = None if weight is None else weight.t()
        decay_squared = decay * decay
        for t in range(mean.shape[0]):
            arriving, spreading = mean[t], None if variance is None else variance[t]
            if transposed is not None:
                arriving = torch.mm(last_spikes, transposed).add_(arriving)
                spreading = _recurrent_variance(last_spikes, spread, spreading)
            membrane = (decay * membrane).add_(arriving).sub_(threshold * last_spikes)
            torch.sub(membrane, threshold, out=gap[t])
            if spreading is not None and remembered is not None and total is not None:
                remembered = (decay_squared * remembered).add_(spreading)
                total[t] = remembered if base is None else remembered + base
            last_spikes = estimator.output(
                gap[t], None if total is None else total[t], None if noise is None else noise[t]
            )
            spikes[t] = last_spikes
        ctx.estimator = estimator
        ctx.save_for_backward(
            spikes,
            gap,
            total,
            noise,
            first_membrane,
            first_variance,
            first_spikes,
            decay,
            threshold,
            base,
            weight,
            spread,
        )
        return spikes, gap, total, membrane, remembered

    @staticmethod
    def backward(
        ctx: Any,
        by_spikes: Tensor,
        by_gap: Tensor,
        by_total: Tensor | None,
        by_membrane: Tensor,
        by_variance: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        (
            spikes,
            gap,
            total,
            noise,
            first_membrane,
            first_variance,
            first_spikes,
            decay,
            threshold,
            base,
            weight,
            spread,
        ) = saved
        slope, slope_variance = ctx.estimator.slopes(gap, total, spikes, noise)
        feedback = None if weight is None else weight - torch.diag(threshold.expand(len(weight)))
        decay_squared = decay * decay
        h_grads = by_gap.clone()
        v_grads = None if slope_variance is None or by_total is None else by_total.clone()
        h_grad, v_grad = by_membrane, by_variance  # of the state after the last step
        o_grads = by_spikes.clone()
        steps = len(spikes)
        for t in range(steps - 1, -1, -1):
            o_grad = o_grads[t]
            if t < steps - 1:
                o_grad = _feedback(o_grad, h_grads[t + 1], feedback, threshold)
                if v_grads is not None and spread is not None:
                    o_grad.add_(_variance_feedback(v_grads[t + 1], spikes[t], spread))
                h_grad = decay * h_grads[t + 1]
                v_grad = None if v_grads is None else decay_squared * v_grads[t + 1]
            h_grads[t].add_(h_grad).addcmul_(slope[t], o_grad)
            if v_grads is not None and slope_variance is not None:
                if v_grad is not None:
                    v_grads[t].add_(v_grad)
                v_grads[t].addcmul_(slope_variance[t], o_grad)
        before = torch.cat([first_spikes[None], spikes[:-1]])
        first_h = h_grads[0]
        return (
            h_grads,
            v_grads,
            None,
            decay * first_h if ctx.needs_input_grad[3] else None,
            decay_squared * v_grads[0] if v_grads is not None and ctx.needs_input_grad[4] else None,
            _first_spikes_grad(ctx, first_h, v_grads, first_spikes, feedback, threshold, spread),
            _decay_grad(ctx, h_grads, v_grads, gap, total, base, first_membrane, first_variance, decay, threshold),
            None,
            _base_grad(ctx, v_grads, by_variance, decay_squared),
            h_grads.flatten(0, 1).t() @ before.flatten(0, 1) if weight is not None else None,
            _spread_grad(v_grads, before, spread),
            None,
        )


def _recurrent_variance(spikes: Tensor, spread: Tensor | None, arriving: Tensor | None) -> Tensor | None:
    """Arriving variance and Σ_{k≠i} ν_ik² o_k²; a shared ν: ν² (Σ_k o_k² − o_i²)."""
    if spread is None or arriving is None:
        return arriving
    squares = spikes.square()
    if spread.dim() == 2:
        return torch.mm(squares, spread.t()).add_(arriving)
    return (spread * (squares.sum(-1, keepdim=True) - squares)).add_(arriving)


def _feedback(o_grad: Tensor, h_grad: Tensor, feedback: Tensor | None, threshold: Tensor) -> Tensor:
    """∂L/∂o[t] through the next membrane: recurrent weights and reset, (W − θ)ᵀ, or the reset alone."""
    if feedback is None:
        return o_grad.sub_(threshold * h_grad)
    return o_grad.addmm_(h_grad, feedback)


def _variance_feedback(v_grad: Tensor, spikes: Tensor, spread: Tensor) -> Tensor:
    """∂L/∂o[t] through the next κ²: 2 o_k Σ_{i≠k} ν_ik² ∂L/∂κ²_i."""
    if spread.dim() == 2:
        return 2.0 * spikes * torch.mm(v_grad, spread)
    weighted = spread * v_grad
    return 2.0 * spikes * (weighted.sum(-1, keepdim=True) - weighted)


def _first_spikes_grad(
    ctx: Any,
    h_grad: Tensor,
    v_grads: Tensor | None,
    first_spikes: Tensor,
    feedback: Tensor | None,
    threshold: Tensor,
    spread: Tensor | None,
) -> Tensor | None:
    if not ctx.needs_input_grad[5]:
        return None
    grad = _feedback(torch.zeros_like(h_grad), h_grad, feedback, threshold)
    return grad if v_grads is None or spread is None else grad + _variance_feedback(v_grads[0], first_spikes, spread)


def _decay_grad(
    ctx: Any,
    h_grads: Tensor,
    v_grads: Tensor | None,
    gap: Tensor,
    total: Tensor | None,
    base: Tensor | None,
    first_membrane: Tensor,
    first_variance: Tensor | None,
    decay: Tensor,
    threshold: Tensor,
) -> Tensor | None:
    """Σ_t ∂L/∂h*[t] h*[t−1] + 2β ∂L/∂κ²[t] κ²[t−1]"""
    if not ctx.needs_input_grad[6]:
        return None
    membranes = torch.cat([first_membrane[None], gap[:-1] + threshold])
    grad = (h_grads * membranes).sum()
    if v_grads is None or total is None or first_variance is None:
        return grad
    kept = total[:-1] if base is None else total[:-1] - base
    return grad + 2.0 * decay * (v_grads * torch.cat([first_variance[None], kept])).sum()


def _base_grad(ctx: Any, v_grads: Tensor | None, by_variance: Tensor | None, decay_squared: Tensor) -> Tensor | None:
    """Σ_t of what reaches κ² at the decision alone: ∂L/∂κ²[t] less what comes back through the recurrence."""
    if v_grads is None or not ctx.needs_input_grad[8]:
        return None
    grad = v_grads.sum() - decay_squared * v_grads[1:].sum()
    return grad if by_variance is None else grad - by_variance.sum()


def _spread_grad(v_grads: Tensor | None, before: Tensor, spread: Tensor | None) -> Tensor | None:
    if v_grads is None or spread is None:
        return None
    squares = before.square()
    if spread.dim() == 2:
        return v_grads.flatten(0, 1).t() @ squares.flatten(0, 1)
    grad = v_grads * (squares.sum(-1, keepdim=True) - squares)
    return grad.sum().reshape(1) if spread.numel() == 1 else grad.flatten(0, -2).sum(0)
