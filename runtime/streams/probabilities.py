"""Compute probabilities and their uncertainty from the logits of a network or an ensemble; decide on early exit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


def softmax(logits: Floats | Doubles) -> Doubles:
    """Return e^z / Σ e^z along the last axis, in double precision."""
    shifted = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
    normalised: Doubles = shifted / shifted.sum(-1, keepdims=True)
    return normalised


def mean_probabilities(member_logits: Floats) -> Doubles:
    """Return p = mean_m softmax(z_m) for logits [members, …, classes]."""
    mean: Doubles = softmax(member_logits).mean(0)
    return mean


def joint_logits(member_logits: Floats) -> Floats:
    """Return z with softmax(z) = p: the network's own logits, or log p for an ensemble."""
    if len(member_logits) == 1:
        only: Floats = member_logits[0]
        return only
    return np.log(np.maximum(mean_probabilities(member_logits), 1e-30)).astype(np.float32)


def entropy(probabilities: Doubles) -> Doubles:
    """Return H[p] = −Σ p log p along the last axis, in nats."""
    terms = probabilities * np.log(np.maximum(probabilities, 1e-300))
    return np.asarray(-terms.sum(-1) + 0.0)


def mutual_information(probabilities: Doubles) -> Doubles:
    """Return I = H[mean_m p_m] − mean_m H[p_m], the members' disagreement, for probabilities [members, …, classes]."""
    return np.asarray(entropy(probabilities.mean(0)) - entropy(probabilities).mean(0))


def is_sure(probabilities: Doubles, stop_at: float) -> NDArray[np.bool_]:
    """Return whether a window may end: max p ≥ stop_at."""
    return np.asarray(probabilities.max(-1) >= stop_at)


def exit_steps(probabilities: Doubles, stop_at: float) -> NDArray[np.intp]:
    """Return the first step at which probabilities [T, N, classes] are sure, or the last step if they never are."""
    sure = is_sure(probabilities, stop_at)
    sure[-1] = True
    return np.asarray(sure.argmax(0))
