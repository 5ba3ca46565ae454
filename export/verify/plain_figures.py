"""Figures of merit and the results of an ensemble by their formulas, one decision after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ORDER_OF_SUMS = 1e-9  # by which doubles differ that were added in another order
CONFIDENCES = 15  # bins of the calibration error
QUANTILE = 1.959964  # of the Normal distribution, for 95 %
SMALLEST = 2.2250738585072014e-308  # a probability of zero has no logarithm


def wrong_figures(stated: Mapping[str, Any], rows: Sequence[Sequence[float]], labels: Sequence[int]) -> Iterator[str]:
    """Every figure that is not what these class probabilities give."""
    for name, value in recomputed(rows, labels).items():
        found = stated.get(name)
        if found is None or not _same(found, value):
            yield f"{name} {_short(found)}; its {len(rows):,} decisions give {_short(value)}"


def recomputed(rows: Sequence[Sequence[float]], labels: Sequence[int]) -> dict[str, Any]:
    """Return samples, accuracy, NLL, Brier score, calibration error and confusion."""
    count, classes = len(rows), len(rows[0])
    confusion = [[0] * classes for _ in range(classes)]
    gaps = [0.0] * CONFIDENCES
    right, losses, scores = 0, [], []
    for row, label in zip(rows, labels, strict=True):
        best = max(row)
        decision = row.index(best)
        right += decision == label
        confusion[label][decision] += 1
        losses.append(-math.log(max(row[label], SMALLEST)))
        scores.append(math.fsum((p - (k == label)) ** 2 for k, p in enumerate(row)))
        gaps[min(int(best * CONFIDENCES), CONFIDENCES - 1)] += (decision == label) - best
    return {
        "samples": count,
        "accuracy": right / count,
        "accuracy_interval": _interval(right, count),
        "nll": math.fsum(losses) / count,
        "brier": math.fsum(scores) / count,
        "ece": math.fsum(map(abs, gaps)) / count,
        "confusion": confusion,
    }


def _interval(right: int, count: int) -> list[float]:
    """Wilson's score interval."""
    share, square = right / count, QUANTILE**2
    centre = share + square / (2 * count)
    half = QUANTILE * math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    low, high = ((centre + sign * half) / (1 + square / count) for sign in (-1, 1))
    return [max(0.0, min(low, share)), min(1.0, max(high, share))]


def _same(found: Any, value: Any) -> bool:
    if isinstance(value, list):
        fits = isinstance(found, list | tuple) and len(found) == len(value)
        return fits and all(map(_same, found, value))
    near: bool = isinstance(found, int | float) and abs(found - value) <= ORDER_OF_SUMS * max(1.0, abs(value))
    return near


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


ROUNDING = 1e-5  # of softmax and logarithm in float32, which decide no spike


def check_ensemble(found: Mapping[str, NDArray[np.float32]]) -> Iterator[str]:
    """Every output of a file that is not what its ``member_logits`` [members, B, classes] give.

    p = mean_m softmax(logits_m);   entropy H[p] = −Σ p ln p;   mutual information H[p] − mean_m H[p_m]
    """
    logits = found["member_logits"].astype(np.float64)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    each = powers / powers.sum(-1, keepdims=True)
    p = each.mean(0)
    expected = {"probabilities": p, "entropy": _entropy(p), "mutual_information": _entropy(p) - _entropy(each).mean(0)}
    for name, values in expected.items():
        off = ~(np.abs(found[name] - values) <= ROUNDING) if found[name].shape == values.shape else np.array([True])
        if off.any():
            yield f"output {name!r} of the file is not what its members' logits give ({int(off.sum())} of {off.size})"


def _entropy(p: NDArray[np.float64]) -> NDArray[np.float64]:
    found: NDArray[np.float64] = -(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(-1)
    return found


LEAST_PROBABILITY = 1e-30  # a probability of zero has no logarithm


class Count(NamedTuple):
    """Samples decided rightly, the mean negative log-likelihood, and that of each sample."""

    right: int
    nll: float
    losses: list[float]


@torch.no_grad()
def count(decide: Callable[[Tensor], Tensor], data: Iterable[tuple[Tensor, Tensor]]) -> Count:
    """``decide`` gives rows of numbers in proportion to the probabilities of classes."""
    right, losses = 0, []
    for x, labels in data:
        for row, label in zip(decide(x).tolist(), labels.tolist(), strict=True):
            right += row.index(max(row)) == label
            losses.append(-math.log(max(row[label] / sum(row), LEAST_PROBABILITY)))
    return Count(right, sum(losses) / len(losses), losses)
