"""The spike operators as torch operators: eager torch runs the training code's formulas, a graph keeps the name.

They are the operators of ``axonnx.runtime.format.opset``, one for one, with the same order of inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from axonnx.models import general, pooling
from axonnx.models.maths.current import Current
from axonnx.models.maths.firing import decide
from axonnx.models.neurons import Reset, integrate
from axonnx.models.run import LIFState
from axonnx.runtime.format.opset import OPS

LIBRARY = "axonnx"
Shape = tuple[int, ...]
OPERATORS: dict[str, Any] = {}  # by the name in the operator set


def _same(shape: Shape) -> Shape:
    return shape


def _halved(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-2] // 2, shape[-1] // 2)


def operator(name: str, shape: Callable[[Shape], Shape] = _same) -> Callable[[Callable[..., Any]], Any]:
    """The decorated function is the operator ``name``; each output's shape follows from that of the first input."""

    def outputs(first: Tensor, *rest: Tensor) -> Tensor | tuple[Tensor, ...]:
        made = tuple(first.new_empty(shape(tuple(first.shape))) for _ in OPS[name].outputs)
        return made if len(made) > 1 else made[0]

    def register(function: Callable[..., Any]) -> Any:
        OPERATORS[name] = torch.library.custom_op(f"{LIBRARY}::{OPS[name].function}", mutates_args=())(function)
        OPERATORS[name].register_fake(outputs)
        return OPERATORS[name]

    return register


def operator_of(target: object) -> str | None:
    """The name of the spike operator that a captured node calls."""
    return _NAMES.get(str(target))


_NAMES = {f"{LIBRARY}.{op.function}.default": op.name for op in OPS.values()}


@operator("Heaviside")
def heaviside(current: Tensor, threshold: Tensor) -> Tensor:
    """o = 1 where I ≥ θ"""
    return decide(current - threshold, None, None)


@operator("StochasticHeaviside")
def stochastic_heaviside(current: Tensor, variance: Tensor, noise: Tensor, threshold: Tensor) -> Tensor:
    """o = 1 where I + κ ε ≥ θ"""
    return decide(current - threshold, variance, noise)


def _lif(
    current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor, reset: Reset
) -> tuple[Tensor, Tensor]:
    after, _ = integrate(Current(current), LIFState(membrane, None, spikes), decay, threshold, reset)
    return after, decide(after - threshold, None, None)


@operator("LIF")
def lif(current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a LIF layer whose spikes subtract θ."""
    return _lif(current, membrane, spikes, decay, threshold, "subtract")


@operator("LIFToZero")
def lif_to_zero(
    current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor
) -> tuple[Tensor, Tensor]:
    """One step of a LIF layer whose spikes reset the membrane to zero."""
    return _lif(current, membrane, spikes, decay, threshold, "zero")


def _stochastic_lif(
    arriving: Current, noise: Tensor, state: LIFState, decay: Tensor, threshold: Tensor, base: Tensor, reset: Reset
) -> tuple[Tensor, Tensor, Tensor]:
    membrane, variance = integrate(arriving, state, decay, threshold, reset)
    assert variance is not None
    return membrane, variance, decide(membrane - threshold, variance + base, noise)


@operator("StochasticLIF")
def stochastic_lif(
    current: Tensor,
    arriving_variance: Tensor,
    noise: Tensor,
    membrane: Tensor,
    variance: Tensor,
    spikes: Tensor,
    decay: Tensor,
    threshold: Tensor,
    base_variance: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of a noisy LIF layer whose spikes subtract θ."""
    state = LIFState(membrane, variance, spikes)
    return _stochastic_lif(
        Current(current, arriving_variance), noise, state, decay, threshold, base_variance, "subtract"
    )


@operator("StochasticLIFToZero")
def stochastic_lif_to_zero(
    current: Tensor,
    arriving_variance: Tensor,
    noise: Tensor,
    membrane: Tensor,
    variance: Tensor,
    spikes: Tensor,
    decay: Tensor,
    threshold: Tensor,
    base_variance: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of a noisy LIF layer whose spikes reset the membrane to zero."""
    state = LIFState(membrane, variance, spikes)
    return _stochastic_lif(Current(current, arriving_variance), noise, state, decay, threshold, base_variance, "zero")


@operator("LeakySum")
def leaky_sum(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """h' = β h + I;   s' = s + h'"""
    after = decay * membrane + current
    return after, total + after


@operator("LeakyCurrent")
def leaky_current(current: Tensor, synaptic: Tensor, synaptic_decay: Tensor) -> Tensor:
    """i' = α i + I"""
    return synaptic_decay * synaptic + current


@operator("GeneralLIF")
def general_lif(
    current: Tensor,
    membrane: Tensor,
    spikes: Tensor,
    decay: Tensor,
    threshold: Tensor,
    zeroed: Tensor,
    taken: Tensor,
    late_zeroed: Tensor,
    late_taken: Tensor,
) -> tuple[Tensor, Tensor]:
    """One step of neurons of any reset."""
    p = general.Dynamics(decay, threshold, zeroed, taken, late_zeroed, late_taken)
    after = general.reset_late(general.charge(current, membrane, spikes, p), spikes, p)
    return after, decide(after - threshold, None, None)


@operator("AdaptiveLIF")
def adaptive_lif(
    current: Tensor,
    membrane: Tensor,
    spikes: Tensor,
    adaptation: Tensor,
    decay: Tensor,
    threshold: Tensor,
    zeroed: Tensor,
    taken: Tensor,
    late_zeroed: Tensor,
    late_taken: Tensor,
    adaptation_decay: Tensor,
    membrane_share: Tensor,
    spike_share: Tensor,
    current_gain: Tensor,
    threshold_gain: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of neurons that adapt to their spikes."""
    p = general.Dynamics(decay, threshold, zeroed, taken, late_zeroed, late_taken)
    by = general.Adaptation(adaptation_decay, membrane_share, spike_share, current_gain, threshold_gain)
    adapted = general.adapt(adaptation, membrane, spikes, by)
    charged = general.charge(current, membrane, spikes, p) - current_gain * adapted
    after = general.reset_late(charged, spikes, p)
    return after, adapted, decide(after - (threshold + threshold_gain * adapted), None, None)


@operator("RecurrentActivity")
def recurrent_activity(spikes: Tensor) -> Tensor:
    """Σ_k o_k² − o_i²"""
    squares = spikes * spikes
    return squares.sum(-1, keepdim=True) - squares


@operator("PoolPairs", shape=_halved)
def pool_pairs(x: Tensor) -> Tensor:
    """((a + b) + (c + d)) · ¼ over squares of 2 × 2"""
    return pooling.pool_pairs(x)
