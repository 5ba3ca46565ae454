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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from axonnx.models.current import Current
from axonnx.models.estimators import Estimator


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
    current: Current,
    noise: Tensor | None,
    initial: tuple[Tensor, Tensor | None, Tensor],
    decay: Tensor,
    threshold: Tensor,
    base_variance: Tensor | None,
    recurrence: Recurrence | None,
    estimator: Estimator,
) -> SequenceOutput:
    """Run T steps of ``current`` [T, B, …] from the ``initial`` membrane, variance and spikes."""
    weight, spread = (None, None) if recurrence is None else (recurrence.mean, recurrence.variance)
    outputs = _LIFSequence.apply(
        current.mean,
        current.activity,
        current.gain,
        noise,
        *initial,
        decay,
        threshold,
        base_variance,
        weight,
        spread,
        estimator,
    )
    return SequenceOutput(*outputs)


class _LIFSequence(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        mean: Tensor,
        activity: Tensor | None,
        gain: Tensor | None,
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
        total = None if activity is None else torch.empty_like(mean)
        first_membrane, first_variance, first_spikes = membrane, remembered, last_spikes
        transposed = None if weight is None else weight.t()
        decay_squared, one = decay * decay, bool((threshold == 1).all())
        fire = _decision(estimator, gap, total, noise, spikes)
        arrivals, activities = mean.unbind(0), (None,) * len(mean) if activity is None else activity.unbind(0)
        for t, (arriving, active) in enumerate(zip(arrivals, activities, strict=True)):
            spreading = None if active is None else _times(active, gain)
            if transposed is not None:
                arriving = torch.mm(last_spikes, transposed).add_(arriving)
                spreading = _recurrent_variance(last_spikes, spread, spreading)
            membrane = (decay * membrane).add_(arriving).sub_(last_spikes if one else threshold * last_spikes)
            torch.sub(membrane, threshold, out=gap[t])
            if spreading is not None and remembered is not None and total is not None:
                remembered = (decay_squared * remembered).add_(spreading)
                torch.add(remembered, 0.0 if base is None else base, out=total[t])
            last_spikes = fire(t)
        ctx.estimator = estimator
        ctx.set_materialize_grads(False)
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
            activity,
            gain,
        )
        return spikes, gap, total, membrane, remembered

    @staticmethod
    def backward(
        ctx: Any,
        by_spikes: Tensor | None,
        by_gap: Tensor | None,
        by_total: Tensor | None,
        by_membrane: Tensor | None,
        by_variance: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        spikes, gap, total, noise, first_membrane, first_variance, first_spikes = saved[:7]
        decay, threshold, base, weight, spread, activity, gain = saved[7:]
        feedback = None if weight is None else weight - torch.diag(threshold.expand(len(weight)))
        decay_squared = decay * decay
        through, squared = float(decay), float(decay_squared)
        h_grads = torch.empty_like(gap)
        to_variance = total is not None
        v_grads = torch.empty_like(gap) if to_variance else None
        slopes = _Slopes(ctx.estimator, gap, total, spikes, noise)
        for t in range(len(spikes) - 1, -1, -1):
            slope, slope_variance = slopes[t]
            o_grad = None if by_spikes is None else by_spikes[t]
            later, later_variance = None, None
            if t < len(spikes) - 1:
                later, later_variance = h_grads[t + 1], None if v_grads is None else v_grads[t + 1]
                o_grad = _feedback(o_grad, later, feedback, threshold)
                if later_variance is not None and spread is not None:
                    o_grad = _variance_feedback(o_grad, later_variance, spikes[t], spread)
            _sum_into(h_grads[t], by_gap, t, later, through, by_membrane, slope, o_grad)
            if v_grads is not None:
                _sum_into(v_grads[t], by_total, t, later_variance, squared, by_variance, slope_variance, o_grad)
        before = torch.cat([first_spikes[None], spikes[:-1]])
        first_h = h_grads[0]
        return (
            h_grads,
            *_activity_grads(ctx, v_grads, activity, gain),
            None,
            decay * first_h if ctx.needs_input_grad[4] else None,
            decay_squared * v_grads[0] if v_grads is not None and ctx.needs_input_grad[5] else None,
            _first_spikes_grad(ctx, first_h, v_grads, first_spikes, feedback, threshold, spread),
            _decay_grad(ctx, h_grads, v_grads, gap, total, base, first_membrane, first_variance, decay, threshold),
            None,
            _base_grad(ctx, v_grads, by_variance, decay_squared),
            h_grads.flatten(0, 1).t() @ before.flatten(0, 1) if weight is not None else None,
            _spread_grad(v_grads, before, spread),
            None,
        )


def _times(activity: Tensor, gain: Tensor | None) -> Tensor:
    return activity if gain is None else activity * gain


def _activity_grads(
    ctx: Any, v_grads: Tensor | None, activity: Tensor | None, gain: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of the two factors of the arriving variance."""
    if v_grads is None or activity is None:
        return None, None
    if gain is None:
        return v_grads.sum_to_size(activity.shape), None
    dense = gain.dim() == 1 and len(gain) == v_grads.shape[-1] and activity.shape[-1] == 1
    by_activity = by_gain = None
    if ctx.needs_input_grad[1]:
        by_activity = v_grads @ gain[:, None] if dense else (v_grads * gain).sum_to_size(activity.shape)
    if ctx.needs_input_grad[2]:
        flat = activity.flatten(), v_grads.flatten(0, -2)
        by_gain = flat[0] @ flat[1] if dense else (v_grads * activity).sum_to_size(gain.shape)
    return by_activity, by_gain


def _recurrent_variance(spikes: Tensor, spread: Tensor | None, arriving: Tensor | None) -> Tensor | None:
    """Arriving variance and Σ_{k≠i} ν_ik² o_k²; a shared ν: ν² (Σ_k o_k² − o_i²)."""
    if spread is None or arriving is None:
        return arriving
    squares = spikes.square()
    if spread.dim() == 2:
        return torch.mm(squares, spread.t()).add_(arriving)
    return (spread * (squares.sum(-1, keepdim=True) - squares)).add_(arriving)


class _Slopes:
    """An estimator's slopes, taken for a few steps at a time, backwards: what fits a cache stays in it."""

    def __init__(
        self, estimator: Estimator, gap: Tensor, total: Tensor | None, spikes: Tensor, noise: Tensor | None
    ) -> None:
        self.estimator, self.gap, self.total, self.spikes, self.noise = estimator, gap, total, spikes, noise
        self.length = max(1, _BLOCK // max(1, gap[0].numel()))
        self.first = len(gap)

    def __getitem__(self, t: int) -> tuple[Tensor, Tensor | None]:
        if t < self.first:
            self.first = max(0, t + 1 - self.length)
            part = slice(self.first, t + 1)
            parts = [None if whole is None else whole[part] for whole in (self.total, self.noise)]
            self.block = self.estimator.slopes(self.gap[part], parts[0], self.spikes[part], parts[1])
        by_membrane, by_variance = self.block
        return by_membrane[t - self.first], None if by_variance is None else by_variance[t - self.first]


_BLOCK = 1 << 16  # elements


def _sum_into(
    out: Tensor,
    incoming: Tensor | None,
    t: int,
    later: Tensor | None,
    decay: float,
    last: Tensor | None,
    slope: Tensor | None,
    o_grad: Tensor | None,
) -> None:
    """incoming[t] + what the next step carries back (after the last: the state's) + slope · ∂L/∂o; absent is zero."""
    if later is not None:
        if incoming is None:
            torch.mul(later, decay, out=out)
        else:
            torch.add(incoming[t], later, alpha=decay, out=out)
    else:
        out.zero_()
        for term in (last, None if incoming is None else incoming[t]):
            if term is not None:
                out.add_(term)
    if slope is not None and o_grad is not None:
        out.addcmul_(slope, o_grad)


def _decision(
    estimator: Estimator, gap: Tensor, total: Tensor | None, noise: Tensor | None, spikes: Tensor
) -> Callable[[int], Tensor]:
    """A function that fires step t into ``spikes``: the estimator's own, or ``firing.decide`` in fewer operations.

    ``decide`` asks κ² (ε|ε|) ≥ −d|d|; here both sides are negated, which changes no bit of the answer.
    """
    if type(estimator).output is not Estimator.output:

        def general(t: int) -> Tensor:
            drawn = None if noise is None else noise[t]
            return spikes[t].copy_(estimator.output(gap[t], None if total is None else total[t], drawn))

        return general
    if total is None or noise is None:
        return lambda t: torch.ge(gap[t], 0.0, out=spikes[t])
    variance, against = total, (noise * noise.abs()).neg_()

    def noisy(t: int) -> Tensor:
        push, d = variance[t] * against[t], gap[t]
        return torch.le(push, d.abs().mul_(d), out=spikes[t])

    return noisy


def _feedback(o_grad: Tensor | None, h_grad: Tensor, feedback: Tensor | None, threshold: Tensor) -> Tensor:
    """∂L/∂o[t] with what comes through the next membrane: recurrent weights and reset, (W − θ)ᵀ, or the reset."""
    if feedback is None:
        through = -(threshold * h_grad)
        return through if o_grad is None else o_grad + through
    return torch.mm(h_grad, feedback) if o_grad is None else torch.addmm(o_grad, h_grad, feedback)


def _variance_feedback(o_grad: Tensor, v_grad: Tensor, spikes: Tensor, spread: Tensor) -> Tensor:
    """∂L/∂o[t] with what comes through the next κ²: 2 o_k Σ_{i≠k} ν_ik² ∂L/∂κ²_i."""
    if spread.dim() == 2:
        return torch.addcmul(o_grad, spikes, torch.mm(v_grad, spread), value=2.0)
    weighted = spread * v_grad
    return torch.addcmul(o_grad, spikes, weighted.sum(-1, keepdim=True) - weighted, value=2.0)


def _first_spikes_grad(
    ctx: Any,
    h_grad: Tensor,
    v_grads: Tensor | None,
    first_spikes: Tensor,
    feedback: Tensor | None,
    threshold: Tensor,
    spread: Tensor | None,
) -> Tensor | None:
    if not ctx.needs_input_grad[6]:
        return None
    grad = _feedback(None, h_grad, feedback, threshold)
    return grad if v_grads is None or spread is None else _variance_feedback(grad, v_grads[0], first_spikes, spread)


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
    if not ctx.needs_input_grad[7]:
        return None
    membranes = torch.cat([first_membrane[None], gap[:-1] + threshold])
    grad = (h_grads * membranes).sum()
    if v_grads is None or total is None or first_variance is None:
        return grad
    kept = total[:-1] if base is None else total[:-1] - base
    return grad + 2.0 * decay * (v_grads * torch.cat([first_variance[None], kept])).sum()


def _base_grad(ctx: Any, v_grads: Tensor | None, by_variance: Tensor | None, decay_squared: Tensor) -> Tensor | None:
    """Σ_t of what reaches κ² at the decision alone: ∂L/∂κ²[t] less what comes back through the recurrence."""
    if v_grads is None or not ctx.needs_input_grad[9]:
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
