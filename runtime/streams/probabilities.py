"""Compute probabilities, their uncertainty and possible classes from the logits of a network or an ensemble."""

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


def mean_probabilities(member_logits: Floats, scale: float = 1.0) -> Doubles:
    """Return p = mean_m softmax(z_m) for logits [members, …, classes]; with a scale p^scale, normalised.

    A scale (1 / temperature) moves no decision: the largest probability stays the largest.
    """
    mean: Doubles = softmax(member_logits).mean(0)
    if scale == 1.0:
        return mean
    if len(member_logits) == 1:  # keeps what the softmax would round to zero
        return softmax(scale * member_logits[0].astype(np.float64))
    return softmax(scale * np.log(np.maximum(mean, 1e-300)))


def behind_the_best(member_logits: Floats) -> Doubles:
    """Return how far each class [members, …, classes] is behind the best one: sums over members, no exponential.

    Doubles are added in the order of the members, so every language gets the same bits.
    """
    total = member_logits[0].astype(np.float64)
    for logits in member_logits[1:]:
        total = total + logits
    distance: Doubles = total.max(-1, keepdims=True) - total
    return distance


def possible_classes(member_logits: Floats, margin: float) -> NDArray[np.bool_]:
    """Return which classes are possible, [members, …, classes] to […, classes]: not more than ``margin`` behind.

    The class that is decided for is always one of them.
    """
    possible = behind_the_best(member_logits) <= margin
    winner = joint_logits(member_logits).argmax(-1)
    np.put_along_axis(possible, np.asarray(winner)[..., None], True, -1)
    return possible


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
