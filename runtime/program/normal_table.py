"""Coefficients that convert uniform integers to standard normal numbers, with the same bits on every machine.

An odd integer k below 2³² represents the tail probability p = k / 2³³ in (0, ½). In each octave of k, −Φ⁻¹(p) is a
polynomial of degree 7 through Chebyshev points. Points and coefficients are computed in decimal arithmetic, which is
software and rounds the same everywhere; no logarithm or root of a maths library is used.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np
from numpy.typing import NDArray

OCTAVES, DEGREE = 32, 7
DIGITS = 34
ROOT_TWO_PI = Decimal("2.506628274631000502415765284811045253007")
PI = Decimal("3.141592653589793238462643383279502884197")


@cache
def coefficients() -> NDArray[np.float64]:
    """Return [octave, power]: the coefficients of −Φ⁻¹ at k = (v + 3) · 2^octave / 2, for v in [−1, 1)."""
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
