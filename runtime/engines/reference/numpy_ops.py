"""Every instruction in a few lines of numpy, on arrays [B, …]: the executable specification of the engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program.instructions import Arithmetic, Conv, Move

Floats = NDArray[np.float32]
Params = Mapping[str, Floats]
Kernel = TypeVar("Kernel", bound=Callable[..., Any])
KERNELS: dict[str, Callable[..., tuple[Floats, ...]]] = {}  # of each spike operator, on operands and parameters


def kernel(name: str) -> Callable[[Kernel], Kernel]:
    """The decorated function is what this engine runs for the spike operator ``name``."""

    def register(function: Kernel) -> Kernel:
        KERNELS[name] = function
        return function

    return register


def linear(x: Floats, rows: Floats, bias: Floats | None) -> tuple[Floats, NDArray[np.int64]]:
    """W·x + b from the rows of active inputs alone, ``rows`` being W transposed [in, out]; and the operations."""
    out = np.zeros((len(x), rows.shape[1]), np.float32)
    operations = np.zeros(len(x), np.int64)
    for sample, values in enumerate(x):
        active = np.flatnonzero(values)
        out[sample] = values[active] @ rows[active]  # exact on the grid, so in any order
        operations[sample] = len(active) * rows.shape[1]
    return (out if bias is None else out + bias), operations


def conv(
    x: Floats, weight: Floats, bias: Floats | None, how: Conv, shape: tuple[int, ...]
) -> tuple[Floats, NDArray[np.int64]]:
    """W ∗ x + b: every active input adds its weights to the outputs it reaches."""
    out = np.zeros((len(x), shape[1], shape[2], shape[0]), np.float32)  # channels last: an event adds whole rows
    operations = np.zeros(len(x), np.int64)
    per_group = weight.shape[1]
    outputs = shape[0] // how.group
    samples, channels, rows, columns = np.nonzero(x)
    values = x[samples, channels, rows, columns]
    for ky, kx in np.ndindex(weight.shape[2:]):
        y, offset_y = np.divmod(rows + how.pads[0] - ky * how.dilations[0], how.strides[0])
        z, offset_z = np.divmod(columns + how.pads[1] - kx * how.dilations[1], how.strides[1])
        hit = (offset_y == 0) & (offset_z == 0) & (y >= 0) & (y < shape[1]) & (z >= 0) & (z < shape[2])
        for group in range(how.group):
            at = hit & (channels // per_group == group)
            part = slice(group * outputs, (group + 1) * outputs)
            added = values[at, None] * weight[part, :, ky, kx][:, channels[at] % per_group].T
            np.add.at(out[..., part], (samples[at], y[at], z[at]), added)
        operations += np.bincount(samples[hit], minlength=len(x)) * outputs
    out = out if bias is None else out + bias
    return np.ascontiguousarray(out.transpose(0, 3, 1, 2)), operations


def decide(membrane: Floats, threshold: Floats) -> Floats:
    """1 where the membrane is at its threshold or above."""
    return (membrane >= threshold).astype(np.float32)


def decide_noisy(membrane: Floats, variance: Floats, noise: Floats, threshold: Floats) -> Floats:
    """1 where h + κ ε ≥ θ, decided on squares: κ² (ε|ε|) ≥ −(h − θ)|h − θ|."""
    gap = membrane - threshold
    needed = -(gap * np.abs(gap))
    fires: Floats = (variance * (noise * np.abs(noise)) >= needed).astype(np.float32)
    return fires


@kernel("Heaviside")
def heaviside(current: Floats, p: Params) -> tuple[Floats]:
    """o = 1 where I ≥ θ"""
    return (decide(current, p["threshold"]),)


@kernel("StochasticHeaviside")
def stochastic_heaviside(current: Floats, variance: Floats, noise: Floats, p: Params) -> tuple[Floats]:
    """o = 1 where I + κ ε ≥ θ"""
    return (decide_noisy(current, variance, noise, p["threshold"]),)


@kernel("LIF")
def lif(current: Floats, membrane: Floats, spikes: Floats, p: Params) -> tuple[Floats, Floats]:
    """h' = β h + I − θ o;   o' = 1 where h' ≥ θ"""
    after = p["decay"] * membrane + current - p["threshold"] * spikes
    return after, decide(after, p["threshold"])


@kernel("LIFToZero")
def lif_to_zero(current: Floats, membrane: Floats, spikes: Floats, p: Params) -> tuple[Floats, Floats]:
    """h' = β (h (1 − o)) + I;   o' = 1 where h' ≥ θ"""
    after = p["decay"] * (membrane * (1 - spikes)) + current
    return after, decide(after, p["threshold"])


@kernel("StochasticLIF")
def stochastic_lif(
    current: Floats, arriving: Floats, noise: Floats, membrane: Floats, variance: Floats, spikes: Floats, p: Params
) -> tuple[Floats, Floats, Floats]:
    """h' = β h + I − θ o;   v' = β² v + Var I;   o' = 1 where h' + κ ε ≥ θ with κ² = v' + σ_base²"""
    after = p["decay"] * membrane + current - p["threshold"] * spikes
    variance_after = (p["decay"] * p["decay"]) * variance + arriving
    return after, variance_after, decide_noisy(after, variance_after + p["base_variance"], noise, p["threshold"])


