"""Neurons as other libraries define them: any reset, constants of single neurons, synaptic currents, adaptation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from axonnx.models.collapsing import Choice
from axonnx.models.maths.current import Current, needs_current
from axonnx.models.neurons import LeakyMean, Neurons
from axonnx.models.run import GeneralState, MaximumState, ReadoutState, Run, SynapticState
from axonnx.models.synapses import Recurrent
from axonnx.models.variant import BAYESIAN, Variant


class Dynamics(NamedTuple):
    """Constants of neurons, each one for all or one for each.

    A spike zeroes its membrane (``zeroed`` 1) or takes an amount from it (``taken``) before it decays: what other
    libraries call a reset in the same step. One step later it zeroes (``late_zeroed``) or takes (``late_taken``) from
    what has decayed and received its current.
    """

    decay: Tensor
    threshold: Tensor
    zeroed: Tensor
    taken: Tensor
    late_zeroed: Tensor
    late_taken: Tensor


class Adaptation(NamedTuple):
    """a' = δ a + c h + b o: lowers the current by g a' and raises the threshold by f a'."""

    adaptation_decay: Tensor
    membrane_share: Tensor
    spike_share: Tensor
    current_gain: Tensor
    threshold_gain: Tensor


def charge(current: Tensor, membrane: Tensor, spikes: Tensor, p: Dynamics) -> Tensor:
    """Return β (h (1 − z o) − r o) + I."""
    return p.decay * (membrane * (1.0 - p.zeroed * spikes) - p.taken * spikes) + current


def reset_late(charged: Tensor, spikes: Tensor, p: Dynamics) -> Tensor:
    """Return x (1 − Z o) − R o."""
    return charged * (1.0 - p.late_zeroed * spikes) - p.late_taken * spikes


def adapt(adaptation: Tensor, membrane: Tensor, spikes: Tensor, p: Adaptation) -> Tensor:
    """Return a' = δ a + c h + b o."""
    return p.adaptation_decay * adaptation + p.membrane_share * membrane + p.spike_share * spikes


class LeakyCurrent(nn.Module):
    """i' = α i + I: what synapses with a time constant of their own give, or a hidden leaky integrator.

    Of noise the variance is kept, α² v + Var I; that it is correlated from step to step is neglected.
    """

    decay: Tensor
    op = "LeakyCurrent"
    operator: Callable[..., Any] | None = None  # of one time step, in a collapsed network, which has no noise here

    def __init__(self, decay: Tensor) -> None:
        super().__init__()
        self.register_buffer("decay", decay)

    def forward(self, current: Current, run: Run) -> Current:
        """Return what is left of all currents so far."""
        current = needs_current(current, run.name(self))
        variance = None if self.operator is not None else current.variance
        means, variances = (_in_steps(part, run) for part in (current.mean, variance))
        state = cast("SynapticState | None", run.state_of(self))
        level = torch.zeros_like(means[0]) if state is None else state.synaptic
        spread = None if variance is None else torch.zeros_like(means[0]) if state is None else state.variance
        levels, spreads = [], []
        for arriving in means:
            level = (self.operator or leak)(arriving, level, self.decay)
            levels.append(level)
        for arriving in variances if spread is not None else ():
            spread = leak(arriving, cast(Tensor, spread), self.decay.square())
            spreads.append(spread)
        run.keep(self, SynapticState(level, spread))
        if not run.sequence:
            return Current(level, spread if spreads else None)
        return Current(torch.stack(levels), torch.stack(spreads) if spreads else None)

    def collapsed(self, choice: Choice) -> nn.Module:
        """Return the same layer, run by the operator that a file has."""
        self.operator = choice.operator(self.op)
        return self


def leak(arriving: Tensor, level: Tensor, decay: Tensor) -> Tensor:
    """Return α i + I."""
    return decay * level + arriving


def _in_steps(part: Tensor | None, run: Run) -> tuple[Tensor, ...]:
    """Return the time steps of a pass."""
    if part is None:
        return ()
    return part.unbind(0) if run.sequence else (part,)


