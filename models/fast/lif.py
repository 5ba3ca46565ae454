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
from torch.autograd.function import once_differentiable

from axonnx.models.fast import backend, lif_core
from axonnx.models.fast import lif_torch as lif_steps
from axonnx.models.fast.lif_torch import Drive, Incoming, Layer, Trace
from axonnx.models.fast.memory import keep_freed_memory
from axonnx.models.maths.current import Current
from axonnx.models.maths.estimators import Estimator
from axonnx.models.maths.firing import Drawn
from axonnx.models.maths.kl import Divergence

Passes = Callable[..., lif_core.Passed]  # as ``lif_core.lif_pass``


@dataclass(frozen=True)
class Recurrence:
    """Means [n, n] (zero diagonal) and variances ([1] or [n] shared, [n, n] otherwise) of recurrent weights."""

    mean: Tensor
    variance: Tensor | None


@dataclass(frozen=True)
class SequenceOutput:
    """Spikes, h* − θ and the decision's κ² for every step, the membrane's state after the last, and z's sums.

    The sums, ½ Σ ln(1 + z²) and Σ z² with z = (h* − θ)/κ, are there where they could be taken along at next to no
    cost. κ² is a function where nobody has computed it yet.
    """

    spikes: Tensor
    gap: Tensor | Callable[[], Tensor]
    decision_variance: Tensor | Callable[[], Tensor] | None
    membrane: Tensor
    variance: Tensor | None
    divergence: Divergence | None


def fused_passes(
    current: Current,
    noise: Tensor | Drawn | None,
    initial: lif_core.Initial,
    constants: tuple[Tensor | None, ...],
    estimator: Estimator,
) -> Passes | None:
    """Return who has one pass for all steps of this layer: the native core, or Triton kernels; None if nobody has.

    ``constants`` are β, θ, σ_base², recurrent means and variances; None and θ alone of neurons without memory.
    """
    if lif_core.applies(current, noise, initial, constants, estimator):
        return lif_core.lif_pass
    if backend.triton_wanted(current.mean):
        from axonnx.models.fast import lif_triton  # Triton is there only where it is needed

        if lif_triton.applies(current, noise, initial, constants, estimator):
            return lif_triton.lif_pass
    return None


def lif_sequence(
    current: Current,
    noise: Tensor | Drawn | None,
    initial: tuple[Tensor, Tensor | None, Tensor],
    decay: Tensor,
    threshold: Tensor,
    base_variance: Tensor | None,
    recurrence: Recurrence | None,
    estimator: Estimator,
    to_zero: bool = False,
) -> SequenceOutput:
    """Run T steps of ``current`` [T, B, …] from the ``initial`` membrane, variance and spikes.

    Noise that is ``Drawn`` and a reset ``to_zero`` are for what has ``fused_passes``.
    """
    weight, weight_variance = (None, None) if recurrence is None else (recurrence.mean, recurrence.variance)
    constants = (decay, threshold, base_variance, weight, weight_variance)
    run_pass = fused_passes(current, noise, initial, constants, estimator)
    if run_pass is not None:
        passed = run_pass(current, noise, initial, *constants, estimator, to_zero)

        def total() -> Tensor:
            before = torch.cat([initial[2][None], passed.spikes[:-1]])
            return _variances(current, initial[1], before, decay, base_variance, weight_variance, to_zero)

        known = passed.total if passed.total is not None or current.activity is None else total
        divergence = (
            None if passed.log is None or passed.quadratic is None else Divergence(passed.log, passed.quadratic)
        )
        return SequenceOutput(passed.spikes, passed.gap, known, passed.membrane, passed.variance, divergence)
    assert not to_zero, "a reset to zero is for a fused pass, or the plain loop"
    assert not isinstance(noise, Drawn), "fused_passes() is asked before noise is drawn"
    if current.gain is not None and current.gain.dim() == 4:
        current = Current(current.mean, current.variance)
    outputs = _LIFSequence.apply(
        current.mean,
        current.activity,
        current.gain,
        noise,
        *initial,
        *constants,
        estimator,
    )
    spikes, gap, total, membrane, variance = outputs
    return SequenceOutput(spikes, gap, total, membrane, variance, None)


