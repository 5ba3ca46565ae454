"""Compiled arithmetic of ``lif_sequence`` for float32 on a CPU: the operations of a time step, row by row.

A row is what one inner loop covers: the neurons of one sample, or the positions of one channel of one sample. The
forward pass has the bits of ``neurons.integrate`` and ``firing.decide``: every product, sum and comparison is the
same, in the same order. Arrays of size zero stand for what a layer does not have.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.models.fast.compiling import compiled, inlined, inlined_sum
from axonnx.models.maths import normal

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Longs = NDArray[np.int64]
Float = Any  # a float32 inside compiled code

ZERO, ONE, TWO, HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
INV_SQRT_2PI = np.float32(normal.INV_SQRT_2PI)
VARIANCE_FLOOR = np.float32(normal.VARIANCE_FLOOR)
LOG2_E, LN2_HIGH, LN2_LOW = np.float32(1 / np.log(2)), np.float32(0.693359375), np.float32(np.log(2) - 0.693359375)
EXP = tuple(map(np.float32, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1)))
EXP_ZERO = np.float32(-60)  # e⁻⁶⁰ = 10⁻²⁶ moves no gradient; products with less would be subnormal, which is slow
FACTORS = 6  # a float32 is below 10³⁹: six of them do not overflow a float64


@compiled
def forward(
    first: int,
    last: int,
    begin: int,
    end: int,
    constants: Floats,
    decays: Floats,
    decays_squared: Floats,
    thresholds: Floats,
    layout: Longs,
    numbers: Floats,
    vectors: Floats,
    mean: Floats,
    product: Floats,
    weight_variance: Floats,
    scatter: Floats,
    noise: Floats,
    membrane: Floats,
    remembered: Floats,
    spikes: Floats,
    gap: Floats,
    total: Floats,
    products: Doubles,
    squares: Doubles,
) -> None:
    """Steps ``first`` to ``last`` of rows ``begin`` to ``end``; ``spikes`` [T + 1, R, N] begin with the initial ones.

    ``decays`` and ``thresholds`` [C, N] are those of row r at r mod C.
    ``product`` holds W o[t−1] of a recurrent layer, ``scatter`` its Σ_k ν_ik² o_k² where each weight has its own
    ν, ``weight_variance`` ν² where a neuron's share theirs. Spikes are 0 or 1, so sums of
    their squares are exact in any order. The variance that arrives at a row is one
    number of ``numbers`` times a part of ``vectors``, both found by ``layout``. ``products`` [⌈T/6⌉, R, N] take the
    factors 1 + d²/κ² of six steps, whose logarithm the KL adds up; ``squares`` [R, N] take the sums of d²/κ².
    """
    base, neurons = constants[0], gap.shape[2]
    for row in range(begin, end):
        own = row % len(decays)
        decay, decay_squared, threshold = decays[own], decays_squared[own], thresholds[own]
        b, c = row // layout[0], row % layout[0]
        for t in range(first, last):
            before, fired, gaps = spikes[t, row], spikes[t + 1, row], gap[t, row]
            if product.size:
                _add(product[row], mean[t, row])
                _integrate(membrane[row], gaps, product[row], before, decay, threshold)
            else:
                _integrate(membrane[row], gaps, mean[t, row], before, decay, threshold)
            if total.size:
                scale = numbers[t * layout[1] + b * layout[2] + c * layout[3]]
                start = t * layout[4] + b * layout[5] + c * layout[6]
                vector = vectors[start : start + neurons]
                kept = remembered[row]
                if weight_variance.size:
                    _remember_shared(kept, decay_squared, weight_variance, _dot(before, before), before, scale, vector)
                elif scatter.size:
                    _remember_scattered(kept, decay_squared, scatter[row], scale, vector)
                else:
                    _remember(kept, decay_squared, scale, vector)
                _add_number(total[t, row], kept, base)
                if products.size:
                    factors = products[t // FACTORS, row]
                    if t % FACTORS == 0:
                        _fill(factors, 1.0)
                    _take_ratio(factors, squares[row], gaps, total[t, row])
            if noise.size:
                _fire_noisily(fired, gaps, total[t, row], noise[t, row])
            else:
                _fire(fired, gaps)


@compiled
def backward(
    first: int,
    last: int,
    begin: int,
    end: int,
    origin: int,
    constants: Floats,
    decays: Floats,
    decays_squared: Floats,
    thresholds: Floats,
    slopes: Floats,
    variance_slopes: Floats,
    by_spikes: Floats,
    by_gap: Floats,
    by_total: Floats,
    by_membrane: Floats,
    by_variance: Floats,
    product: Floats,
    weight_variance: Floats,
    scatter: Floats,
    spikes: Floats,
    gap: Floats,
    total: Floats,
    scratch: Floats,
    h_grads: Floats,
    v_grads: Floats,
    by_weight_variance: Floats,
) -> None:
    """The same steps from the last to the first: ∂L/∂h* and ∂L/∂κ².

    ``slopes`` [steps from ``origin`` on, R, N] are ∂o/∂h* as an estimator gave them, ``variance_slopes`` its ∂o/∂κ²;
    without them the slopes are Normal densities, of std ``width``, or κ where that is zero. ``product`` holds
    what came to the spikes through the next membranes, incoming gradients included, ``scatter`` what came through
    the next variances where each weight has its own ν. ``by_weight_variance`` [T, R] gets what each row adds to
    ∂L/∂ν² where the whole layer shares it.
    """
    width, by_log, by_quadratic = constants[1], constants[2], constants[3]
    steps = gap.shape[0]
    slope, o_grad, rates, fixed, nothing, unit = (
        scratch[begin, 0],
        scratch[begin, 1],
        scratch[begin, 2],
        scratch[begin, 3],
        scratch[begin, 4],
        scratch[begin, 5],
    )
    _fill(nothing, ZERO)
    _fill(unit, ONE)
    _fill(fixed, ONE / width)
    for row in range(begin, end):
        own = row % len(decays)
        for t in range(last - 1, first - 1, -1):
            final = t == steps - 1
            later = by_membrane[row] if by_membrane.size else nothing
            if not final:
                later = h_grads[t + 1, row]
            if product.size and not final:
                _copy(o_grad, product[row])
            else:
                _copy(o_grad, by_spikes[t, row] if by_spikes.size else nothing)
                if not final:
                    _subtract(o_grad, thresholds[own], later)
            if v_grads.size and not final:
                if weight_variance.size:
                    _through_shared(o_grad, spikes[t + 1, row], weight_variance, v_grads[t + 1, row])
                elif scatter.size:
                    _through_scattered(o_grad, spikes[t + 1, row], scatter[row])
            if v_grads.size:
                _rates_of_noise(rates, total[t, row])
            if slopes.size:
                _copy(slope, slopes[t - origin, row])
            elif width > ZERO:
                _density(slope, gap[t, row], fixed)
            else:
                _density(slope, gap[t, row], rates)
            incoming = by_gap[t, row] if by_gap.size else nothing
            _gather(h_grads[t, row], incoming, unit if final else decays[own], later, slope, o_grad)
            if v_grads.size:
                if variance_slopes.size:
                    _copy(slope, variance_slopes[t - origin, row])
                elif slopes.size or width > ZERO:
                    _copy(slope, nothing)
                else:
                    _to_variance(slope, gap[t, row], rates)
                later = by_variance[row] if by_variance.size else nothing
                if not final:
                    later = v_grads[t + 1, row]
                incoming = by_total[t, row] if by_total.size else nothing
                _gather(v_grads[t, row], incoming, unit if final else decays_squared[own], later, slope, o_grad)
                if by_log != ZERO:
                    _through_log(h_grads[t, row], v_grads[t, row], gap[t, row], rates, by_log)
                if by_quadratic != ZERO:
                    _through_quadratic(h_grads[t, row], v_grads[t, row], gap[t, row], rates, by_quadratic)
                if by_weight_variance.size:
                    by_weight_variance[t, row] = _variance_gradient(v_grads[t, row], spikes[t, row])


@inlined
def _integrate(
    membrane: Floats, gap: Floats, arriving: Floats, before: Floats, decay: Floats, threshold: Floats
) -> None:
    """h*[t] = β·h*[t−1] + I[t] − θ·o[t−1], and h*[t] − θ"""
    for i in range(len(gap)):
        h = decay[i] * membrane[i] + arriving[i] - threshold[i] * before[i]
        membrane[i] = h
        gap[i] = h - threshold[i]


@inlined
def _remember(variance: Floats, decay_squared: Floats, scale: Float, vector: Floats) -> None:
    """κ²[t] = β²·κ²[t−1] + Var I[t]"""
    for i in range(len(variance)):
        variance[i] = decay_squared[i] * variance[i] + scale * vector[i]


@inlined
def _remember_shared(
    variance: Floats,
    decay_squared: Floats,
    weight_variance: Floats,
    total: Float,
    before: Floats,
    scale: Float,
    vector: Floats,
) -> None:
    """As ``_remember``, with ν² (Σ_k o_k² − o_i²) of the recurrent weights."""
    for i in range(len(variance)):
        recurrent = weight_variance[i] * (total - before[i] * before[i])
        variance[i] = decay_squared[i] * variance[i] + (recurrent + scale * vector[i])


@inlined
def _remember_scattered(variance: Floats, decay_squared: Floats, scatter: Floats, scale: Float, vector: Floats) -> None:
    """As ``_remember``, with Σ_k ν_ik² o_k² of the recurrent weights."""
    for i in range(len(variance)):
        variance[i] = decay_squared[i] * variance[i] + (scatter[i] + scale * vector[i])


@inlined
def _fire(spikes: Floats, gap: Floats) -> None:
    """o = 1 where h* ≥ θ"""
    for i in range(len(spikes)):
        spikes[i] = ONE if gap[i] >= ZERO else ZERO


@inlined
def _fire_noisily(spikes: Floats, gap: Floats, variance: Floats, noise: Floats) -> None:
    """o = 1 where κ²·(ε|ε|) ≥ d|d| with d = θ − h*"""
    for i in range(len(spikes)):
        push, away = variance[i] * (noise[i] * abs(noise[i])), gap[i] * abs(gap[i])
        spikes[i] = ONE if push >= -away else ZERO


@inlined
def _through_shared(o_grad: Floats, spikes: Floats, weight_variance: Floats, v_grad: Floats) -> None:
    """What comes through the next κ²: 2 o_k Σ_{i≠k} ν_i² ∂L/∂κ²_i"""
    total = _dot(weight_variance, v_grad)
    for i in range(len(o_grad)):
        o_grad[i] += TWO * spikes[i] * (total - weight_variance[i] * v_grad[i])


@inlined
def _through_scattered(o_grad: Floats, spikes: Floats, scatter: Floats) -> None:
    """The same of Σ_{i≠k} ν_ik² ∂L/∂κ²_i"""
    for i in range(len(o_grad)):
        o_grad[i] += TWO * spikes[i] * scatter[i]


@inlined
def _rates_of_noise(rates: Floats, variance: Floats) -> None:
    """1/κ, zero where a neuron has no noise."""
    for i in range(len(rates)):
        noisy = variance[i] > VARIANCE_FLOOR
        rates[i] = ONE / np.sqrt(variance[i] if noisy else ONE) if noisy else ZERO


@inlined
def _density(out: Floats, gap: Floats, rates: Floats) -> None:
    """φ(z)/κ with z = (h* − θ)/κ"""
    for i in range(len(out)):
        z = gap[i] * rates[i]
        out[i] = _exp(-HALF * z * z) * (rates[i] * INV_SQRT_2PI)


@inlined
def _to_variance(slope: Floats, gap: Floats, rates: Floats) -> None:
    """∂o/∂κ² = −½ z/κ · ∂o/∂h*"""
    for i in range(len(slope)):
        slope[i] = -HALF * (gap[i] * rates[i]) * (slope[i] * rates[i])


@inlined
def _gather(out: Floats, incoming: Floats, decay: Floats, later: Floats, slope: Floats, o_grad: Floats) -> None:
    """∂L/∂h*[t] = incoming + β ∂L/∂h*[t+1] + s[t] ∂L/∂o[t]"""
    for i in range(len(out)):
        out[i] = incoming[i] + decay[i] * later[i] + slope[i] * o_grad[i]


@inlined
def _take_ratio(products: Doubles, squares: Doubles, gap: Floats, variance: Floats) -> None:
    """Π (1 + d²/v), whose logarithm is the sum of theirs, and Σ d²/v; a noiseless neuron adds nothing."""
    for i in range(len(gap)):
        noisy = variance[i] > VARIANCE_FLOOR
        ratio = gap[i] * gap[i] / (variance[i] if noisy else ONE)
        square = np.float64(ratio if noisy else ZERO)
        products[i] *= 1.0 + square
        squares[i] += square


@inlined
def _through_log(by_gap: Floats, by_variance: Floats, gap: Floats, rates: Floats, grad: Float) -> None:
    """Adds the derivatives of ½ ln(1 + z²): z/κ / (1 + z²) and −½ z/κ times that."""
    for i in range(len(gap)):
        z = gap[i] * rates[i]
        ratio = z * rates[i]
        slope = grad * (ratio / (ONE + z * z))
        by_gap[i] += slope
        by_variance[i] -= HALF * slope * ratio


@inlined
def _through_quadratic(by_gap: Floats, by_variance: Floats, gap: Floats, rates: Floats, grad: Float) -> None:
    """Adds the derivatives of z²: 2 z/κ and −½ z/κ times that."""
    for i in range(len(gap)):
        ratio = gap[i] * rates[i] * rates[i]
        slope = TWO * grad * ratio
        by_gap[i] += slope
        by_variance[i] -= HALF * slope * ratio


@inlined
def _exp(x: Float) -> Float:
    """exp(x) of x ≤ 0 to 1e-7 of its value, zero below e⁻⁶⁰. Unlike a library's it runs in lanes.

    x = k ln 2 + r with |r| ≤ ½ ln 2; exp(r) by a polynomial, 2^k by its bits.
    """
    near = x if x > EXP_ZERO else EXP_ZERO
    k = np.floor(near * LOG2_E + HALF)
    r = near - k * LN2_HIGH - k * LN2_LOW
    high = (((EXP[0] * r + EXP[1]) * r + EXP[2]) * r + EXP[3]) * r + EXP[4]
    value = (high * r + HALF) * (r * r) + r + ONE
    power = np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)
    return value * power if x > EXP_ZERO else ZERO


@inlined_sum
def _dot(x: Floats, y: Floats) -> Float:
    total = ZERO
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@inlined_sum
def _variance_gradient(v_grad: Floats, before: Floats) -> Float:
    """Σ_i ∂L/∂κ²_i (Σ_k o_k² − o_i²)"""
    total, gradient = _dot(before, before), ZERO
    for i in range(len(v_grad)):
        gradient += v_grad[i] * (total - before[i] * before[i])
    return gradient


@inlined
def _add(out: Floats, x: Floats) -> None:
    for i in range(len(out)):
        out[i] = out[i] + x[i]


@inlined
def _add_number(out: Floats, x: Floats, number: Float) -> None:
    for i in range(len(out)):
        out[i] = x[i] + number


@inlined
def _subtract(out: Floats, factor: Floats, x: Floats) -> None:
    for i in range(len(out)):
        out[i] = out[i] - factor[i] * x[i]


@inlined
def _fill(out: Floats, number: Float) -> None:
    for i in range(len(out)):
        out[i] = number


@inlined
def _copy(out: Floats, x: Floats) -> None:
    for i in range(len(out)):
        out[i] = x[i]
