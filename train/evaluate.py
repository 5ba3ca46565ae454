"""Predictions of a network over a whole data set: mean-field, or the Bayesian predictive of K noisy passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.runtime.measure.metrics import Metrics, metrics_of
from axonnx.train.feed import Batch


@dataclass(frozen=True)
class Predictions:
    """Class probabilities [N, classes] and the true labels [N]; the mean firing rate of each layer."""

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    rates: dict[str, float]

    def metrics(self) -> Metrics:
        """Accuracy, calibration and the rest."""
        return metrics_of(self.probabilities, self.labels)


def predict_mean_field(network: Network, batches: Iterable[Batch]) -> Predictions:
    """What the deterministic network, the one that ships, predicts."""
    return _predict(network, batches, MEAN_FIELD, passes=1)


def predict_bayesian(network: Network, batches: Iterable[Batch], passes: int, seed: int = 0) -> Predictions:
    """The mean of the class probabilities of ``passes`` noisy passes."""
    device = next(network.parameters()).device
    return _predict(network, batches, Sample(torch.Generator(device).manual_seed(seed)), passes)


@torch.no_grad()
def _predict(network: Network, batches: Iterable[Batch], fire: Fire, passes: int) -> Predictions:
    training = network.training
    network.eval()
    probabilities, labels = [], []
    totals: dict[str, Tensor] = {}
    seen = 0
    for batch in batches:
        mean = torch.zeros((), device=batch.labels.device)
        for _ in range(passes):
            output = network(batch.x, fire)
            mean = mean + torch.softmax(output.logits, -1) / passes
            for name, rate in output.firing_rates().items():
                totals[name] = totals.get(name, 0.0) + rate * len(batch.labels) / passes
        probabilities.append(mean.cpu().numpy())
        labels.append(batch.labels.cpu().numpy())
        seen += len(batch.labels)
    network.train(training)
    rates = {name: float(total) / seen for name, total in totals.items()}
    return Predictions(np.concatenate(probabilities), np.concatenate(labels), rates)