def _variances(
    current: Current,
    remembered: Tensor | None,
    before: Tensor,
    decay: Tensor,
    base: Tensor | None,
    weight_variance: Tensor | None,
    to_zero: bool,
) -> Tensor:
    """κ² of every decision, as ``neurons.integrate`` computes it, for those who ask after the pass."""
    found, arriving = [], current.variance
    assert arriving is not None, "asked of a layer with noise"
    assert remembered is not None, "its state has a variance"
    for t, spikes in enumerate(before):
        variance = lif_steps.recurrent_variance(spikes, weight_variance, arriving[t])
        kept = remembered * (1.0 - spikes) if to_zero else remembered
        remembered = decay * decay * kept + variance
        found.append(remembered if base is None else remembered + base)
    return torch.stack(found)


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
        weight_variance: Tensor | None,
        estimator: Estimator,
    ) -> tuple[Tensor | None, ...]:
        layer = Layer(decay, threshold, base, weight, weight_variance, estimator)
        drive = Drive(mean, activity, gain, noise)
        trace = Trace(_emitted(last_spikes, mean), _like(mean), None if activity is None else _like(mean))
        if any(ctx.needs_input_grad) and mean.device.type == "cpu":
            keep_freed_memory()
        after = lif_steps.forward_steps(layer, drive, membrane, remembered, trace)
        ctx.estimator = estimator
        ctx.set_materialize_grads(False)
        # Of a variance that comes as it is the shape is enough; its factors are needed where there are two.
        ctx.activity_shape = None if activity is None else activity.shape
        factor = None if gain is None else activity
        ctx.save_for_backward(
            *trace, noise if estimator.reads_noise else None, membrane, remembered, *layer[:5], factor, gain
        )
        return trace.spikes, trace.gap, trace.total, *after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *incoming: Tensor | None) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        trace, (noise, first_membrane, first_variance) = Trace(*saved[:3]), saved[3:6]
        decay, threshold, base, weight, weight_variance, activity, gain = saved[6:]
        layer = Layer(decay, threshold, base, weight, weight_variance, ctx.estimator)
        h_grads, v_grads, by_weight_variance = lif_steps.backward_steps(layer, noise, trace, Incoming(*incoming))
        first_h, decay_squared = h_grads[0], decay * decay
        return (
            h_grads,
            *_activity_grads(ctx, v_grads, activity, gain),
            None,
            decay * first_h if ctx.needs_input_grad[4] else None,
            decay_squared * v_grads[0] if v_grads is not None and ctx.needs_input_grad[5] else None,
            _first_spikes_grad(ctx, first_h, v_grads, trace.emitted[0], layer),
            _decay_grad(ctx, h_grads, v_grads, trace, layer, first_membrane, first_variance),
            _threshold_grad(ctx, h_grads, trace, layer, incoming[3]),
            _base_grad(ctx, v_grads, incoming[4], decay_squared),
            h_grads.flatten(0, 1).t() @ trace.before.flatten(0, 1) if weight is not None else None,
            by_weight_variance,
            None,
        )


def _emitted(last_spikes: Tensor, mean: Tensor) -> Tensor:
    """Room for the spikes of all steps, behind those before the first."""
    emitted = mean.new_empty((len(mean) + 1, *mean.shape[1:]))
    emitted[0] = last_spikes
    return emitted


def _like(mean: Tensor) -> Tensor:
    return torch.empty_like(mean, memory_format=torch.contiguous_format)


