"""The time steps of ``lif_sequence`` in torch, forwards and backwards: for every device and number type.

``lif_core`` does the same for float32 on a CPU; the bits of its forward pass are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from axonnx.models.maths.estimators import Estimator

_BLOCK = 1 << 16  # elements


class Layer(NamedTuple):
    """What does not change in a pass: β, θ, σ_base², recurrent means [n, n] and variances ([1], [n] or [n, n]).

    β and θ are one, or one for each neuron or channel.
    """

    decay: Tensor
    threshold: Tensor
    base: Tensor | None
    weight: Tensor | None
    weight_variance: Tensor | None
    estimator: Estimator

    @property
    def feedback(self) -> Tensor | None:
        """W − θ: how a spike moves the next membranes."""
        return None if self.weight is None else self.weight - torch.diag(self.threshold.expand(len(self.weight)))


class Drive(NamedTuple):
    """What comes from outside: a current's mean [T, B, …], activity and gain, and the noise of the decision."""

    mean: Tensor
    activity: Tensor | None
    gain: Tensor | None
    noise: Tensor | None


class Trace(NamedTuple):
    """What a pass leaves: spikes [T + 1, B, …] from the initial ones on, h* − θ and the decision's κ² [T, B, …]."""

    emitted: Tensor
    gap: Tensor
    total: Tensor | None

    @property
    def spikes(self) -> Tensor:
        """Return o[t] of all steps."""
        return self.emitted[1:]

    @property
    def before(self) -> Tensor:
        """Return o[t−1] of all steps."""
        return self.emitted[:-1]


class Incoming(NamedTuple):
    """Gradients of what a pass gives: of traces [T, B, …], the state after it [B, …] and the sums; absent is zero."""

    spikes: Tensor | None
    gap: Tensor | None
    total: Tensor | None
    membrane: Tensor | None
    variance: Tensor | None


class Gradients(NamedTuple):
    """∂L/∂h* and ∂L/∂κ² for every step, and the gradient of the recurrent variances."""

    h: Tensor
    v: Tensor | None
    weight_variance: Tensor | None


def forward_steps(
    layer: Layer, drive: Drive, membrane: Tensor, remembered: Tensor | None, trace: Trace
) -> tuple[Tensor, Tensor | None]:
    """Fill ``trace``, whose first spikes are there already; the membrane and its variance after the last step."""
    transposed = None if layer.weight is None else layer.weight.t()
    decay, threshold, one = layer.decay, layer.threshold, _is_one(layer.threshold)
    decay_squared, (emitted, gap, total) = decay * decay, trace
    fire = _decision(layer.estimator, trace, drive.noise)
    for t, arriving in enumerate(drive.mean.unbind(0)):
        last_spikes = emitted[t]
        arriving_variance = None if drive.activity is None else _times(drive.activity[t], drive.gain)
        if transposed is not None:
            arriving = torch.mm(last_spikes, transposed).add_(arriving)
            if arriving_variance is not None:
                arriving_variance = recurrent_variance(last_spikes, layer.weight_variance, arriving_variance)
        membrane = (decay * membrane).add_(arriving).sub_(last_spikes if one else threshold * last_spikes)
        torch.sub(membrane, threshold, out=gap[t])
        if arriving_variance is not None and remembered is not None and total is not None:
            remembered = (decay_squared * remembered).add_(arriving_variance)
            torch.add(remembered, 0.0 if layer.base is None else layer.base, out=total[t])
        fire(t)
    return membrane, remembered


def backward_steps(layer: Layer, noise: Tensor | None, trace: Trace, incoming: Incoming) -> Gradients:
    """Gradients of what reaches the membranes in ``trace``."""
    spikes, feedback, steps = trace.spikes, layer.feedback, len(trace.gap)
    through, squared = layer.decay, layer.decay * layer.decay
    h_grads = torch.empty_like(trace.gap)
    v_grads = None if trace.total is None else torch.empty_like(trace.gap)
    for first, last, slopes, variance_slopes in slope_blocks(layer.estimator, trace, noise):
        for t in range(last - 1, first - 1, -1):
            o_grad = None if incoming.spikes is None else incoming.spikes[t]
            later, later_variance = None, None
            if t < steps - 1:
                later, later_variance = h_grads[t + 1], None if v_grads is None else v_grads[t + 1]
                o_grad = through_membrane(o_grad, later, feedback, layer.threshold)
                if later_variance is not None and layer.weight_variance is not None:
                    o_grad = through_variance(o_grad, later_variance, spikes[t], layer.weight_variance)
            _sum_into(h_grads[t], incoming.gap, t, later, through, incoming.membrane, slopes[t - first], o_grad)
            if v_grads is not None:
                slope = None if variance_slopes is None else variance_slopes[t - first]
                _sum_into(v_grads[t], incoming.total, t, later_variance, squared, incoming.variance, slope, o_grad)
    return Gradients(h_grads, v_grads, variance_gradient(v_grads, trace.before, layer.weight_variance))


