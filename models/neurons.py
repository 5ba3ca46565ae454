"""Neurons: where currents become spikes, and where spikes become logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from axonnx.models.collapsing import Choice, hold
from axonnx.models.fast import core, lif_core
from axonnx.models.fast.leaky_sum import leaky_readout, leaky_sum, readout_applies
from axonnx.models.fast.lif import Passes, Recurrence, fused_passes, lif_sequence
from axonnx.models.fast.linear_moments import linear_product
from axonnx.models.maths.current import Current, needs_current, needs_spikes, stack
from axonnx.models.maths.firing import Drawn
from axonnx.models.maths.kl import Divergence
from axonnx.models.run import LIFState, Observation, ReadoutState, Run, stack_observations
from axonnx.models.synapses import Recurrent
from axonnx.models.variant import BAYESIAN, Variant

DEFAULT_DECAY = math.exp(-1.0 / 10.0)
Reset = Literal["subtract", "zero"]
Learned = bool | Literal["neuron"]


class Neurons(nn.Module):
    """A layer of neurons: what all kinds have in common, the pass through time among it.

    A kind with memory says how it is at rest, what its constants are, and what one time step does. Its operators are
    what it becomes in a file: collapse, export and verification ask for them and know nothing of single kinds.
    """

    threshold: Tensor
    moving_threshold: bool = False  # whether neurons are held against something else than θ

    def __init__(self, variant: Variant, recurrent: Recurrent | None = None) -> None:
        super().__init__()
        self.estimator = variant.estimator
        self.recurrent = recurrent

    def operators(self, stochastic: bool) -> tuple[str, ...]:
        """Return the operators of ``ai.axonnx`` that compute one time step.

        Args:
            stochastic: Whether neurons keep their noise.

        Returns:
            Their names. Each hears what the one before it gave; the last one fires.

        Raises:
            ValueError: If there is no operator that keeps the noise of these neurons.
        """
        raise NotImplementedError

    def constants(self) -> dict[str, Tensor]:
        """Return the constants of all its operators, by the names of their definitions."""
        raise NotImplementedError

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the layer as a file has it."""
        recurrent = None if self.recurrent is None else self.recurrent.posterior
        return choice.neurons(self.operators(choice.stochastic), self.constants(), recurrent)

    def at_rest(self, zeros: Tensor, noisy: bool) -> Any:
        """Return the state before the first step: a named tuple with ``membrane`` and ``spikes`` among its fields."""
        raise NotImplementedError

    def step(self, arriving: Current, state: Any, constants: Mapping[str, Tensor]) -> tuple[Any, Tensor, Tensor | None]:
        """Return the state after a step, h* − θ, and κ² of the decision; the spikes are decided and filled in later."""
        raise NotImplementedError

    def forward(self, current: Current, run: Run) -> Tensor:
        """Return spikes of the shape of the current; the state goes through ``run``."""
        current = needs_current(current, run.name(self))
        forced = run.forced(self, current.mean)
        steps = current if run.sequence else _one_step(current)
        if steps.activity is None and self.recurrent is not None and self.recurrent.noisy:
            steps = Current(steps.mean, torch.zeros_like(steps.mean))  # only the recurrent weights are noisy
        state: Any = run.state_of(self)
        if state is None:
            state = self.at_rest(torch.zeros_like(steps.mean[0]), steps.activity is not None)
        if forced is None and self._draws_noise(steps, state):
            noise: Tensor | Drawn | None = run.drawn(self, current.mean)
        else:
            noise = run.noise(self, current.mean)
        if not run.sequence:
            noise = noise[None] if isinstance(noise, Tensor) else noise
            forced = None if forced is None else forced[None]
        return self._through_time(steps, state, noise, forced, run)

    def _draws_noise(self, current: Current, state: Any) -> bool:
        """Tell whether the pass through time can draw its noise where it is used."""
        return False

    def _through_time(
        self, current: Current, state: Any, noise: Tensor | Drawn | None, forced: Tensor | None, run: Run
    ) -> Tensor:
        assert not isinstance(noise, Drawn), "only passes that draw their noise are given a seed"
        constants, variances = self.constants(), current.variance
        weights = None if self.recurrent is None else self.recurrent.weights()
        seen, arrived = [], []
        for t in range(len(current.mean)):
            arriving = Current(current.mean[t], None if variances is None else variances[t])
            if self.recurrent is not None and weights is not None:
                arriving = arriving + self.recurrent.moments(state.spikes, *weights)
            state, gap, variance = self.step(arriving, state, constants)
            if forced is None:
                spikes = self.estimator.fire(gap, variance, None if noise is None else noise[t])
            else:
                spikes = forced[t]
            state = state._replace(spikes=spikes)
            seen.append(Observation(gap, variance, spikes, state.membrane if self.moving_threshold else None))
            arrived.append(arriving)
        return self._finish(stack_observations(seen), state, stack(arrived) if run.currents is not None else None, run)

    def _finish(self, seen: Observation, state: Any, reached: Current | None, run: Run) -> Tensor:
        """Write down what the layer did, without a time axis where the run has none."""
        run.keep(self, state)
        seen = seen if run.sequence else seen.first()
        run.observe(self, seen)
        if run.currents is not None and reached is not None:
            run.currents[run.name(self)] = reached if run.sequence else reached.each(lambda moment: moment[0])
        return seen.spikes


