"""Neurons that oscillate: they answer to input at their own frequency, and hardly to any other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from axonnx.models.maths.current import Current
from axonnx.models.neurons import Neurons
from axonnx.models.synapses import Recurrent
from axonnx.models.variant import BAYESIAN, Variant


class ResonatorState(NamedTuple):
    """What resonators carry from one time step to the next, each [B, …]; moments only where there is noise.

    Membrane and resonance are the two coordinates of an oscillation. Both hear the same noise of the current, so
    their covariance belongs to the state.
    """

    membrane: Tensor
    spikes: Tensor
    resonance: Tensor
    variance: Tensor | None = None
    resonance_variance: Tensor | None = None
    covariance: Tensor | None = None


def turn(
    current: Tensor, membrane: Tensor, resonance: Tensor, spikes: Tensor, p: Mapping[str, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return y' = b x + a y − θ o and x' = a x − b y + I."""
    turned = p["turned"] * resonance + p["kept"] * membrane - p["threshold"] * spikes
    return turned, p["kept"] * resonance - p["turned"] * membrane + current


class ResonateAndFire(Neurons):
    """Resonate-and-fire neurons: a damped oscillation that the current drives, and that fires above a threshold.

    Every step turns the point (resonance x, membrane y) by the angle ω = 2π · frequency and damps it; the current is
    added to x, and the neuron fires where y reaches θ. A spike takes θ from y at the next time step:

        x' = a x − b y + I;   y' = b x + a y − θ o;   o' = 1 where y' ≥ θ;   a = decay · cos ω, b = decay · sin ω

    The state is linear in the current between spikes, so noise has exact moments here. An exported file has none:
    collapse with mfa or sampled.

    Args:
        frequency: Oscillations in a time step, within (0, ½): one number, or a tensor with one for each neuron, which
            is [n] of dense neurons and [channels, 1, 1] after a convolution.
        variant: How the recurrent weights are distributed, and how gradients pass the decision.
        decay: The share of the oscillation that is left after one time step, in (0, 1]; one, or one for each neuron.
        threshold: θ.
        learn_frequency: Whether frequencies are trained, from the given ones on.
        learn_decay: Whether decays are trained, from the given ones on, which must then be below 1.
        recurrent: The number of neurons of a layer that hears itself one step later.

    Raises:
        ValueError: If a frequency, a decay or the threshold is out of its range.
    """

    def __init__(
        self,
        frequency: float | Tensor,
        variant: Variant = BAYESIAN,
        *,
        decay: float | Tensor = 0.95,
        threshold: float = 1.0,
        learn_frequency: bool = False,
        learn_decay: bool = False,
        recurrent: int | None = None,
    ) -> None:
        super().__init__(variant, None if recurrent is None else Recurrent(recurrent, variant))
        frequencies, decays = (torch.as_tensor(given, dtype=torch.float32) for given in (frequency, decay))
        if not bool(((frequencies > 0.0) & (frequencies < 0.5)).all()):
            raise ValueError(
                f"frequency is {frequencies.tolist()}; expected oscillations in a time step, within (0, ½)"
            )
        if not bool(((decays > 0.0) & (decays <= 1.0)).all()) or (learn_decay and bool((decays == 1.0).any())):
            raise ValueError(f"decay is {decays.tolist()}; expected numbers in (0, 1], below 1 to be learned")
        if not threshold > 0.0:
            raise ValueError(f"threshold of a spiking neuron is {threshold}; expected a positive number")
        self.register_buffer("threshold", torch.tensor(threshold))
        self._hold("share", 2.0 * frequencies, learn_frequency)
        self._hold("level", decays, learn_decay)

    def _hold(self, name: str, values: Tensor, learned: bool) -> None:
        """Register a number in (0, 1): a parameter by its logit if it is learned, or else a buffer."""
        if learned:
            self.register_parameter(f"{name}_logit", nn.Parameter(torch.logit(values)))
        else:
            self.register_buffer(f"fixed_{name}", values)

    def _held(self, name: str) -> Tensor:
        logit = self._parameters.get(f"{name}_logit")
        return (self.get_buffer(f"fixed_{name}") if logit is None else logit.double().sigmoid()).double()

    @property
    def frequency(self) -> Tensor:
        """Oscillations in a time step."""
        return (0.5 * self._held("share")).to(self.threshold.dtype)

    @property
    def decay(self) -> Tensor:
        """The share of the oscillation that a time step leaves."""
        return self._held("level").to(self.threshold.dtype)

    def operators(self, stochastic: bool) -> tuple[str, ...]:
        """Return one operator, without noise."""
        if stochastic:
            raise ValueError("ResonateAndFire neurons have no stochastic form in a file; collapse with mfa or sampled")
        return ("ResonateAndFire",)

    def constants(self) -> dict[str, Tensor]:
        """Return a, b and θ.

        Worked out in double precision and rounded once: near a quarter turn the cosine of a rounded angle has few right
        digits, and verification would find a file's constants to differ from those of training.
        """
        angle, decay, dtype = math.pi * self._held("share"), self._held("level"), self.threshold.dtype
        kept, turned = (decay * torch.cos(angle)).to(dtype), (decay * torch.sin(angle)).to(dtype)
        return {"kept": kept, "turned": turned, "threshold": self.threshold}

    def at_rest(self, zeros: Tensor, noisy: bool) -> ResonatorState:
        """Return the state in which nothing oscillates."""
        return ResonatorState(zeros, zeros, zeros, *(zeros,) * 3 if noisy else (None,) * 3)

    def step(
        self, arriving: Current, state: ResonatorState, constants: Mapping[str, Tensor]
    ) -> tuple[ResonatorState, Tensor, Tensor | None]:
        """Turn the means and the moments by one step."""
        membrane, resonance = turn(arriving.mean, state.membrane, state.resonance, state.spikes, constants)
        moments = self._moments(arriving, state, constants)
        return ResonatorState(membrane, state.spikes, resonance, *moments), membrane - self.threshold, moments[0]

    def _moments(
        self, arriving: Current, state: ResonatorState, p: Mapping[str, Tensor]
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return variances and covariance after a turn.

        V_y' = b² V_x + a² V_y + 2ab C;   V_x' = a² V_x + b² V_y − 2ab C + Var I;   C' = ab (V_x − V_y) + (a² − b²) C
        """
        of_y, of_x, both, noise = state.variance, state.resonance_variance, state.covariance, arriving.variance
        if of_y is None or of_x is None or both is None or noise is None:
            return None, None, None
        a, b = p["kept"], p["turned"]
        cross = 2.0 * a * b * both
        return (
            b * b * of_x + a * a * of_y + cross,
            a * a * of_x + b * b * of_y - cross + noise,
            a * b * (of_x - of_y) + (a * a - b * b) * both,
        )
