"""λ for each layer, found while the network learns: dual ascent on the mean of r² in that layer.

The paper asks for E[z²] ≈ 0, its condition for gradients of low bias; a network without noise to spare cannot learn
either. So each layer has the constraint mean r² ≤ target, and λ is its Lagrange multiplier. A multiplier is positive
and spans decades, so it ascends in its logarithm, along the logarithm of how far the constraint is missed:

    ln λ ← ln λ + rate · clip(ln(mean r² / target), −1, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, log

START = 0.01
SMALLEST, LARGEST = 1e-6, 10.0  # of no effect beside the cross-entropy; far above it


def ascend(weights: Mapping[str, float], squares: Mapping[str, float], target: float, rate: float) -> dict[str, float]:
    """Return the multipliers after a step with these layer means of r²; a layer without noise keeps its own."""
    return {name: _next(weights.get(name, START), square / target, rate) for name, square in squares.items()}


def _next(weight: float, missed: float, rate: float) -> float:
    if missed <= 0.0:
        return weight
    step = rate * min(1.0, max(-1.0, log(missed)))
    return min(LARGEST, max(SMALLEST, weight * exp(step)))
