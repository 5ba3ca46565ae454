"""The noise of sampled training, on its way to a network that ships without it."""

from __future__ import annotations

import torch

from axonnx.base.errors import AxonnxError
from axonnx.models import MEAN_FIELD, Fire, Sample, Variant
from axonnx.train.config.settings import Config


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
