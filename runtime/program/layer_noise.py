"""Standard normal numbers for stochastic files; each depends only on (seed, sample, step, layer, neuron).

Philox-4x32-10 (Salmon et al., 2011) gives uniform bits with integer arithmetic. A piecewise polynomial in plain float64
products and sums (``coefficients``) converts them to normal numbers. So a number has the same bits in every engine, on
every machine, in any chunks and with any number of threads. Quantiles agree with N(0, 1) to 1e-6, up to the largest
value |ε| = 6.34.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.native import core
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]
Words = NDArray[np.uint64]
Noise = Callable[[int, int, int], Mapping[str, Floats]]  # window, first step, number of steps -> [steps, 1, …] by name

MULTIPLY = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10
LOW = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
WINDOWS = 2**32  # the generator's counter: the noise of a stream repeats after this many windows
OCTAVES, DEGREE = 32, 7
DIGITS = 34
ROOT_TWO_PI = Decimal("2.506628274631000502415765284811045253007")
PI = Decimal("3.141592653589793238462643383279502884197")


@cache
def coefficients() -> NDArray[np.float64]:
    """Return [octave, power]: the coefficients of −Φ⁻¹ at k = (v + 3) · 2^octave / 2, for v in [−1, 1).

    An odd integer k below 2³² represents the tail probability p = k / 2³³ in (0, ½). In each octave of k, −Φ⁻¹(p) is a
    polynomial of degree 7 through Chebyshev points. Points and coefficients are computed in decimal arithmetic, which
    is software and rounds the same everywhere; no logarithm or root of a maths library is used.
    """
    with localcontext() as context:
        context.prec = DIGITS
        nodes = [_cosine(PI * (2 * n + 1) / (2 * (DEGREE + 1))) for n in range(DEGREE + 1)]  # from high to low
        table = np.zeros((OCTAVES, DEGREE + 1))
        z = Decimal(0)
        for octave in reversed(range(OCTAVES)):
            values = []
            for node in nodes:
                z = _quantile((node + 3) * Decimal(2) ** (octave - 34), z)
                values.append(z)
            table[octave] = [float(c) for c in _interpolate(nodes, values)]
    table.flags.writeable = False
    return table


def _quantile(p: Decimal, z: Decimal) -> Decimal:
    """Return z with Φ(−z) = p, by Newton's method from a smaller z; the tail is convex, so every step stays below."""
    for _ in range(60):
        density = (-z * z / 2).exp() / ROOT_TWO_PI
        step = (Decimal("0.5") - _inner(z) * density - p) / density
        z += step
        if abs(step) < Decimal("1e-22"):
            return z
    raise AssertionError(f"no quantile for {p}")


def _inner(z: Decimal) -> Decimal:
    """Return (Φ(z) − ½) / φ(z) = Σ z^(2n+1) / (1 · 3 · 5 ⋯ (2n+1))."""
    term = total = z
    odd = 1
    while abs(term) > Decimal("1e-30"):
        odd += 2
        term = term * z * z / odd
        total += term
    return total


def _cosine(x: Decimal) -> Decimal:
    term = total = Decimal(1)
    n = 0
    while abs(term) > Decimal("1e-32"):
        n += 2
        term = -term * x * x / (n * (n - 1))
        total += term
    return total


def _interpolate(nodes: list[Decimal], values: list[Decimal]) -> list[Decimal]:
    """Return the polynomial through all points, as coefficients of 1, v, v², …, by divided differences."""
    divided = list(values)
    for order in range(1, len(nodes)):
        for n in range(len(nodes) - 1, order - 1, -1):
            divided[n] = (divided[n] - divided[n - 1]) / (nodes[n] - nodes[n - order])
    powers = [divided[-1]]
    for n in range(len(nodes) - 2, -1, -1):
        shifted = [Decimal(0), *powers]
        powers = [a - b * nodes[n] for a, b in zip(shifted, [*powers, Decimal(0)], strict=True)]
        powers[0] += divided[n]
    return powers


def layer_key(name: str) -> int:
    """Return a layer's number in the generator, which depends on its name only, so that other layers do not matter."""
    return zlib.crc32(name.encode())


