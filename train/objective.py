"""What training minimises: cross-entropy (of real values: the mean squared error) + λ · regulariser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import cos, exp, log, pi

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models import Network, Output, Regulariser


@dataclass(frozen=True)
class Objective:
    """One λ, or one for each layer; λ = 0 leaves the regulariser out of the loss and out of the computation."""

    weight: float | Mapping[str, float | Tensor]
    regulariser: Regulariser = field(default_factory=Regulariser)
    label_smoothing: float = 0.0
    targets: Tensor | None = None  # of a regression: the values [classes, values] that each label stands for

    def __call__(self, network: Network, output: Output, labels: Tensor) -> Loss:
        """Return the loss of one pass, averaged over the batch."""
        if self.targets is None:
            fit = nnf.cross_entropy(output.logits, labels, label_smoothing=self.label_smoothing)
        else:
            fit = nnf.mse_loss(output.logits, self.targets.to(labels.device)[labels])
        if not isinstance(self.weight, Mapping) and self.weight == 0.0:
            return Loss(fit, fit.detach(), torch.zeros_like(fit))
        terms = self.regulariser.terms(network, output)
        kl = self.regulariser.added(terms, fit)
        if not isinstance(self.weight, Mapping):
            return Loss(fit + self.weight * kl, fit.detach(), kl.detach())
        weights = {name: self.weight.get(name, START) for name in terms}
        squares = self.regulariser.mean_squares(network, output)
        return Loss(fit + self.regulariser.added(terms, fit, weights), fit.detach(), kl.detach(), squares)


@dataclass(frozen=True)
class Loss:
    """The total to be minimised, its two parts for the record, and the mean r² of layers with a λ of their own."""

    total: Tensor
    cross_entropy: Tensor
    kl: Tensor
    squares: dict[str, Tensor] = field(default_factory=dict)


def cosine_rate(progress: float, final: float, warmup: float = 0.0) -> float:
    """Return the learning rate as a share of its start: a linear rise over ``warmup``, then a cosine to ``final``."""
    if progress < warmup:
        return progress / warmup
    along = (progress - warmup) / (1.0 - warmup) if warmup < 1.0 else 1.0
    return final + (1.0 - final) * 0.5 * (1.0 + cos(pi * min(along, 1.0)))


START = 0.01
SMALLEST, LARGEST = 1e-6, 10.0  # of no effect beside the cross-entropy; far above it


def ascend(
    weights: Mapping[str, float | Tensor], squares: Mapping[str, float | Tensor], target: float, rate: float
) -> dict[str, float | Tensor]:
    """Return the multipliers after a step with these layer means of r²; a layer without noise keeps its own.

    Means that are tensors give multipliers that are tensors: nobody waits for a device.
    """
    return {name: _next(weights.get(name, START), square / target, rate) for name, square in squares.items()}


def _next(weight: float | Tensor, missed: float | Tensor, rate: float) -> float | Tensor:
    if isinstance(missed, Tensor):
        moved = weight * torch.exp(rate * torch.log(missed).clamp(-1.0, 1.0))
        return torch.where(missed > 0.0, moved.clamp(SMALLEST, LARGEST), weight)
    if missed <= 0.0:
        return weight
    step = rate * min(1.0, max(-1.0, log(missed)))
    return min(LARGEST, max(SMALLEST, weight * exp(step)))


def numbers(multipliers: Mapping[str, float | Tensor]) -> dict[str, float]:
    """Return multipliers as numbers, in one copy from the device that they are on."""
    there = [weight for weight in multipliers.values() if isinstance(weight, Tensor)]
    found = iter(torch.stack(there).tolist() if there else ())
    return {name: next(found) if isinstance(x, Tensor) else x for name, x in multipliers.items()}
