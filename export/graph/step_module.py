"""One time step of a collapsed network as a pure function of tensors: what is captured and written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.models import Network, SpikingNetwork
from axonnx.models.checking import READOUTS
from axonnx.models.run import LayerState, Run, State, layer_state
from axonnx.runtime.format.names import tensor_of


@dataclass(frozen=True)
class Slot:
    """One tensor of a network's state: ``membrane/<layer>`` and the like, with its shape without the batch."""

    layer: str
    field: str
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return tensor_of(self.field, self.layer)


@dataclass(frozen=True)
class Signature:
    """Names and shapes of everything that goes in and out of a step."""

    input_shape: tuple[int, ...]
    states: tuple[Slot, ...]
    noises: tuple[Slot, ...]
    traces: tuple[Slot, ...]
    readout: str
    spiking: bool
    clocked: bool


class StepModule(nn.Module):
    """``(x, states, noises, clock) → (states, logits or nothing, traces)`` around a collapsed network."""

    def __init__(self, network: Network, signature: Signature) -> None:
        super().__init__()
        self.network = network
        self.signature = signature

    def forward(
        self, x: Tensor, states: Sequence[Tensor], noises: Sequence[Tensor], clock: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return new states, logits (binary networks only), and spikes and membranes of every layer."""
        run = self._run(states, noises, clock)
        seen: list[Tensor] = []
        readout = self.network.get_submodule(self.signature.readout)
        handle = readout.register_forward_hook(lambda _m, _i, out: seen.append(out))
        try:
            logits = self.network.compute(x, run)
        finally:
            handle.remove()
        if not any(out is logits for out in seen):
            raise AxonnxError("compute() changes what its read-out returns; it must return the read-out's logits as is")
        after = [_pick(run.after[slot.layer], slot.field) for slot in self.signature.states]
        traces = [getattr(run.observations[slot.layer], _SEEN[slot.field]) for slot in self.signature.traces]
        return after, [] if self.signature.spiking else [logits], traces

    def _run(self, states: Sequence[Tensor], noises: Sequence[Tensor], clock: Tensor | None) -> Run:
        layers: dict[str, dict[str, Tensor]] = {}
        for slot, tensor in zip(self.signature.states, states, strict=True):
            layers.setdefault(slot.layer, {})[slot.field] = tensor
        state = State(0, {name: layer_state(fields) for name, fields in layers.items()})
        drawn = {slot.layer: tensor for slot, tensor in zip(self.signature.noises, noises, strict=True)}
        return Run(self.network, _Noise(drawn), state, clock=clock)


_SEEN = {"spikes": "spikes", "membrane": "gap"}  # a collapsed layer's observation has its membrane as gap


def signature_of(network: Network, input_shape: tuple[int, ...]) -> Signature:
    """Run one step on silence to learn which states there are and what shapes they have."""
    spiking = isinstance(network, SpikingNetwork)
    run = Run(network, _Noise({}))
    with torch.no_grad():
        network.compute(torch.zeros(1, *input_shape), run)
    states = [
        Slot(name, field, tuple(value.shape[1:]))
        for name, state in run.after.items()
        for field, value in _fields(state)
    ]
    neurons = {name: tuple(seen.spikes.shape[1:]) for name, seen in run.observations.items()}
    noisy = [name for name in neurons if getattr(network.get_submodule(name), "stochastic", False)]
    clocked = any(getattr(module, "step_scale", None) is not None for module in network.modules())
    fields = ("membrane", "spikes") if spiking else ("spikes",)
    return Signature(
        input_shape,
        tuple(states),
        tuple(Slot(name, "noise", neurons[name]) for name in noisy),
        tuple(Slot(name, field, shape) for name, shape in neurons.items() for field in fields),
        _only_readout(network),
        spiking,
        clocked,
    )


def example(signature: Signature, batch: int = 2) -> tuple[Any, ...]:
    """Arguments of a ``StepModule`` with silence in them."""
    zeros = [torch.zeros(batch, *slot.shape) for slot in signature.states]
    noises = [torch.zeros(batch, *slot.shape) for slot in signature.noises]
    clock = torch.zeros(1, dtype=torch.int64) if signature.clocked else None
    return torch.zeros(batch, *signature.input_shape), zeros, noises, clock


@dataclass(frozen=True)
class _Noise:
    """The noise of one step, as it is; zeros where none is named."""

    drawn: dict[str, Tensor]

    def noise(self, name: str, like: Tensor, step: int) -> Tensor:
        """Return the layer's noise."""
        return self.drawn[name] if name in self.drawn else torch.zeros_like(like)

    def forced(self, name: str, like: Tensor, step: int) -> None:
        """Nothing."""


def _fields(state: LayerState) -> list[tuple[str, Tensor]]:
    return [(field, value) for field, value in state._asdict().items() if value is not None]


def _pick(state: LayerState, field: str) -> Tensor:
    value: Tensor = getattr(state, field)
    return value


def _only_readout(network: nn.Module) -> str:
    names: list[str] = [name for name, module in network.named_modules() if isinstance(module, READOUTS)]
    if len(names) != 1:
        raise AxonnxError(f"the network has {len(names)} read-outs; exactly one can be exported")
    return names[0]
