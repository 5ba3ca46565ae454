"""What every network is: a module that computes logits from layers, and says what its neurons did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from axonnx.models.firing import MEAN_FIELD, Fire
from axonnx.models.kl import kl_of_neurons, kl_of_weights, quadratic_of_neurons
from axonnx.models.posterior import GaussianPosterior
from axonnx.models.run import Observation, Run, State, stack_observations

Regulariser = Literal["neuron", "weight", "quadratic"]


@dataclass(frozen=True)
class Output:
    """What a pass gives: logits [B, classes], the state after it, and what each layer of neurons did.

    ``divergences``: ½ Σ ln(1 + (h* − θ)²/κ²) of the layers that took it along; ``kl`` computes it for the others.
    """

    logits: Tensor
    state: State
    observations: dict[str, Observation]
    divergences: dict[str, Tensor] = field(default_factory=dict)

    def firing_rates(self) -> dict[str, Tensor]:
        """The share of neurons that fired, for each layer."""
        return {name: seen.spikes.detach().mean() for name, seen in self.observations.items()}

    def kl(self, kind: Literal["neuron", "quadratic"] = "neuron") -> Tensor:
        """KL per neuron (or its quadratic form): sum over neurons and steps, mean over the batch."""
        term = kl_of_neurons if kind == "neuron" else quadratic_of_neurons
        batch = self.logits.shape[0]
        known = self.divergences if kind == "neuron" else {}
        terms = [
            known[name] / batch if name in known else term(seen.gap, seen.variance, batch)
            for name, seen in self.observations.items()
            if seen.variance is not None
        ]
        return torch.stack(terms).sum() if terms else self.logits.new_zeros(())


class Network(nn.Module, ABC):
    """Layers, and ``compute``: how they are wired. Everything else follows from that one method."""

    @abstractmethod
    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Logits [B, classes] from the input, calling each layer as ``layer(x, run)``."""

    def regulariser(self, output: Output, kind: Regulariser = "neuron") -> Tensor:
        """The KL term of the loss, before its weight λ."""
        if kind != "weight":
            return output.kl(kind)
        terms = [kl_of_weights(module) for module in self.modules() if isinstance(module, GaussianPosterior)]
        return torch.stack(terms).sum() if terms else output.logits.new_zeros(())

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """``weights`` and ``scales`` (log σ of weights and thresholds), which learn at different rates."""
        groups: dict[str, list[nn.Parameter]] = {"weights": [], "scales": []}
        for name, parameter in self.named_parameters():
            kind = "scales" if name.endswith(("log_std", "log_base_std")) else "weights"
            groups[kind].append(parameter)
        return groups


class BinaryNetwork(Network):
    """A network without time: input [B, …]."""

    def forward(self, x: Tensor, fire: Fire = MEAN_FIELD) -> Output:
        """One pass."""
        run = Run(self, fire)
        return Output(self.compute(x, run), run.state(0), run.observations)


class SpikingNetwork(Network):
    """A network in time: input [T, B, …], or [B, …] for one step.

    ``forward`` runs layer by layer, each over the whole sequence. A network in which a layer hears a later
    one (of the step before) sets ``layerwise = False`` and runs step by step.
    """

    layerwise: bool = True

    def forward(self, events: Tensor, fire: Fire = MEAN_FIELD, state: State | None = None) -> Output:
        """A sequence, from rest or from the ``state`` in which an earlier one ended."""
        if events.dim() < 3 or events.shape[0] == 0:
            raise ValueError(f"events have shape {list(events.shape)}; expected [T, B, …] with at least one time step")
        if not self.layerwise:
            return self._stepwise(events, fire, state)
        run = Run(self, fire, state, sequence=True)
        return Output(self.compute(events, run), run.state(events.shape[0]), run.observations, run.divergences)

    def step(self, x: Tensor, state: State | None = None, fire: Fire = MEAN_FIELD) -> Output:
        """One time step [B, …]; the logits are the running mean."""
        run = Run(self, fire, state)
        return Output(self.compute(x, run), run.state(1), run.observations, run.divergences)

    def _stepwise(self, events: Tensor, fire: Fire, state: State | None) -> Output:
        outputs: list[Output] = []
        for x in events.unbind(0):
            outputs.append(self.step(x, state, fire))
            state = outputs[-1].state
        names = outputs[0].observations
        stacked = {name: stack_observations([output.observations[name] for output in outputs]) for name in names}
        return Output(outputs[-1].logits, outputs[-1].state, stacked)
