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
from axonnx.runtime.measure.metrics import Metrics, metrics_of
from axonnx.train.distributed import World
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


@dataclass(frozen=True)
class _Piece:
    """What one batch gives; ``rates`` has, for each pass, what it adds to the sums of firing rates."""

    probabilities: NDArray[np.float32]
    labels: NDArray[np.int64]
    rates: list[dict[str, Tensor]]


def predict_mean_field(network: Network, batches: Iterable[Batch], world: World | None = None) -> Predictions:
    """Predict with the deterministic network, the one that ships.

    In a ``world`` of several processes each brings its own batches, as ``Feed.part_of`` deals them out, and all get the
    whole: put together in the order of the batches, it has the bits of one process.
    """
    world = world or World()
    return _together(_dealt(world.gather(list(_pieces(network, batches, MEAN_FIELD, passes=1)))))


def predict_bayesian(network: Network, batches: Iterable[Batch], passes: int, seed: int = 0) -> Predictions:
    """Return the mean of the class probabilities of ``passes`` noisy passes."""
    device = next(network.parameters()).device
    return _together(_pieces(network, batches, Sample(torch.Generator(device).manual_seed(seed)), passes))


def _dealt(hands: Sequence[Sequence[_Piece]]) -> Iterator[_Piece]:
    """Put the pieces into the order in which they were dealt out."""
    rounds = itertools.zip_longest(*hands)
    return (piece for each in rounds for piece in each if piece is not None)


def _together(pieces: Iterable[_Piece]) -> Predictions:
    whole = list(pieces)
    totals: dict[str, Tensor] = {}
    for rates in (rates for piece in whole for rates in piece.rates):
        for name, rate in rates.items():
            totals[name] = totals.get(name, 0.0) + rate
    labels = np.concatenate([piece.labels for piece in whole])
    means = {name: float(total) / len(labels) for name, total in totals.items()}
    return Predictions(np.concatenate([piece.probabilities for piece in whole]), labels, means)


@torch.no_grad()
def _pieces(network: Network, batches: Iterable[Batch], fire: Fire, passes: int) -> Iterator[_Piece]:
    training = network.training
    network.eval()
    for batch in batches:
        mean, rates = torch.zeros((), device=batch.labels.device), []
        for _ in range(passes):
            output = network(batch.x, fire)
            mean = mean + torch.softmax(output.logits, -1) / passes
            found = output.firing_rates().items()
            rates.append({name: (rate * len(batch.labels) / passes).cpu() for name, rate in found})
        yield _Piece(mean.cpu().numpy(), batch.labels.cpu().numpy(), rates)
    network.train(training)