def _one_step(current: Current) -> Current:
    """Add an axis for time; factors of the variance stay factors."""
    activity = None if current.activity is None else current.activity[None]
    return Current(current.mean[None], activity, current.gain)


class BinaryNeuron(Neurons):
    """o = H(h* + κ ε − θ), without memory; θ = 0 in a binary network."""

    def __init__(self, variant: Variant = BAYESIAN, threshold: float = 0.0) -> None:
        super().__init__(variant)
        self.register_buffer("threshold", torch.tensor(threshold))

    def operators(self, stochastic: bool) -> tuple[str, ...]:
        """Return one operator, with or without noise."""
        return ("StochasticHeaviside" if stochastic else "Heaviside",)

    def constants(self) -> dict[str, Tensor]:
        """Return θ."""
        return {"threshold": self.threshold}

    def forward(self, current: Current, run: Run) -> Tensor:
        """Return spikes of the shape of the current."""
        current = needs_current(current, run.name(self))
        if run.currents is not None:
            run.currents[run.name(self)] = current
        spikes = run.forced(self, current.mean)
        if spikes is None:
            once = _one_step(current)
            run_pass = fused_passes(once, None, lif_core.NOTHING, (None, self.threshold), self.estimator)
            if run_pass is not None:
                return self._fused(run_pass, current, once, run)
        gap, variance = current.mean - self.threshold, current.variance
        if spikes is None:
            spikes = self.estimator.fire(gap, variance, run.noise(self, gap))
        run.observe(self, Observation(gap, variance, spikes))
        return spikes

    def _fused(self, run_pass: Passes, current: Current, once: Current, run: Run) -> Tensor:
        """Run one step of neurons that remember nothing."""
        noise = run.drawn(self, current.mean)
        noise = noise[None] if isinstance(noise, Tensor) else noise
        constants = (torch.zeros_like(self.threshold), self.threshold, None, None, None)
        passed = run_pass(once, noise, lif_core.NOTHING, *constants, self.estimator, False)
        if passed.log is not None and passed.quadratic is not None:
            run.divergences[run.name(self)] = Divergence(passed.log, passed.quadratic)
        spikes = core.without_time(passed.spikes)
        later = None if current.activity is None else lambda: current.variance  # few ask for it
        gap = passed.gap() if callable(passed.gap) else passed.gap
        run.observe(self, Observation(gap[0], later, spikes))
        return spikes


