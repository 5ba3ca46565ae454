"""The noise of sampled training, on its way to a network that ships without it or bears it.

``temper`` makes a cold posterior: as much noise as a trained network bears without deciding worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.models import MEAN_FIELD, Fire, Network, Sample, Variant
from axonnx.train.checkpoint import SPREADS
from axonnx.train.config.settings import Config
from axonnx.train.feed import Batch, Feed


def refuse_idle_noise(config: Config, variant: Variant) -> None:
    """Refuse settings of noise if training has none."""
    for key in ("anneal", "mean_field"):
        if getattr(config.noise, key) and variant.fire != "sample":
            raise AxonnxError(
                f"noise.{key} is for training with noise; {config.variant.name!r} fires mean-field. "
                f"Leave it out, or set variant.fire = 'sample'"
            )
    if config.noise.temper and variant.spread == "none":
        raise AxonnxError(
            f"noise.temper is for networks with a posterior; {config.variant.name!r} has no σ to shrink. Leave it out"
        )


def noise_scale(progress: float, anneal: float) -> float:
    """Return the share of κ that neurons feel: one, then a line to zero over the last ``anneal`` of training."""
    return 1.0 if anneal == 0.0 or progress <= 1.0 - anneal else max(0.0, (1.0 - progress) / anneal)


def is_mean_field(batch: int, share: float) -> bool:
    """Whether batch number ``batch`` (of the whole run) is one of the evenly spread ``share`` without noise."""
    return int((batch + 1) * share) > int(batch * share)


def fire_of_batch(config: Config, variant: Variant, noise: torch.Generator, done: int, batches: int) -> Fire:
    """How neurons fire in the batch after ``done`` of ``batches`` in an epoch, counted from the run's first."""
    progress = done / (batches * config.optimiser.epochs)
    scale = noise_scale(progress, config.noise.anneal)
    without = variant.fire != "sample" or progress >= 1.0 or is_mean_field(done, config.noise.mean_field)
    return MEAN_FIELD if without or scale == 0.0 else Sample(noise, scale)


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
        noise = torch.Generator().manual_seed(seed)
        return right(network, batches(), Sample(noise, scale) if scale else MEAN_FIELD)

    scale = largest_scale(share_right, most)
    multiply_stds(network, scale)
    return scale


def looked_at(feed: Feed, epoch: int) -> NDArray[np.int64]:
    """Return fingerprints of the samples that ``temper`` looks at."""
    size = feed.batches.batch_size
    return feed.batches.fingerprints(feed.batches.order(epoch)[: math.ceil(SAMPLES / size) * size])


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
