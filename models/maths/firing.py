"""The firing decision: where a membrane becomes a spike, and who draws the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


def heaviside(value: Tensor) -> Tensor:
    """Return H(x): 1 where x ≥ 0, so a tie fires. The training code has this rule nowhere else."""
    return (value >= 0).to(value.dtype)


def decide(gap: Tensor, variance: Tensor | None, noise: Tensor | None) -> Tensor:
    """Return o = H(h* + κ ε − θ) with ``gap`` = h* − θ; without noise o = H(h* − θ).

    Decided on squares, κ²·(ε|ε|) ≥ d|d| with d = θ − h*: products and one comparison, whose bits are the
    same in every engine, where a square root's are not.
    """
    if variance is None or noise is None:
        return heaviside(gap)
    return (variance * (noise * noise.abs()) >= -(gap * gap.abs())).to(gap.dtype)


class Fire(Protocol):
    """How the neurons of one pass fire."""

    def noise(self, name: str, like: Tensor, step: int) -> Tensor | None:
        """Return ε for the membranes ``like`` of neuron layer ``name`` from time step ``step`` on; None: mean-field."""

    def forced(self, name: str, like: Tensor, step: int) -> Tensor | None:
        """Return spikes that layer ``name`` must give whatever its membrane says; None lets it decide."""


class _Free:
    """Neurons that decide."""

    def forced(self, name: str, like: Tensor, step: int) -> None:
        """Force nothing."""


@dataclass(frozen=True)
class MeanField(_Free):
    """o = H(h* − θ): neurons fire on their noiseless membrane."""

    def noise(self, name: str, like: Tensor, step: int) -> None:
        """Draw no noise."""


@dataclass(frozen=True)
class Sample(_Free):
    """o = H(h* + s κ ε − θ): every neuron, position and time step draws its own ε ~ N(0, 1); s is the ``scale``."""

    generator: torch.Generator | None = None
    scale: float = 1.0

    def drawn(self, step: int) -> Drawn:
        """Return the seed of a layer's noise in this pass, from time step ``step`` on."""
        seed = torch.randint(2**63 - 1, (), generator=self.generator)
        return Drawn(int(seed), step, self.scale)

    def noise(self, name: str, like: Tensor, step: int) -> Tensor:
        """Draw fresh standard-normal noise, scaled.

        A generator of the CPU gives a seed to one of another device: no device has to be waited for.
        """
        generator = self.generator
        if generator is not None and generator.device != like.device:
            generator = torch.Generator(like.device).manual_seed(self.drawn(step).seed)
        drawn = torch.randn(like.shape, generator=generator, device=like.device, dtype=like.dtype)
        return drawn if self.scale == 1.0 else drawn.mul_(self.scale)


@dataclass(frozen=True)
class Drawn:
    """Noise that is drawn where it is used: a function of (seed, step, sample, neuron), which no tensor holds.

    Passes of the native core draw it in registers, forwards and, where an estimator reads it, backwards again.
    """

    seed: int
    step: int
    scale: float = 1.0


@dataclass(frozen=True)
class Replay(_Free):
    """As ``Sample``, with noise that was recorded: the same pass again, in any implementation or chunking.

    Each tensor is what ``Sample`` drew for the whole pass: [B, …] of a binary layer, [T, B, …] of a spiking one.
    """

    noises: Mapping[str, Tensor]

    def noise(self, name: str, like: Tensor, step: int) -> Tensor:
        """Return the recorded ε of this layer."""
        if name not in self.noises:
            raise ValueError(f"no noise for layer {name!r}; given are {sorted(self.noises)}")
        return _at(self.noises[name], like, step, f"noise of layer {name!r}")


@dataclass(frozen=True)
class Forced:
    """Some layers give prescribed spikes, the others fire as ``otherwise`` says."""

    spikes: Mapping[str, Tensor]
    otherwise: Fire

    def noise(self, name: str, like: Tensor, step: int) -> Tensor | None:
        """Draw noise for the layers that decide."""
        return None if name in self.spikes else self.otherwise.noise(name, like, step)

    def forced(self, name: str, like: Tensor, step: int) -> Tensor | None:
        """Return the prescribed spikes."""
        if name not in self.spikes:
            return self.otherwise.forced(name, like, step)
        return _at(self.spikes[name], like, step, f"spikes of layer {name!r}")


MEAN_FIELD = MeanField()


def _at(recorded: Tensor, like: Tensor, step: int, what: str) -> Tensor:
    """Return the part of a recorded tensor that a pass from ``step`` on needs; refuse another shape."""
    part = recorded
    if recorded.dim() == like.dim() + 1:
        part = recorded[step] if step < recorded.shape[0] else recorded[:0]
    elif recorded.dim() == like.dim():
        part = recorded[step : step + like.shape[0]]
    if part.shape != like.shape:
        raise ValueError(f"{what}: recorded {list(recorded.shape)}, needed {list(like.shape)} from step {step} on")
    return part