@dataclass(frozen=True)
class LIFSettings:
    """Constants of a layer of spiking neurons.

    ``learn_decay``, ``learn_threshold``: β or θ is learned, one for the layer or (``"neuron"``) one for each neuron or
    channel. ``time_constants``: learned decays of neurons begin at exp(−1/τ), with τ drawn log-uniformly between these
    two numbers of steps, and not all at ``decay``.
    ``base_std``: the noise of the threshold, σ_base at the start (learned per layer; none in the baselines).
    ``reset``: subtract θ from the membrane of a neuron that fired, or set it to zero; in both cases at the
    next time step, as in the paper.
    """

    threshold: float = 1.0
    decay: float = DEFAULT_DECAY
    learn_decay: Learned = False
    reset: Reset = "subtract"
    base_std: float = 0.2
    learn_threshold: Learned = False
    time_constants: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not 0.0 <= self.decay <= 1.0 or (self.learn_decay and self.decay in (0.0, 1.0)):
            raise ValueError(f"decay is {self.decay}; expected a number in [0, 1], or within (0, 1) to be learned")
        if not self.threshold > 0.0:
            raise ValueError(f"threshold of a spiking neuron is {self.threshold}; expected a positive number")
        if not self.base_std >= 0.0:
            raise ValueError(f"base_std is {self.base_std}; expected zero or a positive number")
        if self.reset not in ("subtract", "zero"):
            raise ValueError(f"reset is {self.reset!r}; known are 'subtract' and 'zero'")
        if self.time_constants is not None:
            shortest, longest = self.time_constants
            if not 0.0 < shortest <= longest < math.inf:
                raise ValueError(f"time_constants are {shortest} to {longest}; expected two positive numbers, in order")
            if self.learn_decay != "neuron":
                raise ValueError("time_constants are where learned decays of neurons begin: set learn_decay = 'neuron'")


def integrate(
    current: Current, state: LIFState, decay: Tensor, threshold: Tensor, reset: Reset = "subtract"
) -> tuple[Tensor, Tensor | None]:
    """Return h*[t] = β·h*[t−1] + I[t] − θ·o[t−1] and κ²[t] = β²·κ²[t−1] + Var I[t].

    With reset to zero: h*[t] = β·h*[t−1]·(1 − o[t−1]) + I[t], and κ² likewise.
    """
    if reset == "zero":
        kept = 1.0 - state.spikes
        membrane = decay * (state.membrane * kept) + current.mean
        remembered = None if state.variance is None else state.variance * kept
    else:
        membrane = decay * state.membrane + current.mean - threshold * state.spikes
        remembered = state.variance
    if current.variance is None or remembered is None:
        return membrane, None
    return membrane, (decay * decay) * remembered + current.variance