def slope_blocks(
    estimator: Estimator, trace: Trace, noise: Tensor | None
) -> Iterator[tuple[int, int, Tensor, Tensor | None]]:
    """First and last step (exclusive) and slopes of a few steps at a time, backwards: what fits a cache stays there.

    Devices where every operator is a launch take all steps at once.
    """
    whole = trace.gap.device.type != "cpu"
    length = len(trace.gap) if whole else max(1, _BLOCK // max(1, trace.gap[0].numel()))
    for last in range(len(trace.gap), 0, -length):
        first = max(0, last - length)
        part = slice(first, last)
        variance, drawn = (None if whole is None else whole[part] for whole in (trace.total, noise))
        yield first, last, *estimator.slopes(trace.gap[part], variance, trace.spikes[part], drawn)


def through_membrane(o_grad: Tensor | None, h_grad: Tensor, feedback: Tensor | None, threshold: Tensor) -> Tensor:
    """∂L/∂o[t] with what comes through the next membrane: recurrent weights and reset, (W − θ)ᵀ, or the reset."""
    if feedback is None:
        through = -(threshold * h_grad)
        return through if o_grad is None else o_grad + through
    return torch.mm(h_grad, feedback) if o_grad is None else torch.addmm(o_grad, h_grad, feedback)


def through_variance(o_grad: Tensor, v_grad: Tensor, spikes: Tensor, weight_variance: Tensor) -> Tensor:
    """∂L/∂o[t] with what comes through the next κ²: 2 o_k Σ_{i≠k} ν_ik² ∂L/∂κ²_i."""
    if weight_variance.dim() == 2:
        return torch.addcmul(o_grad, spikes, torch.mm(v_grad, weight_variance), value=2.0)
    weighted = weight_variance * v_grad
    return torch.addcmul(o_grad, spikes, weighted.sum(-1, keepdim=True) - weighted, value=2.0)


def variance_gradient(v_grads: Tensor | None, before: Tensor, weight_variance: Tensor | None) -> Tensor | None:
    """Σ_t ∂L/∂κ²_i[t] o_k²[t−1] in the shape of ν²; of a shared ν² Σ_t ∂L/∂κ²_i[t] (Σ_k o_k² − o_i²)."""
    if v_grads is None or weight_variance is None:
        return None
    squares = before.square()
    if weight_variance.dim() == 2:
        return v_grads.flatten(0, 1).t() @ squares.flatten(0, 1)
    grad = v_grads * (squares.sum(-1, keepdim=True) - squares)
    return grad.sum().reshape(1) if weight_variance.numel() == 1 else grad.flatten(0, -2).sum(0)


def _is_one(threshold: Tensor) -> bool:
    """Whether a product with θ can be left out; not asked of other devices, which would have to be waited for."""
    return threshold.device.type == "cpu" and bool((threshold == 1).all())


def _times(activity: Tensor, gain: Tensor | None) -> Tensor:
    return activity if gain is None else activity * gain


def recurrent_variance(spikes: Tensor, weight_variance: Tensor | None, arriving: Tensor) -> Tensor:
    """Arriving variance and Σ_{k≠i} ν_ik² o_k²; a shared ν: ν² (Σ_k o_k² − o_i²)."""
    if weight_variance is None:
        return arriving
    squares = spikes.square()
    if weight_variance.dim() == 2:
        return torch.mm(squares, weight_variance.t()).add_(arriving)
    return (weight_variance * (squares.sum(-1, keepdim=True) - squares)).add_(arriving)


def _decision(estimator: Estimator, trace: Trace, noise: Tensor | None) -> Callable[[int], Tensor]:
    """Return a function that fires step t: the estimator's own, or ``firing.decide`` in fewer operations.

    ``decide`` asks κ² (ε|ε|) ≥ −d|d|; here both sides are negated, which changes no bit of the answer.
    """
    spikes, gap, total = trace.spikes, trace.gap, trace.total
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


def _sum_into(
    out: Tensor,
    incoming: Tensor | None,
    t: int,
    later: Tensor | None,
    decay: Tensor,
    last: Tensor | None,
    slope: Tensor | None,
    o_grad: Tensor | None,
) -> None:
    """incoming[t] + what the next step carries back (after the last: the state's) + slope · ∂L/∂o; absent is zero."""
    if later is not None:
        if incoming is None:
            torch.mul(later, decay, out=out)
        else:
            torch.addcmul(incoming[t], later, decay, out=out)
    else:
        out.zero_()
        for term in (last, None if incoming is None else incoming[t]):
            if term is not None:
                out.add_(term)
    if slope is not None and o_grad is not None:
        out.addcmul_(slope, o_grad)