@kernel("StochasticLIFToZero")
def stochastic_lif_to_zero(
    current: Floats, arriving: Floats, noise: Floats, membrane: Floats, variance: Floats, spikes: Floats, p: Params
) -> tuple[Floats, Floats, Floats]:
    """h' = β (h (1 − o)) + I;   v' = β² (v (1 − o)) + Var I;   o' as in ``stochastic_lif``"""
    kept = 1 - spikes
    after = p["decay"] * (membrane * kept) + current
    variance_after = (p["decay"] * p["decay"]) * (variance * kept) + arriving
    return after, variance_after, decide_noisy(after, variance_after + p["base_variance"], noise, p["threshold"])


@kernel("LeakySum")
def leaky_sum(current: Floats, membrane: Floats, total: Floats, p: Params) -> tuple[Floats, Floats]:
    """h' = β h + I;   s' = s + h'"""
    after = p["decay"] * membrane + current
    return after, total + after


@kernel("LeakyCurrent")
def leaky_current(current: Floats, synaptic: Floats, p: Params) -> tuple[Floats]:
    """i' = α i + I"""
    return (p["synaptic_decay"] * synaptic + current,)


def _charged(current: Floats, membrane: Floats, spikes: Floats, p: Params) -> Floats:
    """β (h (1 − z o) − r o) + I: what the last spike left of the membrane decays"""
    charged: Floats = p["decay"] * (membrane * (1 - p["zeroed"] * spikes) - p["taken"] * spikes) + current
    return charged


def _reset_late(charged: Floats, spikes: Floats, p: Params) -> Floats:
    """x (1 − Z o) − R o: a reset one step after the spike"""
    after: Floats = charged * (1 - p["late_zeroed"] * spikes) - p["late_taken"] * spikes
    return after


@kernel("GeneralLIF")
def general_lif(current: Floats, membrane: Floats, spikes: Floats, p: Params) -> tuple[Floats, Floats]:
    """h' = (β (h (1 − z o) − r o) + I) (1 − Z o) − R o;   o' = 1 where h' ≥ θ"""
    after = _reset_late(_charged(current, membrane, spikes, p), spikes, p)
    return after, decide(after, p["threshold"])


@kernel("AdaptiveLIF")
def adaptive_lif(
    current: Floats, membrane: Floats, spikes: Floats, adaptation: Floats, p: Params
) -> tuple[Floats, Floats, Floats]:
    """a' = δ a + c h + b o;   h' as in ``general_lif`` with I − g a';   o' = 1 where h' ≥ θ + f a'"""
    adapted = p["adaptation_decay"] * adaptation + p["membrane_share"] * membrane + p["spike_share"] * spikes
    charged = _charged(current, membrane, spikes, p) - p["current_gain"] * adapted
    after = _reset_late(charged, spikes, p)
    return after, adapted, decide(after, p["threshold"] + p["threshold_gain"] * adapted)


def arithmetic(how: Arithmetic, a: Floats, b: Floats) -> Floats:
    """a + b, a − b or a · b"""
    out: Floats = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[how.kind](a, b)
    return out


@kernel("RecurrentActivity")
def recurrent_activity(x: Floats, p: Params) -> tuple[Floats]:
    """a_i = Σ_k x_k² − x_i²"""
    squares = x * x
    return (squares.sum(-1, keepdims=True, dtype=np.float32) - squares,)


@kernel("PoolPairs")
def pool_pairs(x: Floats, p: Params) -> tuple[Floats]:
    """((a + b) + (c + d)) · ¼ over squares of 2 × 2, in that order"""
    top, bottom = x[..., 0::2, :], x[..., 1::2, :]
    pooled = ((top[..., 0::2] + top[..., 1::2]) + (bottom[..., 0::2] + bottom[..., 1::2])) * np.float32(0.25)
    return (pooled,)


def average_pool(x: Floats, window: tuple[int, int]) -> Floats:
    """Means over windows; exact, for windows are powers of two and x lies on a grid"""
    batch, channels, height, width = x.shape
    tiles = x.reshape(batch, channels, height // window[0], window[0], width // window[1], window[1])
    means: Floats = tiles.sum((3, 5), dtype=np.float32) * np.float32(1 / (window[0] * window[1]))
    return means


def max_pool(x: Floats, window: tuple[int, int]) -> Floats:
    """The largest of each window"""
    batch, channels, height, width = x.shape
    tiles = x.reshape(batch, channels, height // window[0], window[0], width // window[1], window[1])
    largest: Floats = tiles.max((3, 5))
    return largest


def move(how: Move, parts: Sequence[NDArray[Any]], empty: Any = 0) -> NDArray[Any]:
    """Data of any kind put elsewhere; ``empty`` is what padding holds."""
    x = parts[0]
    if how.kind == "Reshape":
        return x.reshape(len(x), *how.how)
    if how.kind == "Concat":
        return np.concatenate(parts, how.how + 1)
    if how.kind == "Pad":
        return np.pad(x, ((0, 0), *how.how), constant_values=empty)
    if how.kind == "Slice":
        return x[(slice(None), *how.how)]
    if how.kind == "Transpose":
        return x.transpose(0, *(axis + 1 for axis in how.how))
    assert how.kind == "Expand", how.kind
    return np.broadcast_to(x, (len(x), *how.how))
