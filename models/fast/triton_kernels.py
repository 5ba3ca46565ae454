"""Triton kernels of spiking neurons through time: one launch for a layer and a direction.

**State in registers.** A program has some neurons of one sample, or all neurons of some samples of a recurrent layer,
and goes through all time steps. Membranes, κ² and the last spikes never leave its registers.

**Bits.** A forward pass consists of products, sums and comparisons in the order of ``neurons.integrate``; compiled
without fused multiply-adds it gives the bits of the native core and of torch. The noise is the core's generator
(``native/training.h``): ε|ε| is a function of (seed, step, sample, neuron), the same bits on every device. Products
with recurrent weights are the exception, because tensor cores add in an order of their own.

**Layout.** Maps are ``[steps, batch, channels, pixels]`` without gaps; dense layers have one pixel. Sums over
programs are written down for each program and added afterwards, so that two runs have the same bits.

A pointer is ``None`` for what a layer does not have. Gradients use approximate functions, good to 1e-6.
"""

from __future__ import annotations

import triton
import triton.language as tl

from axonnx.models.fast.backend import interpreted

# Kinds of spread: no noise, activity times gain, one variance for each neuron.
NO_SPREAD, PRODUCT, MAP = 0, 1, 2
# The order of the estimators is the core's.
STRAIGHT, WEIGHTED, LOW_VARIANCE, ANALYTIC, UNIFORM, LOGISTIC, SURROGATE = range(7)

_INTERPRETED = tl.constexpr(interpreted())
_FLOOR = tl.constexpr(1e-20)  # normal.VARIANCE_FLOOR
_INV_SQRT_2PI = tl.constexpr(0.3989422804014327)
_SURROGATE = tl.constexpr(SURROGATE)
_STRAIGHT = tl.constexpr(STRAIGHT)
_WEIGHTED = tl.constexpr(WEIGHTED)
_LOW_VARIANCE = tl.constexpr(LOW_VARIANCE)
_ANALYTIC = tl.constexpr(ANALYTIC)
_UNIFORM = tl.constexpr(UNIFORM)
_NO_SPREAD = tl.constexpr(NO_SPREAD)
_PRODUCT = tl.constexpr(PRODUCT)


# ---------------------------------------------------------------- noise
@triton.jit
def _mixed(x: tl.tensor, more: tl.tensor) -> tl.tensor:
    """Take a turn of the generator that makes keys."""
    x = x + (more.to(tl.uint64) + 0x9E3779B97F4A7C15)
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB
    return x ^ (x >> 31)


@triton.jit
def _key(seed: tl.tensor, step: tl.tensor, sample: tl.tensor) -> tl.tensor:
    return _mixed(_mixed(seed.to(tl.uint64), step), sample)


@triton.jit
def _hashed(key: tl.tensor, number: tl.tensor) -> tl.tensor:
    x = number ^ key.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) + (key >> 32).to(tl.uint32)
    x = x * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _signed_square(key: tl.tensor, neuron: tl.tensor) -> tl.tensor:
    """ε|ε| of neurons: the squares of a pair of Normal numbers are −ln(u) (1 ± sin(πy)), and two bits are their signs.

    Neurons i and i + 16 of a block of 32 share a pair.
    """
    block, within = neuron // 32, neuron % 32
    number = (block * 16 + within % 16).to(tl.uint32)
    a, b = _hashed(key, number), _hashed(key, number ^ 0x80000000)
    u = (a >> 9).to(tl.int32).to(tl.float32) + 0.5
    y = b.to(tl.int32, bitcast=True).to(tl.float32) * 2.3283064365386963e-10
    square = y * y
    # u = m · 2^e with m from √½ to √2.
    bits = u.to(tl.uint32, bitcast=True)
    exponent = (bits - 0x3F3504F3) & 0xFF800000
    e = (exponent.to(tl.int32, bitcast=True) >> 23).to(tl.float32)
    r = (bits - exponent).to(tl.float32, bitcast=True) - 1.0
    p = r * 0.119310544 + -0.186807514
    p = p * r + 0.204917597
    p = p * r + -0.249082892
    p = p * r + 0.333146738
    p = p * r + -0.50001145
    p = p * r + 1.00000096
    size = (23.0 - e) * 0.69314718 - p * r
    sine = square * -0.559462455 + 2.54401052
    sine = sine * square + -5.16740673
    sine = (sine * square + 3.14159027) * y
    other = size * sine
    second = within >= 16
    value = size + tl.where(second, -other, other)
    sign = tl.where(second, a << 30, a << 31) & 0x80000000
    return (value.to(tl.uint32, bitcast=True) ^ sign).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["seed", "first_step", "steps", "batch"])
