"""What synapses hand to neurons: the two moments of a Gaussian input current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as nnf
from torch import Tensor


@dataclass(frozen=True)
class Current:
    """A Gaussian current; ``activity`` is None where weights carry no posterior.

    The variance comes as a product, ``activity`` · ``gain``: where all weights of a neuron share their σ, it is
    (Σ_j o_j²) [… , 1] times (a² σ²) [channels], and the full tensor need not exist. Without ``gain`` the activity
    is the variance. A sum of such products, of maps, has an activity for each of its terms, [… , K, H, W], and their
    gains [K, channels, 1, 1]: the variance of a residual stream is never a map of all channels.

    Currents of independent synapses add: means to means, variances to variances. A residual stream is a
    Current too, so the shortcut of a residual block carries its noise along.
    """

    mean: Tensor
    activity: Tensor | None = None
    gain: Tensor | None = None

    @property
    def variance(self) -> Tensor | None:
        """κ² in the shape of the mean."""
        if self.activity is None:
            return None
        product = self.activity if self.gain is None else self._product(self.activity, self.gain)
        return product if product.shape == self.mean.shape else product.expand_as(self.mean)

    @staticmethod
    def _product(activity: Tensor, gain: Tensor) -> Tensor:
        if gain.dim() < 4:
            return activity * gain
        first, *others = (activity[..., k : k + 1, :, :] * gain[k] for k in range(len(gain)))
        return sum(others, start=first)

    def terms(self) -> tuple[Tensor, Tensor] | None:
        """Activities [… , K, H, W] and gains [K, channels, 1, 1]; None if the variance is no sum of products."""
        if self.activity is None or self.gain is None or self.mean.dim() < 4 or self.gain.dim() < 3:
            return None
        gain = self.gain if self.gain.dim() == 4 else self.gain[None]
        if gain.shape[2:] != (1, 1) or self.activity.shape[-3] != len(gain):
            return None
        return self.activity, gain.expand(-1, self.mean.shape[-3], 1, 1)

    def __add__(self, other: Current) -> Current:
        mean, mine, others = self.mean + other.mean, self.terms(), other.terms()
        if mine is not None and others is not None:
            return Current(mean, torch.cat([mine[0], others[0]], -3), torch.cat([mine[1], others[1]]))
        one, two = self.variance, other.variance
        if one is None or two is None:
            return Current(mean, one if two is None else two)
        return Current(mean, one + two)

    def channelwise(self, maps: Callable[[Tensor], Tensor], squares: Callable[[Tensor], Tensor]) -> Current:
        """Apply ``maps`` to the mean and ``squares`` to the variance, both the same for all channels of a map.

        Where the variance is a sum of products, its few activities are changed and their gains stay.
        """
        terms = self.terms()
        if terms is not None:
            return Current(maps(self.mean), squares(terms[0]), terms[1])
        variance = self.variance
        return Current(maps(self.mean), None if variance is None else squares(variance))

    def widened(self, channels: int) -> Current:
        """Add ``channels`` channels that have neither mean nor variance."""
        terms = self.terms()
        if terms is not None:
            return Current(more_channels(self.mean, channels), terms[0], more_channels(terms[1], channels))
        return self.each(lambda moment: more_channels(moment, channels))

    def each(self, function: Callable[[Tensor], Tensor]) -> Current:
        """Apply a change of shape to both moments."""
        variance = self.variance
        return Current(function(self.mean), None if variance is None else function(variance))


def more_channels(maps: Tensor, channels: int) -> Tensor:
    """Add channels of zeros to maps [… , C, H, W], in the memory order that they have."""
    if channels == 0:
        return maps
    if maps.is_contiguous():
        return nnf.pad(maps, (0, 0, 0, 0, 0, channels))
    last = maps.movedim(-3, -1)
    return torch.cat([last, last.new_zeros(*last.shape[:-1], channels)], -1).movedim(-1, -3)


def needs_current(given: object, layer: str) -> Current:
    """Return ``given``; refuse it if it is no ``Current``."""
    if isinstance(given, Current):
        return given
    what = f"a plain tensor {list(given.shape)}" if isinstance(given, Tensor) else f"a {type(given).__name__}"
    raise ValueError(
        f"the neurons {layer!r} got {what}; they take the Current of a synapse: self.synapse(x, run) of "
        f"axonnx.models.Linear or Conv2d (torch.nn.Linear gives a tensor), or Current(mean) of a tensor"
    )


def needs_spikes(given: object, layer: str) -> Tensor:
    """Return ``given``; refuse it if it is no tensor."""
    if isinstance(given, Tensor):
        return given
    raise ValueError(
        f"the layer {layer!r} got a {type(given).__name__}; it takes a tensor of spikes or input. Put neurons (LIF, "
        f"BinaryNeuron) between two synapses"
    )


def stack(steps: Sequence[Current]) -> Current:
    """Stack currents of single time steps along a time axis."""
    variances = [variance for step in steps if (variance := step.variance) is not None]
    return Current(torch.stack([step.mean for step in steps]), torch.stack(variances) if variances else None)
