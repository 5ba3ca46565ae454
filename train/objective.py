"""What training minimises: cross-entropy + λ · KL."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models import Network, Output
from axonnx.models.network import Regulariser


@dataclass(frozen=True)
class Objective:
    """λ and what the KL is taken over; λ = 0 leaves the KL out of the loss and out of the computation."""

    kl_weight: float
    kl: Regulariser = "neuron"
    label_smoothing: float = 0.0

    def __call__(self, network: Network, output: Output, labels: Tensor) -> Loss:
        """The loss of one pass, averaged over the batch."""
        fit = nnf.cross_entropy(output.logits, labels, label_smoothing=self.label_smoothing)
        if self.kl_weight == 0.0:
            return Loss(fit, fit.detach(), torch.zeros_like(fit))
        kl = network.regulariser(output, self.kl)
        return Loss(fit + self.kl_weight * kl, fit.detach(), kl.detach())


@dataclass(frozen=True)
class Loss:
    """The total to be minimised, and its two parts for the record."""

    total: Tensor
    cross_entropy: Tensor
    kl: Tensor


def cosine_rate(progress: float, final: float, warmup: float = 0.0) -> float:
    """The learning rate as a share of its start: a linear rise over ``warmup``, then a cosine down to ``final``."""
    if progress < warmup:
        return progress / warmup
    along = (progress - warmup) / (1.0 - warmup) if warmup < 1.0 else 1.0
    return final + (1.0 - final) * 0.5 * (1.0 + cos(pi * min(along, 1.0)))