def draw_squares(
    out: tl.tensor,
    seed: tl.tensor,
    first_step: tl.tensor,
    scale: tl.tensor,
    steps: tl.tensor,
    batch: tl.tensor,
    channels: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """ε|ε| of a dense layer [steps, batch, channels], as a pass draws it: its bits can be held against the core's."""
    b = tl.program_id(0)
    for begin in range(0, channels, BLOCK):
        c = begin + tl.arange(0, BLOCK)
        for t in range(steps):
            square = _signed_square(_key(seed, first_step + t, b), c) * scale
            tl.store(out + (t * batch + b) * channels + c, square, mask=c < channels)


# ---------------------------------------------------------------- functions of gradients
@triton.jit
def _density(z: tl.tensor) -> tl.tensor:
    return tl.exp(-0.5 * z * z) * _INV_SQRT_2PI


@triton.jit
def _mills(x: tl.tensor) -> tl.tensor:
    """(1 − Φ(x))/φ(x) · (x + 1) of x ≥ 0, a polynomial in (x − 3)/(x + 3)."""
    s = (x - 3.0) / (x + 3.0)
    g = s * 0.000149693478 + 8.96748935e-05
    g = g * s + -0.00118815865
    g = g * s + -0.000915902385
    g = g * s + 0.00748653987
    g = g * s + 0.00291785002
    g = g * s + -0.0569617523
    g = g * s + 0.113207963
    g = g * s + -0.0411904498
    g = g * s + -0.241956655
    return g * s + 1.21836121


@triton.jit
def _cdf(x: tl.tensor) -> tl.tensor:
    """Φ(x), accurate in the lower tail."""
    size = tl.minimum(tl.abs(x), 1e9)
    tail = _density(size) * _mills(size) / (size + 1.0)
    return tl.where(x < 0.0, tail, 1.0 - tail)


@triton.jit
def _inverse_mills(x: tl.tensor) -> tl.tensor:
    """φ(x)/Φ(x), which tends to −x where both vanish."""
    size = tl.minimum(tl.abs(x), 1e9)
    g = _mills(size)
    phi = _density(size)
    upper = phi / (1.0 - phi * g / (size + 1.0))
    return tl.where(x < 0.0, (size + 1.0) / g, upper)


@triton.jit
def _logit_cdf(x: tl.tensor) -> tl.tensor:
    """ln(Φ(x)/(1 − Φ(x))), finite for every x."""
    size = tl.minimum(tl.abs(x), 1e9)
    g = _mills(size) / (size + 1.0)
    tail = _density(size) * g
    # ln of the tail without its underflow: ln φ + ln(tail/φ).
    below = tl.log(g) - 0.5 * size * size - 0.9189385332046727
    logit = tl.log(1.0 - tail) - below
    return tl.where(x < 0.0, -logit, logit)


@triton.jit
def _root(square: tl.tensor) -> tl.tensor:
    """ε of ε|ε|."""
    size = tl.sqrt(tl.abs(square))
    return tl.where(square < 0.0, -size, size)


@triton.jit
def _relaxed(z: tl.tensor, square: tl.tensor, temperature: tl.tensor, ESTIMATOR: tl.constexpr) -> tl.tensor:
    """Return the argument x/k of the relaxed step: F − 1 + u, or ln(F/(1−F)) + ln(u/(1−u))."""
    epsilon = _root(square)
    if ESTIMATOR == _UNIFORM:
        return (_cdf(z) - _cdf(-epsilon)) / temperature
    return (_logit_cdf(z) + _logit_cdf(epsilon)) / temperature


@triton.jit
def _rate(total: tl.tensor) -> tl.tensor:
    """1/κ, zero where there is no noise."""
    noisy = total > _FLOOR
    return tl.where(noisy, 1.0 / tl.sqrt(tl.where(noisy, total, 1.0)), 0.0)


@triton.jit
def _slope(
    gap: tl.tensor,
    z: tl.tensor,
    rate: tl.tensor,
    spikes: tl.tensor,
    square: tl.tensor,
    option: tl.tensor,
    ESTIMATOR: tl.constexpr,
) -> tl.tensor:
    """∂o/∂h* as the estimator has it: a factor times φ(z)/κ."""
    if ESTIMATOR == _SURROGATE:
        return _density(gap / option) / option
    if ESTIMATOR == _STRAIGHT:
        return _density(z) * rate
    fired = spikes > 0.5
    signed = tl.where(fired, z, -z)
    if ESTIMATOR == _WEIGHTED:
        return tl.where(fired, option, 1.0 - option) * _inverse_mills(signed) * rate
    if ESTIMATOR == _LOW_VARIANCE:
        likelier = tl.where(fired, z > 0.0, z <= 0.0)  # p = 1[F > ½]
        return tl.where(likelier, _inverse_mills(signed), 0.0) * rate
    if ESTIMATOR == _ANALYTIC:
        x = _cdf(signed) / (2.0 * option)
        squared = x * x
        series = 1.0 + squared * (-0.3333333333 + squared * 0.1333333333)
        e = tl.exp(-2.0 * x)
        large = (1.0 - e) / ((1.0 + e) * tl.maximum(x, 0.01))
        return _density(z) * tl.where(x < 0.03, series, large) / (4.0 * option) * rate
    if ESTIMATOR == _UNIFORM:
        chain = _density(z)
    else:
        chain = _inverse_mills(-tl.abs(z)) / _cdf(tl.abs(z))
    e = tl.exp(-tl.abs(_relaxed(z, square, option, ESTIMATOR)))
    return e / ((1.0 + e) * (1.0 + e) * option) * chain * rate


@triton.jit
def _output(
    gap: tl.tensor,
    total: tl.tensor,
    square: tl.tensor,
    option: tl.tensor,
    RELAXED: tl.constexpr,
    ESTIMATOR: tl.constexpr,
) -> tl.tensor:
    """o = H(κ² ε|ε| ≥ −d|d|), or the relaxed step where there is noise."""
    binary = tl.where(total * square >= -(gap * tl.abs(gap)), 1.0, 0.0)
    if RELAXED:
        x = _relaxed(gap * _rate(total), square, option, ESTIMATOR)
        e = tl.exp(-tl.abs(x))
        soft = tl.where(x >= 0.0, 1.0, e) / (1.0 + e)
        return tl.where(total > _FLOOR, soft, binary)
    return binary


# ---------------------------------------------------------------- neurons that do not hear themselves
@triton.jit(do_not_specialize=["seed", "first_step", "steps", "batch"])
def forward(
    mean: tl.tensor,
    activity: tl.tensor,
    gain: tl.tensor,
    noise: tl.tensor,
    membrane0: tl.tensor,
    variance0: tl.tensor,
    spikes0: tl.tensor,
    decay: tl.tensor,
    threshold: tl.tensor,
    base: tl.tensor,
    spikes: tl.tensor,
    kept: tl.tensor,
    gap: tl.tensor,
    total: tl.tensor,
    membrane: tl.tensor,
    variance: tl.tensor,
    sums: tl.tensor,
    seed: tl.tensor,
    first_step: tl.tensor,
    scale: tl.tensor,
    option: tl.tensor,
    steps: tl.tensor,
    batch: tl.tensor,
    channels: tl.tensor,
    pixels: tl.tensor,
    padded: tl.tensor,
    terms: tl.tensor,
    OWN_DECAY: tl.constexpr,
    OWN_THRESHOLD: tl.constexpr,
    SPREAD: tl.constexpr,
    DRAWN: tl.constexpr,
    ESTIMATOR: tl.constexpr,
    RELAXED: tl.constexpr,
    TO_ZERO: tl.constexpr,
    BC: tl.constexpr,
    BP: tl.constexpr,
) -> None:
    """All steps of ``BC`` channels times ``BP`` pixels of one sample.

    ``kept`` are spikes as bytes, or as they are if they are relaxed; ``sums`` ½ Σ ln(1 + z²) and Σ z².
    """
    b = tl.program_id(0)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    x = tl.program_id(1) * BP + tl.arange(0, BP)
    there = (c < channels)[:, None] & (x < pixels)[None, :]
    neurons = channels * pixels
    own = c[:, None] * pixels + x[None, :]
    d = tl.load(decay + c * OWN_DECAY, mask=c < channels, other=0.0)[:, None]
    th = tl.load(threshold + c * OWN_THRESHOLD, mask=c < channels, other=0.0)[:, None]
    h = tl.zeros([BC, BP], tl.float32)
    k = tl.zeros([BC, BP], tl.float32)
    o = tl.zeros([BC, BP], tl.float32)
    logs = tl.zeros([BC, BP], tl.float32)
    squares = tl.zeros([BC, BP], tl.float32)
    first = b.to(tl.int64) * neurons + own
    if membrane0 is not None:
        h = tl.load(membrane0 + first, mask=there, other=0.0)
    if variance0 is not None:
        k = tl.load(variance0 + first, mask=there, other=0.0)
    if spikes0 is not None:
        o = tl.load(spikes0 + first, mask=there, other=0.0)
    based = 0.0
    if base is not None:
        based = tl.load(base)
    for t in range(steps):
        row = (t * batch + b).to(tl.int64)
        at = row * neurons + own
        arriving = tl.load(mean + at, mask=there, other=0.0)
        if TO_ZERO:
            h = d * (h * (1.0 - o)) + arriving
        else:
            h = d * h + arriving - th * o
        g = h - th
        all_noise = tl.zeros([BC, BP], tl.float32)
        if SPREAD != _NO_SPREAD:
            if SPREAD == _PRODUCT:
                spread = tl.zeros([BC, BP], tl.float32)
                for n in range(terms):
                    active = tl.load(activity + (row * terms + n) * pixels + x, mask=x < pixels, other=0.0)
                    gained = tl.load(gain + n * channels + c, mask=c < channels, other=0.0)
                    spread += active[None, :] * gained[:, None]
            else:
                spread = tl.load(activity + at, mask=there, other=0.0)
            if TO_ZERO:
                k = k * (1.0 - o)
            k = d * d * k + spread
            all_noise = k + based
            if total is not None:
                tl.store(total + at, all_noise, mask=there)
            if sums is not None:
                noisy = (all_noise > _FLOOR) & there
                ratio = tl.where(noisy, g * g / tl.where(noisy, all_noise, 1.0), 0.0)
                squares += ratio
                logs += tl.log(1.0 + ratio)
        if DRAWN:
            square = _signed_square(_key(seed, first_step + t, b), x[None, :] * padded + c[:, None]) * scale
            o = _output(g, all_noise, square, option, RELAXED, ESTIMATOR)
        elif noise is not None:
            epsilon = tl.load(noise + at, mask=there, other=0.0)
            o = _output(g, all_noise, epsilon * tl.abs(epsilon), option, RELAXED, ESTIMATOR)
        else:
            o = tl.where(g >= 0.0, 1.0, 0.0)
        tl.store(spikes + at, o, mask=there)
        if kept is not None:
            tl.store(kept + at, o.to(kept.dtype.element_ty), mask=there)
        if gap is not None:
            tl.store(gap + at, g.to(gap.dtype.element_ty), mask=there)
    tl.store(membrane + first, h, mask=there)
    if SPREAD != _NO_SPREAD:
        tl.store(variance + first, k, mask=there)
        if sums is not None:
            program = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * batch + b
            tl.store(sums + 2 * program, 0.5 * tl.sum(logs))
            tl.store(sums + 2 * program + 1, tl.sum(squares))


@triton.jit(do_not_specialize=["seed", "first_step", "steps", "batch"])
def backward(
    activity: tl.tensor,
    gain: tl.tensor,
    noise: tl.tensor,
    membrane0: tl.tensor,
    variance0: tl.tensor,
    spikes0: tl.tensor,
    decay: tl.tensor,
    threshold: tl.tensor,
    base: tl.tensor,
    kept: tl.tensor,
    gap: tl.tensor,
    total: tl.tensor,
    by_spikes: tl.tensor,
    by_gap: tl.tensor,
    by_membrane: tl.tensor,
    by_variance: tl.tensor,
    by_sums: tl.tensor,
    h_grads: tl.tensor,
    v_grads: tl.tensor,
    by_activity: tl.tensor,
    by_gain: tl.tensor,
    by_decay: tl.tensor,
    by_threshold: tl.tensor,
    by_base: tl.tensor,
    seed: tl.tensor,
    first_step: tl.tensor,
    scale: tl.tensor,
    option: tl.tensor,
    steps: tl.tensor,
    batch: tl.tensor,
    channels: tl.tensor,
    pixels: tl.tensor,
    padded: tl.tensor,
    terms: tl.tensor,
    OWN_DECAY: tl.constexpr,
    OWN_THRESHOLD: tl.constexpr,
    SPREAD: tl.constexpr,
    DRAWN: tl.constexpr,
    ESTIMATOR: tl.constexpr,
    READS_NOISE: tl.constexpr,
    TO_ZERO: tl.constexpr,
    TERMS: tl.constexpr,
    BC: tl.constexpr,
    BP: tl.constexpr,
) -> None:
    """All steps of ``forward``, from the last to the first.

    ``by_gain``, ``by_decay``, ``by_threshold`` and ``by_base`` have a row for each program, and ``by_activity`` one
    for each group of channels.
    """
    b = tl.program_id(0)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    x = tl.program_id(1) * BP + tl.arange(0, BP)
    there = (c < channels)[:, None] & (x < pixels)[None, :]
    neurons = channels * pixels
    own = c[:, None] * pixels + x[None, :]
    program = tl.program_id(1) * batch + b
    d = tl.load(decay + c * OWN_DECAY, mask=c < channels, other=0.0)[:, None]
    th = tl.load(threshold + c * OWN_THRESHOLD, mask=c < channels, other=0.0)[:, None]
    first = b.to(tl.int64) * neurons + own
    h = tl.zeros([BC, BP], tl.float32)
    v = tl.zeros([BC, BP], tl.float32)
    decays = tl.zeros([BC, BP], tl.float32)
    thresholds = tl.zeros([BC, BP], tl.float32)
    bases = tl.zeros([BC, BP], tl.float32)
    gains = tl.zeros([TERMS, BC], tl.float32)
    number = tl.arange(0, TERMS)
    based, by_log, by_quadratic = 0.0, 0.0, 0.0
    if base is not None:
        based = tl.load(base)
    if by_sums is not None:
        by_log, by_quadratic = tl.load(by_sums), tl.load(by_sums + 1)
    for s in range(steps):
        t = steps - 1 - s
        row = (t * batch + b).to(tl.int64)
        at = row * neurons + own
        earlier = at - batch.to(tl.int64) * neurons
        o = tl.load(kept + at, mask=there, other=0.0).to(tl.float32)
        g = tl.load(gap + at, mask=there, other=0.0).to(tl.float32)
        og = tl.zeros([BC, BP], tl.float32)
        if by_spikes is not None:
            og = tl.load(by_spikes + at, mask=there, other=0.0)
        rate = tl.zeros([BC, BP], tl.float32)
        k = tl.zeros([BC, BP], tl.float32)
        if SPREAD != _NO_SPREAD:
            k = tl.load(total + at, mask=there, other=0.0)
            rate = _rate(k)
        if s == 0:
            if by_membrane is not None:
                h = tl.load(by_membrane + first, mask=there, other=0.0)
            if by_variance is not None:
                v = tl.load(by_variance + first, mask=there, other=0.0)
        else:
            if TO_ZERO:
                og -= d * (g + th) * h
                if SPREAD != _NO_SPREAD:
                    og -= d * d * (k - based) * v
                h = d * h * (1.0 - o)
                v = d * d * v * (1.0 - o)
            else:
                og -= th * h
                h = d * h
                v = d * d * v
        z = g * rate
        square = tl.zeros([BC, BP], tl.float32)
        if READS_NOISE:
            if DRAWN:
                square = _signed_square(_key(seed, first_step + t, b), x[None, :] * padded + c[:, None]) * scale
            elif noise is not None:
                epsilon = tl.load(noise + at, mask=there, other=0.0)
                square = epsilon * tl.abs(epsilon)
        moved = _slope(g, z, rate, o, square, option, ESTIMATOR) * og
        decided = moved
        if by_gap is not None:
            decided += tl.load(by_gap + at, mask=there, other=0.0).to(tl.float32)
        if SPREAD != _NO_SPREAD:
            ratio = z * rate
            pull = (2.0 * by_quadratic + by_log / (1.0 + z * z)) * ratio
            decided += pull
            if ESTIMATOR == _SURROGATE:
                to_variance = -0.5 * pull * ratio
            else:
                to_variance = -0.5 * (moved + pull) * ratio
            v += to_variance
            bases += tl.where(there, to_variance, 0.0)
            if v_grads is not None:
                tl.store(v_grads + at, v, mask=there)
            if SPREAD == _PRODUCT:
                if (by_activity is not None) or (by_gain is not None):
                    inside = tl.where(there, v, 0.0)
                    for n in range(terms):
                        place = (row * terms + n) * pixels + x
                        gained = tl.load(gain + n * channels + c, mask=c < channels, other=0.0)
                        if by_activity is not None:
                            group = tl.program_id(2).to(tl.int64) * steps * batch * terms * pixels
                            tl.store(by_activity + group + place, tl.sum(inside * gained[:, None], 0), mask=x < pixels)
                        if by_gain is not None:
                            active = tl.load(activity + place, mask=x < pixels, other=0.0)
                            heard = tl.sum(inside * active[None, :], 1)
                            gains += tl.where((number == n)[:, None], heard[None, :], 0.0)
        h += decided
        tl.store(h_grads + at, h, mask=there)
        last = tl.zeros([BC, BP], tl.float32)
        if (by_threshold is not None) or (by_decay is not None):
            if t > 0:
                last = tl.load(kept + earlier, mask=there, other=0.0).to(tl.float32)
            elif spikes0 is not None:
                last = tl.load(spikes0 + first, mask=there, other=0.0)
        if by_threshold is not None:
            through = -decided
            if not TO_ZERO:
                through -= last * h
            thresholds += tl.where(there, through, 0.0)
        if by_decay is not None:
            before = tl.zeros([BC, BP], tl.float32)
            remembered = tl.zeros([BC, BP], tl.float32)
            if t > 0:
                before = tl.load(gap + earlier, mask=there, other=0.0).to(tl.float32) + th
                if SPREAD != _NO_SPREAD:
                    remembered = tl.load(total + earlier, mask=there, other=0.0) - based
            else:
                if membrane0 is not None:
                    before = tl.load(membrane0 + first, mask=there, other=0.0)
                if variance0 is not None:
                    remembered = tl.load(variance0 + first, mask=there, other=0.0)
            more = h * before + 2.0 * d * v * remembered
            if TO_ZERO:
                more = more * (1.0 - last)
            decays += tl.where(there, more, 0.0)
    if by_decay is not None:
        tl.store(by_decay + program * channels + c, tl.sum(decays, 1), mask=c < channels)
    if by_threshold is not None:
        tl.store(by_threshold + program * channels + c, tl.sum(thresholds, 1), mask=c < channels)
    if by_base is not None:
        tl.store(by_base + program * tl.num_programs(2) + tl.program_id(2), tl.sum(bases))
    if by_gain is not None:
        rows = (program * terms + number)[:, None] * channels + c[None, :]
        tl.store(by_gain + rows, gains, mask=(number < terms)[:, None] & (c < channels)[None, :])


# ---------------------------------------------------------------- recurrent layers
@triton.jit
def _heard(
    kept: tl.tensor,
    parts: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    here: tl.tensor,
    N: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    EXACT: tl.constexpr,
    SQUARED: tl.constexpr,
) -> tl.tensor:
    """Σ_k o_k w_k, or Σ_k o_k² w_k, of rows of spikes ``kept`` and weights [parts][from][to].

    Binary spikes are multiplied with three bfloat16 parts of each weight: every product is exact.
    """
    heard = tl.zeros([BB, BN], tl.float32)
    for begin in range(0, BN, BK):
        froms = begin + tl.arange(0, BK)
        some = tl.load(kept + rows[:, None] * N + froms[None, :], mask=here & (froms < N)[None, :], other=0.0)
        weights = parts + froms[:, None] * BN + cols[None, :]
        if EXACT:
            for part in tl.static_range(3):
                third = tl.load(weights + part * BN * BN)
                if _INTERPRETED:  # whose products do not know bfloat16
                    heard = tl.dot(some.to(tl.float32), third.to(tl.float32), heard)
                else:
                    heard = tl.dot(some.to(tl.bfloat16), third, heard)
        else:
            if SQUARED:
                some = some * some
            heard = tl.dot(some, tl.load(weights), heard, input_precision="ieee")
    return heard


@triton.jit
def _sent(
    grads: tl.tensor,
    weights: tl.tensor,
    rows: tl.tensor,
    cols: tl.tensor,
    here: tl.tensor,
    N: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
) -> tl.tensor:
    """Σ_i ∂L/∂x_i w_ik of rows of gradients and weights [to][from]."""
    sent = tl.zeros([BB, BN], tl.float32)
    for begin in range(0, BN, BK):
        to = begin + tl.arange(0, BK)
        some = tl.load(grads + rows[:, None] * N + to[None, :], mask=here & (to < N)[None, :], other=0.0)
        some_weights = tl.load(weights + to[:, None] * BN + cols[None, :])
        sent = tl.dot(some, some_weights, sent, input_precision="ieee")
    return sent


@triton.jit(do_not_specialize=["seed", "first_step", "steps", "batch"])
def recurrent_forward(
    mean: tl.tensor,
    activity: tl.tensor,
    gain: tl.tensor,
    noise: tl.tensor,
    membrane0: tl.tensor,
    variance0: tl.tensor,
    decay: tl.tensor,
    threshold: tl.tensor,
    base: tl.tensor,
    weights: tl.tensor,
    own: tl.tensor,
    each: tl.tensor,
    spikes: tl.tensor,
    kept: tl.tensor,
    gap: tl.tensor,
    total: tl.tensor,
    membrane: tl.tensor,
    variance: tl.tensor,
    sums: tl.tensor,
    seed: tl.tensor,
    first_step: tl.tensor,
    scale: tl.tensor,
    option: tl.tensor,
    steps: tl.tensor,
    batch: tl.tensor,
    OWN_DECAY: tl.constexpr,
    OWN_THRESHOLD: tl.constexpr,
    OWN_VARIANCE: tl.constexpr,
    SPREAD: tl.constexpr,
    DRAWN: tl.constexpr,
    ESTIMATOR: tl.constexpr,
    RELAXED: tl.constexpr,
    TO_ZERO: tl.constexpr,
    N: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
) -> None:
    """All steps of ``BB`` samples of a layer of N neurons that hears itself one step later.

    ``kept`` [steps + 1, batch, N] begins with the spikes before the first step. ``weights`` and ``each`` are means and
    variances [from, to], in three bfloat16 parts if spikes are binary; ``own`` variances that a neuron's weights share.
    """
    rows = tl.program_id(0) * BB + tl.arange(0, BB)
    cols = tl.arange(0, BN)
    here = (rows < batch)[:, None]
    there = here & (cols < N)[None, :]
    place = rows[:, None] * N + cols[None, :]
    d = tl.load(decay + cols * OWN_DECAY, mask=cols < N, other=0.0)[None, :]
    th = tl.load(threshold + cols * OWN_THRESHOLD, mask=cols < N, other=0.0)[None, :]
    o = tl.load(kept + place, mask=there, other=0.0).to(tl.float32)
    h = tl.zeros([BB, BN], tl.float32)
    k = tl.zeros([BB, BN], tl.float32)
    logs = tl.zeros([BN], tl.float32)
    squares = tl.zeros([BN], tl.float32)
    based = 0.0
    if base is not None:
        based = tl.load(base)
    if membrane0 is not None:
        h = tl.load(membrane0 + place, mask=there, other=0.0)
    if variance0 is not None:
        k = tl.load(variance0 + place, mask=there, other=0.0)
    for t in range(steps):
        step = t * batch
        at = step.to(tl.int64) * N
        after = at + batch * N
        arriving = _heard(kept + at, weights, rows, cols, here, N, BB, BN, BK, not RELAXED, False)
        arriving = arriving + tl.load(mean + at + place, mask=there, other=0.0)
        if TO_ZERO:
            h = d * (h * (1.0 - o)) + arriving
        else:
            h = d * h + arriving - th * o
        g = h - th
        all_noise = tl.zeros([BB, BN], tl.float32)
        if SPREAD != _NO_SPREAD:
            if SPREAD == _PRODUCT:
                active = tl.load(activity + step + rows, mask=rows < batch, other=0.0)
                spread = active[:, None] * tl.load(gain + cols, mask=cols < N, other=0.0)[None, :]
            else:
                spread = tl.load(activity + at + place, mask=there, other=0.0)
            if own is not None:
                shared = tl.load(own + cols * OWN_VARIANCE, mask=cols < N, other=0.0)[None, :]
                spread = shared * (tl.sum(o * o, 1)[:, None] - o * o) + spread
            if each is not None:
                spread = _heard(kept + at, each, rows, cols, here, N, BB, BN, BK, not RELAXED, True) + spread
            if TO_ZERO:
                k = k * (1.0 - o)
            k = d * d * k + spread
            all_noise = k + based
            if total is not None:
                tl.store(total + at + place, all_noise, mask=there)
            if sums is not None:
                noisy = (all_noise > _FLOOR) & there
                ratio = tl.where(noisy, g * g / tl.where(noisy, all_noise, 1.0), 0.0)
                squares += tl.sum(ratio, 0)
                logs += tl.sum(tl.log(1.0 + ratio), 0)
        if DRAWN:
            square = _signed_square(_key(seed, first_step + t, rows)[:, None], cols[None, :]) * scale
            o = _output(g, all_noise, square, option, RELAXED, ESTIMATOR)
        elif noise is not None:
            epsilon = tl.load(noise + at + place, mask=there, other=0.0)
            o = _output(g, all_noise, epsilon * tl.abs(epsilon), option, RELAXED, ESTIMATOR)
        else:
            o = tl.where(g >= 0.0, 1.0, 0.0)
        o = tl.where(there, o, 0.0)
        tl.store(spikes + at + place, o, mask=there)
        tl.store(kept + after + place, o.to(kept.dtype.element_ty), mask=there)
        if gap is not None:
            tl.store(gap + at + place, g.to(gap.dtype.element_ty), mask=there)
        tl.debug_barrier()  # the next step reads these spikes in pieces, whichever thread wrote them
    tl.store(membrane + place, h, mask=there)
    if SPREAD != _NO_SPREAD:
        tl.store(variance + place, k, mask=there)
        if sums is not None:
            tl.store(sums + 2 * tl.program_id(0), 0.5 * tl.sum(logs))
            tl.store(sums + 2 * tl.program_id(0) + 1, tl.sum(squares))


@triton.jit(do_not_specialize=["seed", "first_step", "steps", "batch"])
def recurrent_backward(
    activity: tl.tensor,
    gain: tl.tensor,
    noise: tl.tensor,
    membrane0: tl.tensor,
    variance0: tl.tensor,
    decay: tl.tensor,
    threshold: tl.tensor,
    base: tl.tensor,
    weights: tl.tensor,
    own: tl.tensor,
    each: tl.tensor,
    kept: tl.tensor,
    gap: tl.tensor,
    total: tl.tensor,
    by_spikes: tl.tensor,
    by_gap: tl.tensor,
    by_membrane: tl.tensor,
    by_variance: tl.tensor,
    by_sums: tl.tensor,
    h_grads: tl.tensor,
    v_grads: tl.tensor,
    by_activity: tl.tensor,
    by_gain: tl.tensor,
    by_decay: tl.tensor,
    by_threshold: tl.tensor,
    by_base: tl.tensor,
    by_own: tl.tensor,
    seed: tl.tensor,
    first_step: tl.tensor,
    scale: tl.tensor,
    option: tl.tensor,
    steps: tl.tensor,
    batch: tl.tensor,
    OWN_DECAY: tl.constexpr,
    OWN_THRESHOLD: tl.constexpr,
    OWN_VARIANCE: tl.constexpr,
    SPREAD: tl.constexpr,
    DRAWN: tl.constexpr,
    ESTIMATOR: tl.constexpr,
    READS_NOISE: tl.constexpr,
    TO_ZERO: tl.constexpr,
    N: tl.constexpr,
    BB: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
) -> None:
    """All steps of ``recurrent_forward``, from the last to the first; ``weights`` and ``each`` are [to, from]."""
    rows = tl.program_id(0) * BB + tl.arange(0, BB)
    cols = tl.arange(0, BN)
    here = (rows < batch)[:, None]
    there = here & (cols < N)[None, :]
    place = rows[:, None] * N + cols[None, :]
    d = tl.load(decay + cols * OWN_DECAY, mask=cols < N, other=0.0)[None, :]
    th = tl.load(threshold + cols * OWN_THRESHOLD, mask=cols < N, other=0.0)[None, :]
    h = tl.zeros([BB, BN], tl.float32)
    v = tl.zeros([BB, BN], tl.float32)
    decays = tl.zeros([BN], tl.float32)
    thresholds = tl.zeros([BN], tl.float32)
    bases = tl.zeros([BN], tl.float32)
    gains = tl.zeros([BN], tl.float32)
    owns = tl.zeros([BN], tl.float32)
    based, by_log, by_quadratic = 0.0, 0.0, 0.0
    if base is not None:
        based = tl.load(base)
    if by_sums is not None:
        by_log, by_quadratic = tl.load(by_sums), tl.load(by_sums + 1)
    for s in range(steps):
        t = steps - 1 - s
        step = t * batch
        at = step.to(tl.int64) * N
        after = at + batch * N
        og = tl.zeros([BB, BN], tl.float32)
        through_variances = tl.zeros([BB, BN], tl.float32)
        if s > 0:  # products first: they need the registers
            og = _sent(h_grads + after, weights, rows, cols, here, N, BB, BN, BK)
            if each is not None:
                through_variances = _sent(v_grads + after, each, rows, cols, here, N, BB, BN, BK)
        o = tl.load(kept + after + place, mask=there, other=0.0).to(tl.float32)
        g = tl.load(gap + at + place, mask=there, other=0.0).to(tl.float32)
        if by_spikes is not None:
            og += tl.load(by_spikes + at + place, mask=there, other=0.0)
        rate = tl.zeros([BB, BN], tl.float32)
        k = tl.zeros([BB, BN], tl.float32)
        if SPREAD != _NO_SPREAD:
            k = tl.load(total + at + place, mask=there, other=0.0)
            rate = _rate(k)
        if s == 0:
            if by_membrane is not None:
                h = tl.load(by_membrane + place, mask=there, other=0.0)
            if by_variance is not None:
                v = tl.load(by_variance + place, mask=there, other=0.0)
        else:
            if own is not None:
                weighted = tl.load(own + cols * OWN_VARIANCE, mask=cols < N, other=0.0)[None, :] * v
                og += 2.0 * o * (tl.sum(weighted, 1)[:, None] - weighted)
            if each is not None:
                og += 2.0 * o * through_variances
            if TO_ZERO:
                og -= d * (g + th) * h
                if SPREAD != _NO_SPREAD:
                    og -= d * d * (k - based) * v
                h = d * h * (1.0 - o)
                v = d * d * v * (1.0 - o)
            else:
                og -= th * h
                h = d * h
                v = d * d * v
        z = g * rate
        square = tl.zeros([BB, BN], tl.float32)
        if READS_NOISE:
            if DRAWN:
                square = _signed_square(_key(seed, first_step + t, rows)[:, None], cols[None, :]) * scale
            elif noise is not None:
                epsilon = tl.load(noise + at + place, mask=there, other=0.0)
                square = epsilon * tl.abs(epsilon)
        moved = _slope(g, z, rate, o, square, option, ESTIMATOR) * og
        decided = moved
        if by_gap is not None:
            decided += tl.load(by_gap + at + place, mask=there, other=0.0).to(tl.float32)
        last = tl.load(kept + at + place, mask=there, other=0.0).to(tl.float32)
        if SPREAD != _NO_SPREAD:
            ratio = z * rate
            pull = (2.0 * by_quadratic + by_log / (1.0 + z * z)) * ratio
            decided += pull
            if ESTIMATOR == _SURROGATE:
                to_variance = -0.5 * pull * ratio
            else:
                to_variance = -0.5 * (moved + pull) * ratio
            v = tl.where(there, v + to_variance, 0.0)
            bases += tl.sum(tl.where(there, to_variance, 0.0), 0)
            if v_grads is not None:
                tl.store(v_grads + at + place, v, mask=there)
            if by_own is not None:
                owns += tl.sum(v * (tl.sum(last * last, 1)[:, None] - last * last), 0)
            if by_activity is not None:
                gained = tl.load(gain + cols, mask=cols < N, other=0.0)[None, :]
                tl.store(by_activity + step + rows, tl.sum(v * gained, 1), mask=rows < batch)
            if by_gain is not None:
                gains += tl.sum(v * tl.load(activity + step + rows, mask=rows < batch, other=0.0)[:, None], 0)
        h = tl.where(there, h + decided, 0.0)
        tl.store(h_grads + at + place, h, mask=there)
        if by_threshold is not None:
            through = -decided
            if not TO_ZERO:
                through -= last * h
            thresholds += tl.sum(tl.where(there, through, 0.0), 0)
        if by_decay is not None:
            before = tl.zeros([BB, BN], tl.float32)
            remembered = tl.zeros([BB, BN], tl.float32)
            earlier = at - batch * N
            if t > 0:
                before = tl.load(gap + earlier + place, mask=there, other=0.0).to(tl.float32) + th
                if SPREAD != _NO_SPREAD:
                    remembered = tl.load(total + earlier + place, mask=there, other=0.0) - based
            else:
                if membrane0 is not None:
                    before = tl.load(membrane0 + place, mask=there, other=0.0)
                if variance0 is not None:
                    remembered = tl.load(variance0 + place, mask=there, other=0.0)
            more = h * before + 2.0 * d * v * remembered
            if TO_ZERO:
                more = more * (1.0 - last)
            decays += tl.sum(tl.where(there, more, 0.0), 0)
        tl.debug_barrier()  # the step before reads these gradients in pieces
    program = tl.program_id(0) * N + cols
    if by_decay is not None:
        tl.store(by_decay + program, decays, mask=cols < N)
    if by_threshold is not None:
        tl.store(by_threshold + program, thresholds, mask=cols < N)
    if by_own is not None:
        tl.store(by_own + program, owns, mask=cols < N)
    if by_gain is not None:
        tl.store(by_gain + program, gains, mask=cols < N)
    if by_base is not None:
        tl.store(by_base + tl.program_id(0), tl.sum(bases))


# ---------------------------------------------------------------- read-out
@triton.jit(do_not_specialize=["steps"])
def leaky_sum(
    current: tl.tensor,
    membrane: tl.tensor,
    total: tl.tensor,
    decay: tl.tensor,
    steps: tl.tensor,
    count: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """h[t] = β·h[t−1] + I[t] and s[t] = s[t−1] + h[t] of a read-out's ``count`` membranes, in place."""
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    there = e < count
    d = tl.load(decay)
    h = tl.load(membrane + e, mask=there, other=0.0)
    s = tl.load(total + e, mask=there, other=0.0)
    for t in range(steps):
        h = d * h + tl.load(current + t * count + e, mask=there, other=0.0)
        s = s + h
    tl.store(membrane + e, h, mask=there)
    tl.store(total + e, s, mask=there)
