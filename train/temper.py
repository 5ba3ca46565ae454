"""A cold posterior: as much noise as a trained network bears without deciding worse."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

import torch

from axonnx.models import MEAN_FIELD, Fire, Network, Sample
from axonnx.train.feed import Batch, Feed
from axonnx.train.output.checkpoint import SPREADS

SAMPLES = 2048  # training samples, augmented as in training, that are looked at
STEPS = 16  # of √½ each, down to σ/256: a network that bears no more than that has no noise to speak of


def temper(network: Network, feed: Feed, epoch: int, most: float, seed: int) -> float:
    """Multiply every σ by the largest of 1, √½, ½, … that costs one noisy pass at most ``most`` of its decisions.

    What it costs is the share of right decisions on training samples, against the mean-field pass on the same ones.
    """
    count = math.ceil(SAMPLES / feed.batches.batch_size)

    def batches() -> Iterable[Batch]:
        return islice(feed.epoch(epoch), count)

    def share_right(scale: float) -> float:
        device = next(network.parameters()).device
        noise = torch.Generator(device).manual_seed(seed)
        return right(network, batches(), Sample(noise, scale) if scale else MEAN_FIELD)

    scale = largest_scale(share_right, most)
    multiply_stds(network, scale)
    return scale


def largest_scale(share_right: Callable[[float], float], most: float) -> float:
    """Find the largest s = 2^(−k/2) whose share of right decisions is at most ``most`` below that of s = 0."""
    least = share_right(0.0) - most
    scales = [math.pow(2.0, -k / 2) for k in range(STEPS + 1)]
    return next((scale for scale in scales if share_right(scale) >= least), scales[-1])


@torch.no_grad()
def right(network: Network, batches: Iterable[Batch], fire: Fire) -> float:
    """Return the share of right decisions."""
    training = network.training
    network.eval()
    found = [(network(batch.x, fire).logits.argmax(-1) == batch.labels).float() for batch in batches]
    network.train(training)
    return float(torch.cat(found).mean())


@torch.no_grad()
def multiply_stds(network: Network, scale: float) -> None:
    """σ ← s·σ of every posterior and of the base noise, so that κ ← s·κ: the noise of ``Sample(…, scale=s)``."""
    for name, tensor in network.state_dict().items():
        if name.endswith(SPREADS):
            tensor += math.log(scale)
