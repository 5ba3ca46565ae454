"""Find the factor that makes probabilities of an imported network's outputs: the inverse of a temperature.

Another library's read-out gives rates between 0 and 1, or sums of them, and its softmax need not be what training used.
So the factor is fitted on labelled samples: it minimises the negative log-likelihood of softmax(factor · outputs).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.streams.probabilities import softmax

Doubles = NDArray[np.float64]
BITS = 8  # of the factor of spikes, so that sums over time stay exact
HALVINGS = 80
RANGE = 24  # factors are between 2^-24 and 2^24


def fitted_scale(outputs: Doubles, labels: NDArray[np.int64]) -> float | None:
    """Return the factor of ``outputs`` [N, classes] with the smallest negative log-likelihood of ``labels``.

    The labels count as wrong with probability 1/(N + 2), so that the factor is finite even if all decisions are right.

    Returns:
        The factor, or None if outputs do not grow with the probability of their class.
    """
    doubt = 1.0 / (len(labels) + 2)
    target = (1.0 - doubt) * outputs[np.arange(len(labels)), labels] + doubt * outputs.mean(-1)

    def slope(scale: float) -> float:
        """Return the derivative of the loss, which grows with the scale."""
        expected = (softmax(scale * outputs) * outputs).sum(-1)
        return float((expected - target).mean())

    low, high = -float(RANGE), float(RANGE)
    if slope(2.0**low) >= 0.0:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(2.0**middle) < 0.0 else (low, middle)
    return float(2.0**low)


def exact_scale(scale: float, spikes: bool) -> float:
    """Return the nearest factor that rounds nothing: of few bits for spikes, a power of two for a membrane."""
    if not spikes:
        return float(2.0 ** round(math.log2(scale)))
    mantissa, exponent = math.frexp(scale)
    return math.ldexp(round(math.ldexp(mantissa, BITS)), exponent - BITS)
