"""What every network is: a module that computes logits from layers, and says what its neurons did."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn

from axonnx.models.maths.current import Current, stack
from axonnx.models.maths.firing import MEAN_FIELD, Fire
from axonnx.models.maths.kl import Divergence
from axonnx.models.regulariser import Regulariser
from axonnx.models.run import Observation, Run, State, stack_observations

# Layers of torch that count axes from a batch [B, …].
PER_SAMPLE = (nn.Flatten, nn.MaxPool2d, nn.AvgPool2d, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@dataclass(frozen=True)
class Output:
    """What a pass gives: logits [B, classes], the state after it, and what each layer of neurons did.

    ``divergences``: what layers took along for the regulariser, which computes it for the others. ``currents``: what
    reached each layer of neurons, where the network keeps that.
    """

    logits: Tensor
    state: State
    observations: dict[str, Observation]
    divergences: dict[str, Divergence] = field(default_factory=dict)
    currents: dict[str, Current] | None = None

    def firing_rates(self) -> dict[str, Tensor]:
        """Return the share of neurons that fired, for each layer."""
        return {name: seen.spikes.detach().mean() for name, seen in self.observations.items()}


class Network(nn.Module, ABC):
    """Layers, and ``compute``: how they are wired. Everything else follows from that one method."""

    keeps_currents: bool = False  # whether a pass keeps what reached its neurons

    @abstractmethod
    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Compute logits [B, classes] from the input, calling each layer as ``layer(x, run)``."""

    def regulariser(self, output: Output, kind: Regulariser | None = None) -> Tensor:
        """Return the regularising term of the loss, before its weight λ."""
        return (kind or Regulariser())(self, output)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Return ``weights`` and ``scales`` (log σ of weights and thresholds), which learn at different rates."""
        groups: dict[str, list[nn.Parameter]] = {"weights": [], "scales": []}
        for name, parameter in self.named_parameters():
            kind = "scales" if name.endswith(("log_std", "log_base_std")) else "weights"
            groups[kind].append(parameter)
        return groups


class BinaryNetwork(Network):
    """A network without time: input [B, …]."""

    def forward(self, x: Tensor, fire: Fire = MEAN_FIELD) -> Output:
        """Run one pass."""
        run = Run(self, fire)
        return Output(self.compute(x, run), run.state(0), run.observations, currents=run.currents)


class SpikingNetwork(Network):
    """A network in time: input [T, B, …], or [B, …] for one step.

    ``forward`` runs layer by layer, each over the whole sequence. A network in which a layer hears a later
    one (of the step before) sets ``layerwise = False`` and runs step by step.
    """

    layerwise: bool = True

    def forward(self, events: Tensor, fire: Fire = MEAN_FIELD, state: State | None = None) -> Output:
        """Run a sequence, from rest or from the ``state`` in which an earlier one ended."""
        if events.dim() < 3 or events.shape[0] == 0:
            raise ValueError(f"events have shape {list(events.shape)}; expected [T, B, …] with at least one time step")
        if not self.layerwise:
            return self._stepwise(events, fire, state)
        run = Run(self, fire, state, sequence=True)
        with time_as_batch(self):
            logits, length = self.compute(events, run), events.shape[0]
        return Output(logits, run.state(length), run.observations, run.divergences, run.currents)

    def step(self, x: Tensor, state: State | None = None, fire: Fire = MEAN_FIELD) -> Output:
        """Run one time step [B, …]; the logits are the running mean."""
        run = Run(self, fire, state)
        return Output(self.compute(x, run), run.state(1), run.observations, run.divergences, run.currents)

    def _stepwise(self, events: Tensor, fire: Fire, state: State | None) -> Output:
        outputs: list[Output] = []
        for x in events.unbind(0):
            outputs.append(self.step(x, state, fire))
            state = outputs[-1].state
        names = outputs[0].observations
        stacked = {name: stack_observations([output.observations[name] for output in outputs]) for name in names}
        currents = _stack_currents([output.currents for output in outputs])
        return Output(outputs[-1].logits, outputs[-1].state, stacked, currents=currents)


@contextmanager
def time_as_batch(network: nn.Module) -> Iterator[None]:
    """While the block lasts, layers that see one sample at a time take [T, B, …] as T·B samples."""
    with ExitStack() as stack:
        for module in network.modules():
            if isinstance(module, PER_SAMPLE):
                sizes: list[tuple[int, int]] = []
                stack.enter_context(module.register_forward_pre_hook(partial(_fold, sizes)))
                stack.enter_context(module.register_forward_hook(partial(_unfold, sizes)))
        yield


def _fold(sizes: list[tuple[int, int]], _module: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    sizes.append((given[0].shape[0], given[0].shape[1]))
    return (given[0].flatten(0, 1), *given[1:])


def _unfold(sizes: list[tuple[int, int]], _module: nn.Module, _given: Any, out: Tensor) -> Tensor:
    unfolded: Tensor = out.unflatten(0, sizes.pop())
    return unfolded


def _stack_currents(steps: Sequence[dict[str, Current] | None]) -> dict[str, Current] | None:
    """Stack the currents of single time steps along a time axis."""
    kept = [step for step in steps if step is not None]
    return {name: stack([step[name] for step in kept]) for name in kept[0]} if kept else None
