"""What synapses hand to neurons: the two moments of a Gaussian input current."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Current:
    """A Gaussian current N(mean, variance); ``variance`` is None where weights carry no posterior.

    Currents of independent synapses add: means to means, variances to variances. A residual stream is a
    Current too, so the shortcut of a residual block carries its noise along.
    """

    mean: Tensor
    variance: Tensor | None = None

    def __add__(self, other: Current) -> Current:
        if self.variance is None or other.variance is None:
            return Current(self.mean + other.mean, self.variance if other.variance is None else other.variance)
        return Current(self.mean + other.mean, self.variance + other.variance)

    def affine(self, scale: Tensor, bias: Tensor) -> Current:
        """a·I + b: the variance grows with a²."""
        variance = None if self.variance is None else self.variance * (scale * scale)
        return Current(self.mean * scale + bias, variance)

    def each(self, function: Callable[[Tensor], Tensor]) -> Current:
        """Apply a change of shape to both moments."""
        return Current(function(self.mean), None if self.variance is None else function(self.variance))