def check_key(seed: int, samples: Sequence[int], last_step: int) -> None:
    """Refuse values that do not fit into the generator's counter."""
    if not 0 <= seed < 2**64:
        raise AxonnxError(f"seed is {seed}; expected 0 … 2⁶⁴ − 1")
    if any(not 0 <= sample < 2**32 for sample in samples) or not 0 <= last_step < 2**32:
        raise AxonnxError(
            f"samples are {list(samples)[:3]}…, the last step is {last_step}; expected 0 … 2³² − 1 for each"
        )


def draw_noise(program: Program, seed: int, samples: Sequence[int], first_step: int, steps: int) -> dict[str, Floats]:
    """Draw the noise [T, B, …] of every noisy layer, for the given samples and the steps from ``first_step`` on."""
    found = {}
    for name in program.noises:
        shape = program.buffers[name].shape
        flat = normals(seed, samples, first_step, steps, layer_key(name), int(np.prod(shape, dtype=np.int64)))
        found[name] = flat.reshape(steps, len(samples), *shape)
    return found


def stream_noise(program: Program, seed: int) -> Noise:
    """Return a function of (window, first step, steps) that draws the noise [steps, 1, …] of every noisy layer."""

    def draw(window: int, step: int, steps: int) -> Mapping[str, Floats]:
        return draw_noise(program, seed, [window % WINDOWS], step, steps)

    return draw if program.noises else lambda window, step, steps: {}


def normals(seed: int, samples: Sequence[int], first_step: int, steps: int, layer: int, count: int) -> Floats:
    """Draw standard normal numbers [steps, samples, count], with the native core if there is one."""
    check_key(seed, samples, first_step + steps)
    native = core()
    if native is None:
        return plain_normals(seed, samples, first_step, steps, layer, count)
    out, names = np.empty((steps, len(samples), count), np.float32), np.asarray(samples, np.uint64)
    word, place = ctypes.c_uint64, ctypes.c_void_p
    types = (place, *[ctypes.c_int64] * 3, word, place, word, ctypes.c_uint32, place)
    fill = native.function("normals", None, *types)
    fill(out.ctypes.data, *out.shape, seed, names.ctypes.data, first_step, layer, coefficients().ctypes.data)
    return out


def plain_normals(seed: int, samples: Sequence[int], first_step: int, steps: int, layer: int, count: int) -> Floats:
    """Draw the numbers with numpy; this is the definition."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    at_steps = np.arange(first_step, first_step + steps, dtype=np.uint64)[:, None, None]
    at_samples = np.asarray(samples, np.uint64)[None, :, None]
    words = philox((blocks, np.uint64(layer), at_steps, at_samples), seed)
    together = np.stack(np.broadcast_arrays(*words), -1).reshape(steps, len(samples), -1)
    return to_normal(together[..., :count])


def philox(counter: tuple[Words | np.uint64, ...], seed: int) -> tuple[Words, ...]:
    """Return four words of 32 random bits for each counter of four words."""
    a, b, c, d = (np.asarray(word, np.uint64) for word in counter)
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(ROUNDS):
        first, second = a * np.uint64(MULTIPLY[0]), c * np.uint64(MULTIPLY[1])
        a, b, c, d = (second >> SHIFT) ^ b ^ keys[0], second & LOW, (first >> SHIFT) ^ d ^ keys[1], first & LOW
        keys = [np.uint64((int(key) + weyl) & 0xFFFFFFFF) for key, weyl in zip(keys, WEYL, strict=True)]
    return a, b, c, d


def to_normal(words: Words) -> Floats:
    """Convert words to normal numbers: the top bit is the sign, the rest the tail probability (2m + 1) / 2³³."""
    odd = ((words & np.uint64(0x7FFFFFFF)) * np.uint64(2) + np.uint64(1)).astype(np.float64)
    fraction, octave = np.frexp(odd)
    v, table = fraction * 4.0 - 3.0, coefficients()[octave - 1]
    value = table[..., DEGREE]
    for power in range(DEGREE - 1, -1, -1):
        value = value * v + table[..., power]
    signed: Floats = np.where(words >> np.uint64(31) == 1, -value, value).astype(np.float32)
    return signed