class LIF(Neurons):
    """Leaky integrate-and-fire neurons; with ``recurrent=n`` a layer of n that hears itself one step later.

    ``shape`` is what constants of single neurons have: [n] of dense neurons, [channels, 1, 1] after a convolution.
    """

    def __init__(
        self,
        variant: Variant = BAYESIAN,
        settings: LIFSettings | None = None,
        recurrent: int | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(variant, None if recurrent is None else Recurrent(recurrent, variant))
        self.settings = settings or LIFSettings()
        self._own = (recurrent,) if shape is None and recurrent is not None else shape
        threshold = torch.tensor(self.settings.threshold)
        if self.settings.learn_threshold:
            self.threshold = nn.Parameter(threshold.repeat(self._shape("threshold", self.settings.learn_threshold)))
        else:
            self.register_buffer("threshold", threshold)
        if self.settings.learn_decay:
            shape = self._shape("decay", self.settings.learn_decay)
            self.decay_logit = nn.Parameter(torch.logit(_first_decays(self.settings, shape)))
        else:
            self.register_buffer("fixed_decay", torch.tensor(self.settings.decay))
        if variant.spread != "none" and self.settings.base_std > 0:
            log_base = torch.tensor(math.log(self.settings.base_std))
            if variant.spread == "learned":
                self.log_base_std: Tensor | None = nn.Parameter(log_base)
            else:
                self.register_buffer("log_base_std", log_base)
        else:
            self.log_base_std = None

    def _shape(self, name: str, learned: Learned) -> tuple[int, ...]:
        """Return the shape of a learned constant: none for the layer, or the neurons' own."""
        if learned != "neuron":
            return ()
        if self._own is None:
            raise ValueError(f"a {name} for each neuron needs their number: give shape=(n,), or (channels, 1, 1)")
        return self._own

    @property
    def decay(self) -> Tensor:
        """β: one, or one for each neuron or channel."""
        return torch.sigmoid(self.decay_logit) if self.settings.learn_decay else cast(Tensor, self.fixed_decay)

    @property
    def base_variance(self) -> Tensor | None:
        """σ_base²: added to κ² at the firing decision, not to its recurrence."""
        return None if self.log_base_std is None else torch.exp(2.0 * self.log_base_std)

    def operators(self, stochastic: bool) -> tuple[str, ...]:
        """Return one operator, by the reset and whether there is noise."""
        return (("Stochastic" if stochastic else "") + ("LIF" if self.settings.reset == "subtract" else "LIFToZero"),)

    def constants(self) -> dict[str, Tensor]:
        """Return β, θ and σ_base²."""
        base = self.base_variance
        base = self.threshold.new_zeros(()) if base is None else base
        return {"decay": self.decay, "threshold": self.threshold, "base_variance": base}

    def at_rest(self, zeros: Tensor, noisy: bool) -> LIFState:
        """Return the state before anything has arrived or fired."""
        return LIFState(zeros, zeros if noisy else None, zeros)

    def step(
        self, arriving: Current, state: LIFState, constants: Mapping[str, Tensor]
    ) -> tuple[LIFState, Tensor, Tensor | None]:
        """Run ``integrate``; the decision has the noise of the threshold, the state has not."""
        threshold = constants["threshold"]
        membrane, variance = integrate(arriving, state, constants["decay"], threshold, self.settings.reset)
        total = None if variance is None else variance + constants["base_variance"]
        return LIFState(membrane, variance, state.spikes), membrane - threshold, total

    def _constants(self, noisy: bool) -> tuple[Tensor | None, ...]:
        """Return β, θ, σ_base², recurrent means and variances, as a pass over a sequence takes them."""
        recurrent = (None, None) if self.recurrent is None else self.recurrent.weights()
        return (self.decay, self.threshold, self.base_variance if noisy else None, *recurrent)

    def _draws_noise(self, current: Current, state: LIFState) -> bool:
        constants = self._constants(current.activity is not None)
        initial = (state.membrane, state.variance, state.spikes)
        return fused_passes(current, None, initial, constants, self.estimator) is not None

    def _through_time(
        self, current: Current, state: LIFState, noise: Tensor | Drawn | None, forced: Tensor | None, run: Run
    ) -> Tensor:
        """Run all steps at once where the hand-written backward pass applies, and step by step elsewhere."""
        to_zero, initial = self.settings.reset == "zero", (state.membrane, state.variance, state.spikes)
        constants = self._constants(current.activity is not None)
        fused = fused_passes(current, noise, initial, constants, self.estimator) is not None
        if forced is not None or (to_zero and not fused):
            return super()._through_time(current, state, noise, forced, run)
        decay, threshold, base, mean, variance = constants
        assert decay is not None, "every layer has one"
        assert threshold is not None, "every layer has one"
        recurrence = None if mean is None else Recurrence(mean, variance)
        out = lif_sequence(current, noise, initial, decay, threshold, base, recurrence, self.estimator, to_zero)
        after = LIFState(out.membrane, out.variance, out.spikes[-1])
        if out.divergence is not None:
            run.divergences[run.name(self)] = out.divergence
        before = torch.cat([state.spikes[None], out.spikes[:-1]]) if run.currents is not None else None
        reached = None if before is None else self._reached(current, before)
        return self._finish(Observation(out.gap, out.decision_variance, out.spikes), after, reached, run)

    def _reached(self, current: Current, before: Tensor) -> Current:
        """Return all that reaches the neurons: from below, and from the layer itself one step later."""
        if self.recurrent is None:
            return current
        return current + self.recurrent.moments(before, *self.recurrent.weights())


def _first_decays(settings: LIFSettings, shape: tuple[int, ...]) -> Tensor:
    """Return learned β at the start: exp(−1/τ) with τ = τ₀ (τ₁/τ₀)^u and u ~ U(0, 1), or the same for all."""
    if settings.time_constants is None:
        return torch.tensor(settings.decay).repeat(shape)
    shortest, longest = settings.time_constants
    return torch.exp(-1.0 / (shortest * (longest / shortest) ** torch.rand(shape)))


class _Readout(nn.Module):
    """The last layer's weights. They are point estimates: noise is for neurons that fire, and logits do not."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, inputs))
        self.bias = nn.Parameter(torch.zeros(classes))
        nn.init.kaiming_uniform_(self.weight, nonlinearity="linear")

    def current(self, spikes: Tensor) -> Tensor:
        """Return W·o + b."""
        return linear_product(spikes, self.weight, self.bias)

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the same read-out with constants."""
        hold(self, weight=self.weight, bias=self.bias)
        return self


class LinearReadout(_Readout):
    """Logits of a binary network: W·o + b."""

    op = "Gemm"

    def forward(self, spikes: Tensor, run: Run) -> Tensor:
        """Return logits [B, classes]."""
        return self.current(needs_spikes(spikes, run.name(self)))


class LeakyMean(nn.Module):
    """A leaky membrane that never fires, averaged over the time steps so far."""

    decay: Tensor
    op = "LeakySum"
    operator: Callable[..., Any] | None = None  # of one time step, in a collapsed network
    constants: tuple[str, ...] = ("decay",)  # of that operator

    def mean(self, current: Tensor, run: Run) -> Tensor:
        """Return the mean after the last time step of this pass."""
        state = cast("ReadoutState | None", run.state_of(self))
        if state is None:
            zeros = torch.zeros_like(current[0] if run.sequence else current)
            state = ReadoutState(zeros, zeros)
        if self.operator is None:
            steps = current if run.sequence else current.unsqueeze(0)
            state = ReadoutState(*leaky_sum(steps, state.membrane, state.total, self.decay))
        else:
            for arriving in current.unbind(0) if run.sequence else (current,):
                constants = (getattr(self, name) for name in self.constants)
                state = ReadoutState(*self.operator(arriving, state.membrane, state.total, *constants))
        run.keep(self, state)
        return state.total / (run.step + (current.shape[0] if run.sequence else 1))

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the same layer, run by the operator that a file has."""
        self.operator = choice.operator(self.op)
        return self


class LeakyReadout(LeakyMean, _Readout):
    """Logits of a spiking network: a leaky membrane that never fires, averaged over the time steps so far."""

    def __init__(self, inputs: int, classes: int, decay: float = DEFAULT_DECAY) -> None:
        _Readout.__init__(self, inputs, classes)
        self.register_buffer("decay", torch.tensor(decay))

    def forward(self, spikes: Tensor, run: Run) -> Tensor:
        """Return logits [B, classes] after the last time step of this pass."""
        steps = needs_spikes(spikes, run.name(self))
        if self.operator is not None:
            return self.mean(self.current(steps), run)
        steps = steps if run.sequence else steps.unsqueeze(0)
        state = cast("ReadoutState | None", run.state_of(self))
        if state is None:
            zeros = steps.new_zeros((steps.shape[1], len(self.weight)))
            state = ReadoutState(zeros, zeros)
        if not readout_applies(steps, self.weight, self.bias, *state, self.decay):
            return self.mean(self.current(steps if run.sequence else steps[0]), run)
        membrane, total = leaky_readout(steps, self.weight, self.bias, *state, self.decay)
        run.keep(self, ReadoutState(membrane, total))
        return total / (run.step + len(steps))

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the same read-out with constants, run by the operator that a file has."""
        _Readout.collapsed(self, choice)
        return super().collapsed(choice)
