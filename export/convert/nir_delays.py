"""NIR's delays in time steps. Where they differ from neuron to neuron, the weights behind them choose the right one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.sources.neuron import wide

NEAR = 1e-6  # of a time step: how far a delay in seconds may be from a whole number of them

MOST_KEPT = 10**7  # values that a delay line holds


class Late(NamedTuple):
    """All delays in time steps, ascending, and which of them each neuron has."""

    delays: tuple[int, ...]
    which: Tensor


def delay_steps(seconds: Any, shape: Sequence[int], dt: float | None, name: str) -> Late:
    """Delays of seconds as whole time steps."""
    if dt is None:
        raise AxonnxError(f"{name}: Delay is in seconds; give the time step in seconds, e.g. 1e-3", options=("dt",))
    given = wide(seconds)
    try:
        steps = (given / dt).expand(tuple(shape))
    except RuntimeError:
        raise AxonnxError(f"{name}: delays of {list(given.shape)} do not fit what arrives, {list(shape)}") from None
    whole = torch.round(steps)
    wrong = ~((steps - whole).abs() <= NEAR) | (whole < 0)
    if bool(wrong.any()):
        raise AxonnxError(
            f"{name}: a delay of {float(steps[wrong][0] * dt):g} s is no whole number of time steps of {dt:g} s"
        )
    kept = int(whole.max()) * whole.numel()
    if kept > MOST_KEPT:
        raise AxonnxError(
            f"{name}: a delay of {int(whole.max()):,} time steps keeps {kept:,} values; expected at most {MOST_KEPT:,}"
        )
    delays, which = torch.unique(whole.long(), return_inverse=True)
    return Late(tuple(int(delay) for delay in delays), which)


def taken_apart(weight: Tensor, late: Late, groups: int, name: str) -> Tensor:
    """W_k = W where the neuron (or channel) before it has delay k, and 0 elsewhere: [out, delays · in, …]."""
    which = late.which
    if weight.dim() > 2:
        rows = which.flatten(1)
        if groups != 1 or not bool((rows == rows[:, :1]).all()):
            raise AxonnxError(f"{name}: delays that differ within a channel, or before a convolution in groups")
        which = rows[:, 0]
    mask = torch.nn.functional.one_hot(which.flatten(), len(late.delays)).T.to(weight.dtype)  # [delays, in]
    parts = [weight * row.reshape(1, -1, *(1,) * (weight.dim() - 2)) for row in mask]
    return torch.cat(parts, 1)


def put_together(weight: Tensor, shape: Sequence[int]) -> Tensor:
    """The source's weights again, of ``shape``: at most one of W_k is not zero."""
    times = weight.shape[1] // int(shape[1])
    return weight if times < 2 else weight.unflatten(1, (times, int(shape[1]))).sum(1)