def _activity_grads(
    ctx: Any, v_grads: Tensor | None, activity: Tensor | None, gain: Tensor | None
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients of the two factors of the arriving variance: products of matrices where the factors allow it.

    A dense layer has v [… , n] = activity [… , 1] · gain [n], a convolutional one v [… , c, positions] =
    gain [c, 1] · activity [… , 1, positions].
    """
    if v_grads is None or ctx.activity_shape is None:
        return None, None
    if gain is None or activity is None:
        return v_grads.sum_to_size(ctx.activity_shape), None
    channels = -gain.dim()
    if activity.shape[channels] != 1 or gain.numel() != v_grads.shape[channels] or gain.numel() != len(gain):
        return (v_grads * gain).sum_to_size(activity.shape), (v_grads * activity).sum_to_size(gain.shape)
    if gain.dim() == 1:
        flat = activity.flatten(), v_grads.flatten(0, -2)
        by_activity = v_grads @ gain[:, None] if ctx.needs_input_grad[1] else None
        return by_activity, flat[0] @ flat[1] if ctx.needs_input_grad[2] else None
    grads, active = (x.flatten(channels + 1).flatten(0, -3) for x in (v_grads, activity))
    by_activity = (gain.reshape(1, 1, -1) @ grads).reshape(activity.shape) if ctx.needs_input_grad[1] else None
    by_gain = (grads @ active.mT).sum(0).reshape(gain.shape) if ctx.needs_input_grad[2] else None
    return by_activity, by_gain


def _first_spikes_grad(
    ctx: Any, h_grad: Tensor, v_grads: Tensor | None, first_spikes: Tensor, layer: Layer
) -> Tensor | None:
    if not ctx.needs_input_grad[6]:
        return None
    grad = lif_steps.through_membrane(None, h_grad, layer.feedback, layer.threshold)
    if v_grads is None or layer.weight_variance is None:
        return grad
    return lif_steps.through_variance(grad, v_grads[0], first_spikes, layer.weight_variance)


def _decay_grad(
    ctx: Any,
    h_grads: Tensor,
    v_grads: Tensor | None,
    trace: Trace,
    layer: Layer,
    first_membrane: Tensor,
    first_variance: Tensor | None,
) -> Tensor | None:
    """Return Σ_t ∂L/∂h*[t] h*[t−1] + 2β ∂L/∂κ²[t] κ²[t−1]."""
    if not ctx.needs_input_grad[7]:
        return None
    membranes = torch.cat([first_membrane[None], trace.gap[:-1] + layer.threshold])
    grad = (h_grads * membranes).sum_to_size(layer.decay.shape)
    if v_grads is None or trace.total is None or first_variance is None:
        return grad
    kept = trace.total[:-1] if layer.base is None else trace.total[:-1] - layer.base
    through_variance = (v_grads * torch.cat([first_variance[None], kept])).sum_to_size(layer.decay.shape)
    return grad + 2.0 * layer.decay * through_variance


def _threshold_grad(ctx: Any, h_grads: Tensor, trace: Trace, layer: Layer, by_membrane: Tensor | None) -> Tensor | None:
    """−Σ_t of what reaches h* − θ at the decision, ∂L/∂h*[t] − β ∂L/∂h*[t+1], and of the reset, ∂L/∂h*[t] o[t−1]."""
    if not ctx.needs_input_grad[8]:
        return None
    shape, kept = layer.threshold.shape, 1.0 - layer.decay
    grad = -(h_grads * (kept + trace.before)).sum_to_size(shape) - (layer.decay * h_grads[0]).sum_to_size(shape)
    return grad if by_membrane is None else grad + by_membrane.sum_to_size(shape)


def _base_grad(ctx: Any, v_grads: Tensor | None, by_variance: Tensor | None, decay_squared: Tensor) -> Tensor | None:
    """Σ_t of what reaches κ² at the decision alone: ∂L/∂κ²[t] less what comes back through the recurrence."""
    if v_grads is None or not ctx.needs_input_grad[9]:
        return None
    shape = decay_squared.shape
    kept, first = v_grads.sum_to_size(shape), v_grads[0].sum_to_size(shape)
    grad = ((1.0 - decay_squared) * kept + decay_squared * first).sum()
    return grad if by_variance is None else grad - by_variance.sum()