class GeneralLIF(Neurons):
    """Leaky integrate-and-fire neurons of any ``Dynamics``; ``recurrent=n``: a layer of n that hears itself.

    ``synaptic_decay``: all that reaches them, from below and from themselves, is a current that decays.
    With ``adaptation`` their thresholds rise, or their currents fall, after spikes.
    """

    synaptic_decay: Tensor | None

    def __init__(
        self,
        dynamics: Dynamics,
        variant: Variant = BAYESIAN,
        *,
        synaptic_decay: Tensor | None = None,
        adaptation: Adaptation | None = None,
        recurrent: int | None = None,
    ) -> None:
        super().__init__(variant, None if recurrent is None else Recurrent(recurrent, variant, self_connections=True))
        self.moving_threshold = adaptation is not None
        self.register_buffer("synaptic_decay", synaptic_decay)
        for name, value in {**dynamics._asdict(), **(adaptation._asdict() if adaptation else {})}.items():
            self.register_buffer(name, value)

    def operators(self, stochastic: bool) -> tuple[str, ...]:
        """Return the neurons, behind a current that decays if there is one."""
        if stochastic:
            raise ValueError("neurons of any reset (GeneralLIF) have no stochastic form; collapse with mfa or sampled")
        neurons = "GeneralLIF" if self.adaptation is None else "AdaptiveLIF"
        return (neurons,) if self.synaptic_decay is None else ("LeakyCurrent", neurons)

    def constants(self) -> dict[str, Tensor]:
        """Return what the layer holds, unchanged."""
        return dict(self.named_buffers(recurse=False, remove_duplicate=False))

    @property
    def dynamics(self) -> Dynamics:
        """Constants of the neurons."""
        return Dynamics(*(cast(Tensor, getattr(self, name)) for name in Dynamics._fields))

    @property
    def adaptation(self) -> Adaptation | None:
        """Constants of the adaptation; None without it."""
        if not self.moving_threshold:
            return None
        return Adaptation(*(cast(Tensor, getattr(self, name)) for name in Adaptation._fields))

    def at_rest(self, zeros: Tensor, noisy: bool) -> GeneralState:
        """Return the state before anything has arrived or fired."""
        spread = zeros if noisy else None
        state = GeneralState(zeros, spread, zeros, adaptation=zeros if self.moving_threshold else None)
        return state if self.synaptic_decay is None else state._replace(synaptic=zeros, synaptic_variance=spread)

    def step(
        self, arriving: Current, state: GeneralState, constants: Mapping[str, Tensor]
    ) -> tuple[GeneralState, Tensor, Tensor | None]:
        """Compute h' = (β (h (1 − z o) − r o) + i' − g a') (1 − Z o) − R o; o' = 1 where h' ≥ θ + f a'."""
        current = self._filtered(arriving, state)
        p, spikes = self.dynamics, state.spikes
        charged, level = charge(current.mean, state.membrane, spikes, p), p.threshold
        by, adapted = self.adaptation, state.adaptation
        if by is not None and adapted is not None:
            adapted = adapt(adapted, state.membrane, spikes, by)
            charged = charged - by.current_gain * adapted
            level = level + by.threshold_gain * adapted
        membrane = reset_late(charged, spikes, p)
        variance = self._variance(current, state, p)
        after = GeneralState(membrane, variance, spikes, adaptation=adapted)
        if self.synaptic_decay is not None:
            after = after._replace(synaptic=current.mean, synaptic_variance=current.variance)
        return after, membrane - level, variance

    def _filtered(self, arriving: Current, state: GeneralState) -> Current:
        """Return i' = α i + I, and its variance α² v + Var I."""
        if state.synaptic is None or self.synaptic_decay is None:
            return arriving
        alpha, variance = self.synaptic_decay, arriving.variance
        if state.synaptic_variance is not None:
            left = alpha.square() * state.synaptic_variance
            variance = left if variance is None else left + variance
        return Current(alpha * state.synaptic + arriving.mean, variance)

    def _variance(self, current: Current, state: GeneralState, p: Dynamics) -> Tensor | None:
        """Return κ²' = (β² κ² (1 − z o) + Var I) (1 − Z o)."""
        if state.variance is None:
            return None
        arriving = current.variance
        kept = p.decay.square() * (state.variance * (1.0 - p.zeroed * state.spikes))
        return (kept if arriving is None else kept + arriving) * (1.0 - p.late_zeroed * state.spikes)


def read_last(current: Tensor, membrane: Tensor, _total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    """Return h' = β h + I, and the same as the last membrane."""
    membrane = decay * membrane + current
    return membrane, membrane * 1.0


def read_maximum(
    current: Tensor, membrane: Tensor, total: Tensor, begun: Tensor, decay: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return h' = β h + I, the largest membrane so far, and that there is one."""
    membrane = decay * membrane + current
    kept = (1.0 - (membrane >= total).to(total.dtype)) * begun  # products, so that even signs of zeros are the file's
    return membrane, kept * total + (1.0 - kept) * membrane, begun + (1.0 - begun)


class DirectReadout(LeakyMean):
    """Logits without weights: what arrives, a current or spikes, charges a leaky membrane, averaged over time.

    With a decay of 0 logits are the means of what arrived: of spikes, the share of steps in which a neuron fired. By
    the rules "last" and "maximum" logits are the last membrane, or the largest one.

    Args:
        decay: Decay of the membrane.
        scale: Factor of what arrives, 1 / temperature, so that softmax(logits) are probabilities.
        rule: How the source of an imported network decides: "spike count", "sum", "mean", "last" or "maximum".
        fitted: Number of samples on which the scale was fitted.
    """

    def __init__(self, decay: Tensor, scale: float = 1.0, rule: str | None = None, fitted: int = 0) -> None:
        super().__init__()
        if not 0.0 < scale < float("inf"):
            raise ValueError(f"a read-out has the scale {scale}; expected a number above 0")
        self.scale, self.rule, self.fitted = float(scale), rule, int(fitted)
        self.op = {"last": "LeakyLast", "maximum": "LeakyMaximum"}.get(str(rule), LeakyMean.op)
        self.register_buffer("decay", decay)

    def forward(self, x: Tensor | Current, run: Run) -> Tensor:
        """Return logits [B, classes] after the last time step of this pass."""
        arriving = x.mean if isinstance(x, Current) else x
        current = arriving if self.scale == 1.0 else arriving * self.scale
        return self.mean(current, run) if self.op == LeakyMean.op else self._chosen(current, run)

    def _chosen(self, current: Tensor, run: Run) -> Tensor:
        """Return the last membrane so far, or the largest one."""
        steps = _in_steps(current, run)
        zeros = torch.zeros_like(steps[0])
        last = self.op == "LeakyLast"
        advance: Callable[..., Any] = self.operator or (read_last if last else read_maximum)
        state: Any = run.state_of(self)
        if state is None:
            state = ReadoutState(zeros, zeros) if last else MaximumState(zeros, zeros, zeros)
        for arriving in steps:
            state = type(state)(*advance(arriving, *state, self.decay))
        run.keep(self, state)
        total: Tensor = state.total
        return total
