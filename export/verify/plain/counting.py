"""How often the largest number of a row is the label's, counted one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor

SMALLEST = 1e-30  # a probability of zero has no logarithm


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
            losses.append(-math.log(max(row[label] / sum(row), SMALLEST)))
    return Count(right, sum(losses) / len(losses), losses)
