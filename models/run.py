"""One pass through a network: how its neurons fire, the states they keep, and what they did."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from axonnx.models.maths.current import Current
from axonnx.models.maths.firing import Drawn, Fire, Sample
from axonnx.models.maths.kl import Divergence


class LIFState(NamedTuple):
    """What a layer of spiking neurons carries from one time step to the next, each [B, …]."""

    membrane: Tensor
    variance: Tensor | None
    spikes: Tensor


class GeneralState(NamedTuple):
    """As ``LIFState``, of neurons that may have a synaptic current and may adapt to their spikes."""

    membrane: Tensor
    variance: Tensor | None
    spikes: Tensor
    synaptic: Tensor | None = None
    synaptic_variance: Tensor | None = None
    adaptation: Tensor | None = None


class SynapticState(NamedTuple):
    """A current that decays, and its variance, each [B, …]."""

    synaptic: Tensor
    variance: Tensor | None


class ReadoutState(NamedTuple):
    """A read-out's membrane and the sum of its membranes so far, or the last one, each [B, classes]."""

    membrane: Tensor
    total: Tensor


class MaximumState(NamedTuple):
    """A read-out's membrane, the largest of its membranes so far, and 1 if there is one, each [B, classes]."""

    membrane: Tensor
    total: Tensor
    begun: Tensor


class DelayState(NamedTuple):
    """The last D frames of a delay line, the newest first: [B, D · C, …]."""

    delayed: Tensor


LayerState = NamedTuple  # any of them: a kind of neurons may bring a state of its own


def layer_state(values: Mapping[str, Tensor]) -> LayerState:
    """Make a state that has just these fields, in this order."""
    return cast(LayerState, namedtuple("LayerState", values)(**values))


@dataclass(frozen=True)
class State:
    """The state of a whole network between two time steps, as a value."""

    step: int = 0
    layers: Mapping[str, LayerState] = field(default_factory=dict)

    def detach(self) -> State:
        """Return the same state, cut from the graph that made it."""
        return State(self.step, {name: _detach(layer) for name, layer in self.layers.items()})


class Observation:
    """What a layer of neurons did in a pass: h* − θ, κ² at the decision, and the spikes, [(T,) B, …].

    ``membrane``: h*, of neurons whose threshold moves; of all others it is the gap and θ together. A gap or
    κ² that is given as a function is computed when it is asked for; a gap that was kept as float16 is read as float32.
    """

    def __init__(
        self,
        gap: Tensor | Callable[[], Tensor],
        variance: Tensor | Callable[[], Tensor | None] | None,
        spikes: Tensor,
        membrane: Tensor | None = None,
    ) -> None:
        self._gap, self._variance, self.spikes, self.membrane = gap, variance, spikes, membrane

    @property
    def noisy(self) -> bool:
        """Whether the layer has noise: whether there is a variance."""
        return self._variance is not None

    @cached_property
    def gap(self) -> Tensor:
        """The gap h* − θ."""
        gap = self._gap() if callable(self._gap) else self._gap
        return gap.float() if gap.dtype == torch.float16 else gap

    @cached_property
    def variance(self) -> Tensor | None:
        """κ² at the decision; None without noise."""
        return self._variance() if callable(self._variance) else self._variance

    def first(self) -> Observation:
        """Return the first time step alone, without an axis for time."""
        variance = self.variance
        return Observation(
            self.gap[0],
            None if variance is None else variance[0],
            self.spikes[0],
            None if self.membrane is None else self.membrane[0],
        )


def stack_observations(steps: Sequence[Observation]) -> Observation:
    """Stack the observations of single time steps along a time axis."""
    parts = [[seen.variance for seen in steps], [seen.membrane for seen in steps]]
    stacked = [None if part[0] is None else torch.stack([x for x in part if x is not None]) for part in parts]
    gap, spikes = torch.stack([seen.gap for seen in steps]), torch.stack([seen.spikes for seen in steps])
    return Observation(gap, stacked[0], spikes, stacked[1])


class Run:
    """The ledger of one pass. Layers read their state from it and write down the next.

    ``sequence`` says whether the first axis of every tensor is time; without it a pass is one time step of a
    spiking network, or a whole pass of a binary one. ``clock`` is the time step as a tensor [1], for a traced
    network, which must not have it as a constant.
    """

    def __init__(
        self,
        network: nn.Module,
        fire: Fire,
        state: State | None = None,
        sequence: bool = False,
        clock: Tensor | None = None,
    ) -> None:
        self.fire = fire
        self.clock = clock
        self.sequence = sequence
        self.before = State() if state is None else state
        self.after: dict[str, LayerState] = {}
        self.observations: dict[str, Observation] = {}
        self.divergences: dict[str, Divergence] = {}
        self.currents: dict[str, Current] | None = {} if getattr(network, "keeps_currents", False) else None
        self._names: dict[int, str] = {id(module): name for name, module in network.named_modules()}

    @property
    def step(self) -> int:
        """The index of the first time step of this pass."""
        return self.before.step

    def name(self, layer: nn.Module) -> str:
        """Return the layer's name in the network that runs."""
        if id(layer) not in self._names:
            raise ValueError(f"{type(layer).__name__} is not part of the network that runs: assign it to an attribute")
        return self._names[id(layer)]

    def noise(self, layer: nn.Module, like: Tensor) -> Tensor | None:
        """Return the noise that the layer's membranes get in this pass, if any."""
        return self.fire.noise(self.name(layer), like, self.step)

    def drawn(self, layer: nn.Module, like: Tensor) -> Tensor | Drawn | None:
        """Return the noise, or its seed, for a layer whose pass can draw it where it is used."""
        return self.fire.drawn(self.step) if isinstance(self.fire, Sample) else self.noise(layer, like)

    def forced(self, layer: nn.Module, like: Tensor) -> Tensor | None:
        """Return the spikes that the layer is made to give in this pass, if any."""
        return self.fire.forced(self.name(layer), like, self.step)

    def state_of(self, layer: nn.Module) -> LayerState | None:
        """Return the layer's state before this pass; None at the very start."""
        return self.before.layers.get(self.name(layer))

    def keep(self, layer: nn.Module, state: LayerState) -> None:
        """Write down the layer's state after this pass."""
        self._write(self.after, layer, state)

    def observe(self, layer: nn.Module, observation: Observation) -> None:
        """Write down what the layer did."""
        self._write(self.observations, layer, observation)

    def state(self, steps: int) -> State:
        """Return the network's state ``steps`` time steps later."""
        return State(self.before.step + steps, dict(self.after))

    def _write(self, book: dict[str, Any], layer: nn.Module, value: object) -> None:
        name = self.name(layer)
        if name in book:
            raise ValueError(
                f"layer {name!r} ran twice in one pass; a layer of neurons keeps one state: use two layers"
            )
        book[name] = value


def _detach(state: LayerState) -> LayerState:
    values: Any = (None if value is None else value.detach() for value in state)
    return type(state)(*values)
