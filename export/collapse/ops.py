"""The spike operators as torch operators: eager torch runs the training code's formulas, a trace keeps the name.

They are the operators of ``axonnx.runtime.format.opset``, one for one, with the same order of inputs and outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from axonnx.models import pooling
from axonnx.models.maths.current import Current
from axonnx.models.maths.firing import decide
from axonnx.models.neurons import Reset, integrate
from axonnx.models.run import LIFState

LIBRARY = "axonnx"


@torch.library.custom_op(f"{LIBRARY}::heaviside", mutates_args=())
def heaviside(current: Tensor, threshold: Tensor) -> Tensor:
    """o = 1 where I ≥ θ"""
    return decide(current - threshold, None, None)


@torch.library.custom_op(f"{LIBRARY}::stochastic_heaviside", mutates_args=())
def stochastic_heaviside(current: Tensor, variance: Tensor, noise: Tensor, threshold: Tensor) -> Tensor:
    """o = 1 where I + κ ε ≥ θ"""
    return decide(current - threshold, variance, noise)


def _lif(
    current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor, reset: Reset
) -> tuple[Tensor, Tensor]:
    after, _ = integrate(Current(current), LIFState(membrane, None, spikes), decay, threshold, reset)
    return after, decide(after - threshold, None, None)


@torch.library.custom_op(f"{LIBRARY}::lif", mutates_args=())
def lif(current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    """One step of a LIF layer whose spikes subtract θ."""
    return _lif(current, membrane, spikes, decay, threshold, "subtract")


@torch.library.custom_op(f"{LIBRARY}::lif_to_zero", mutates_args=())
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


@torch.library.custom_op(f"{LIBRARY}::stochastic_lif", mutates_args=())
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


@torch.library.custom_op(f"{LIBRARY}::stochastic_lif_to_zero", mutates_args=())
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


@torch.library.custom_op(f"{LIBRARY}::leaky_sum", mutates_args=())
def leaky_sum(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """h' = β h + I;   s' = s + h'"""
    after = decay * membrane + current
    return after, total + after


@torch.library.custom_op(f"{LIBRARY}::recurrent_activity", mutates_args=())
def recurrent_activity(spikes: Tensor) -> Tensor:
    """Σ_k o_k² − o_i²"""
    squares = spikes * spikes
    return squares.sum(-1, keepdim=True) - squares


@torch.library.custom_op(f"{LIBRARY}::pool_pairs", mutates_args=())
def pool_pairs(x: Tensor) -> Tensor:
    """((a + b) + (c + d)) · ¼ over squares of 2 × 2"""
    return pooling.pool_pairs(x)


@pool_pairs.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:-2], x.shape[-2] // 2, x.shape[-1] // 2))


@heaviside.register_fake
def _(current: Tensor, threshold: Tensor) -> Tensor:
    return torch.empty_like(current)


@stochastic_heaviside.register_fake
def _(current: Tensor, variance: Tensor, noise: Tensor, threshold: Tensor) -> Tensor:
    return torch.empty_like(current)


@lif.register_fake
@lif_to_zero.register_fake
def _(current: Tensor, membrane: Tensor, spikes: Tensor, decay: Tensor, threshold: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(current), torch.empty_like(current)


@stochastic_lif.register_fake
@stochastic_lif_to_zero.register_fake
def _(current: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(current), torch.empty_like(current), torch.empty_like(current)


@leaky_sum.register_fake
def _(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(current), torch.empty_like(current)


@recurrent_activity.register_fake
def _(spikes: Tensor) -> Tensor:
    return torch.empty_like(spikes)
