"""What synapses hand to neurons: the two moments of a Gaussian input current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Current:
    """A Gaussian current; ``activity`` is None where weights carry no posterior.

    The variance comes as a product, ``activity`` · ``gain``: where all weights of a neuron share their σ, it is
    (Σ_j o_j²) [… , 1] times (a² σ²) [channels], and the full tensor need not exist. Without ``gain`` the activity
    is the variance.

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
        product = self.activity if self.gain is None else self.activity * self.gain
        return product if product.shape == self.mean.shape else product.expand_as(self.mean)

    @property
    def variance_later(self) -> Callable[[], Tensor] | None:
        """The same for those who may not need it: a function; None without noise."""
        if self.activity is None:
            return None

        def variance() -> Tensor:
            found = self.variance
            assert found is not None, "there is an activity"
            return found

        return variance

    def __add__(self, other: Current) -> Current:
        mine, others = self.variance, other.variance
        if mine is None or others is None:
            return Current(self.mean + other.mean, mine if others is None else others)
        return Current(self.mean + other.mean, mine + others)

    def each(self, function: Callable[[Tensor], Tensor]) -> Current:
        """Apply a change of shape to both moments."""
        variance = self.variance
        return Current(function(self.mean), None if variance is None else function(variance))


def needs_current(given: object, layer: str) -> Current:
    """``given``, refused where it is no ``Current``."""
    if isinstance(given, Current):
        return given
    what = f"a plain tensor {list(given.shape)}" if isinstance(given, Tensor) else f"a {type(given).__name__}"
    raise ValueError(
        f"the neurons {layer!r} got {what}; they take the Current of a synapse: self.synapse(x, run) of "
        f"axonnx.models.Linear or Conv2d (torch.nn.Linear gives a tensor), or Current(mean) of a tensor"
    )


def needs_spikes(given: object, layer: str) -> Tensor:
    """``given``, refused where it is no tensor."""
    if isinstance(given, Tensor):
        return given
    raise ValueError(
        f"the layer {layer!r} got a {type(given).__name__}; it takes a tensor of spikes or input. Put neurons (LIF, "
        f"BinaryNeuron) between two synapses"
    )


def stack(steps: Sequence[Current]) -> Current:
    """Currents of single time steps as one with a time axis."""
    variances = [variance for step in steps if (variance := step.variance) is not None]
    return Current(torch.stack([step.mean for step in steps]), torch.stack(variances) if variances else None)
