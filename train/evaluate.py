"""Predictions of a network over a whole data set: mean-field, or the Bayesian predictive of K noisy passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.runtime.measure.metrics import Metrics, ValueMetrics, metrics_of, value_metrics
from axonnx.train.distributed import World
from axonnx.train.feed import Batch

Targets = NDArray[np.float32] | None  # [classes, values]: what each label stands for, in a regression


@dataclass(frozen=True)
class Predictions:
    """Class probabilities [N, classes] and the true labels [N]; the mean firing rate of each layer.

    With ``targets`` [classes, values], what each label stands for, the network's real values [N, values] are in the
    place of probabilities.
    """

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    rates: dict[str, float]
    targets: Targets = None

    def metrics(self) -> Metrics | ValueMetrics:
        """Accuracy, calibration and the rest; or the errors of real values."""
        if self.targets is not None:
            return value_metrics(self.probabilities, self.targets[self.labels])
        return metrics_of(self.probabilities, self.labels)


@dataclass(frozen=True)
class _Piece:
    """What one batch gives; ``rates`` has, for each pass, what it adds to the sums of firing rates."""

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    rates: list[dict[str, Tensor]]


def predict_mean_field(
    network: Network, batches: Iterable[Batch], world: World | None = None, targets: Targets = None
) -> Predictions:
    """Predict with the deterministic network, the one that ships.

    In a ``world`` of several processes each brings its own batches, as ``Feed.part_of`` deals them out, and all get the
    whole: put together in the order of the batches, it has the bits of one process.
    """
    world = world or World()
    return _together(_dealt(world.gather(list(_pieces(network, batches, MEAN_FIELD, 1, targets)))), targets)


def predict_bayesian(
    network: Network, batches: Iterable[Batch], passes: int, seed: int = 0, targets: Targets = None
) -> Predictions:
    """Return the mean of the class probabilities (or real values) of ``passes`` noisy passes."""
    noise = Sample(torch.Generator().manual_seed(seed))
    return _together(_pieces(network, batches, noise, passes, targets), targets)


def _dealt(hands: Sequence[Sequence[_Piece]]) -> Iterator[_Piece]:
    """Put the pieces into the order in which they were dealt out."""
    rounds = itertools.zip_longest(*hands)
    return (piece for each in rounds for piece in each if piece is not None)


def _together(pieces: Iterable[_Piece], targets: Targets) -> Predictions:
    whole = list(pieces)
    totals: dict[str, Tensor] = {}
    for rates in (rates for piece in whole for rates in piece.rates):
        for name, rate in rates.items():
            totals[name] = totals.get(name, 0.0) + rate
    labels = np.concatenate([piece.labels for piece in whole])
    means = {name: float(total) / len(labels) for name, total in totals.items()}
    return Predictions(np.concatenate([piece.probabilities for piece in whole]), labels, means, targets)


@torch.no_grad()
def _pieces(network: Network, batches: Iterable[Batch], fire: Fire, passes: int, targets: Targets) -> list[_Piece]:
    """Run all batches; what they give is copied from the device after the last one, so that no batch waits."""
    training = network.training
    network.eval()
    there = []
    for batch in batches:
        mean, rates = torch.zeros((), device=batch.labels.device), []
        for _ in range(passes):
            output = network(batch.x, fire)
            mean = mean + (torch.softmax(output.logits, -1) if targets is None else output.logits) / passes
            found = output.firing_rates()
            rates.append(torch.stack([mean.new_zeros(()), *found.values()])[1:] * len(batch.labels) / passes)
        there.append((mean, batch.labels, list(found), rates))
    network.train(training)
    return [
        _Piece(
            mean.cpu().numpy(),
            labels.cpu().numpy(),
            [dict(zip(names, each.cpu().unbind(), strict=True)) for each in rates],
        )
        for mean, labels, names, rates in there
    ]
