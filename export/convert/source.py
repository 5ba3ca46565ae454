"""What is imported, ready to run beside what it became."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.known_neurons import NAMES, StandIn, holds_neurons, library_of, with_stand_ins
from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.running import Form, find_form, run
from axonnx.export.convert.wiring import Wiring
from axonnx.models.neurons import Neurons


@dataclass(frozen=True)
class Seen:
    """What a source did.

    Attributes:
        spikes: Spikes [T, B, …] of every layer of neurons, by its name in the plan.
        outputs: What is read out, [T, B, classes].
        result: What the source itself made of these, [B, classes], if it returns one output for all time steps.
    """

    spikes: Mapping[str, Tensor]
    outputs: Tensor
    result: Tensor | None = None

    def over_time(self, rule: str | None) -> Tensor:
        """Return what the source decides by, [B, classes]: its own result, or its outputs by ``rule``."""
        if self.result is not None:
            return self.result
        steps = self.outputs.double()
        return {"last": steps[-1], "maximum": steps.amax(0)}.get(str(rule), steps.mean(0))


class Source(Protocol):
    """A network of another library."""

    @property
    def plan(self) -> Plan:
        """What it comes to."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def repeats(self) -> int:
        """Time steps in which it shows one image by itself; 0 where it takes every step from outside."""

    @property
    def proves(self) -> str:
        """What equality with it proves, if that is not the network itself."""

    def observe(self, x: Tensor) -> Seen:
        """Run it on [T, B, C, H, W], from rest."""

    def with_weights(self, weights: Mapping[str, Tensor]) -> Source:
        """Return a copy that has the weights and biases of our synapses, by their names in the plan."""


@dataclass(frozen=True)
class TorchSource:
    """A live torch module of snnTorch, SpikingJelly or Norse."""

    network: nn.Module
    form: Form
    plan: Plan
    proves = ""

    @property
    def repeats(self) -> int:
        """Time steps of its own loop over an image."""
        return self.form.repeats

    @property
    def name(self) -> str:
        """The library and the class."""
        libraries = {library_of(module) for module in self.network.modules() if holds_neurons(module)} & set(NAMES)
        known = ", ".join(NAMES[name] for name in sorted(map(str, libraries))) or "Axonnx"
        return f"{type(self.network).__name__} ({known})"

    def observe(self, x: Tensor) -> Seen:
        """Run as its authors would."""
        seen = run(self.network, x, self.form)
        spikes = {
            layer.name: _fitting(seen.spikes[self.plan.sources[layer.name]], self.plan.shapes[layer.name])
            for layer in self.plan.layers
            if layer.kind == "neurons"
        }
        last = self.plan.layer(self.plan.layers[-1].of[0])
        while last.kind in ("flatten", "dropout"):
            last = self.plan.layer(last.of[0])
        result = seen.outputs[-1].flatten(1) if self.plan.rule and self.form.sequence else None
        if last.name in spikes:
            return Seen(spikes, spikes[last.name].flatten(2), result)
        calls = [call.outputs[self.plan.read] for call in seen.trace.of(self.plan.sources[last.name])]
        read = calls[0] if len(calls) == 1 else torch.stack(calls)
        return Seen(spikes, _fitting(read, self.plan.shapes[last.name]), result)

    def with_weights(self, weights: Mapping[str, Tensor]) -> TorchSource:
        """Weights as they are in the file, where the source keeps its own."""
        network = copy.deepcopy(self.network)
        for layer in self.plan.layers:
            source = self.plan.sources[layer.name]
            if layer.name in self.plan.merged:
                self._put_merged(network, layer.name, source, weights)
            elif layer.kind in SYNAPSES and source:
                self._put(network, layer.name, source, weights)
            elif layer.kind == "neurons" and f"{layer.name}.recurrent_weight" in weights:
                _put_recurrent(network.get_submodule(source), weights[f"{layer.name}.recurrent_weight"])
        return TorchSource(network, self.form, self.plan)

    def _put_merged(self, network: nn.Module, name: str, source: str, weights: Mapping[str, Tensor]) -> None:
        """Put the product of two dense layers into the first; the second passes on what it hears, with its bias."""
        behind, biased = self.plan.merged[name]
        outputs, inputs = weights[f"{name}.weight"].shape
        _replace(network, source, nn.Linear(inputs, outputs))
        self._put(network, name, source, weights)
        second = nn.Linear(outputs, outputs, bias=biased is not None)
        second.weight = nn.Parameter(torch.eye(outputs))
        if biased is not None:
            second.bias = nn.Parameter(weights[f"{biased}.bias"])
        _replace(network, behind, second)

    def _put(self, network: nn.Module, name: str, source: str, weights: Mapping[str, Tensor]) -> None:
        gain = self.plan.gains.get(name, 1.0)
        weight, bias = (weights[f"{name}.{part}"] / gain for part in ("weight", "bias"))
        weight = weight / self.plan.taken_in.get(name, 1.0)
        for folded in self.plan.folded.get(name, []):
            inner: Any = network.get_submodule(folded)
            if isinstance(inner, nn.Linear):
                inner.register_parameter("bias", None)
            else:
                _replace(network, folded, nn.Identity())
        owner, _, last = source.rpartition(".")
        if last == "input_weights":
            cast(Any, network.get_submodule(owner)).input_weights = nn.Parameter(weight)
            return
        module: Any = network.get_submodule(source)
        module.weight = nn.Parameter(weight.reshape(module.weight.shape))
        module.bias = nn.Parameter(bias) if bool(bias.any()) or module.bias is not None else None


def torch_source(network: nn.Module, shape: tuple[int, ...], output: int = 0) -> TorchSource:
    """Run a live module on a few steps of input of ``shape`` to see what it does."""
    if not any(isinstance(module, Neurons) or holds_neurons(module) for module in network.modules()):
        raise AxonnxError(
            f"{type(network).__name__}: has no layer of neurons of snnTorch, SpikingJelly or Norse that is known here"
        )
    network = with_stand_ins(_copy(network).cpu().float().eval())
    form, seen = find_form(network, shape, output)
    whole = form.sequence and not any(call.number for call in seen.trace.calls)
    wiring = Wiring(seen.trace, seen.x, shape, form.layout == "flat", whole)
    return TorchSource(network, form, wiring.run(seen.outputs[-1], form.sequence))


def _copy(network: nn.Module) -> nn.Module:
    """Return a copy; membranes that the last pass left in the module are cut off from its graph, which has no copy."""
    held = [d for module in network.modules() for d in (vars(module), *vars(module).values()) if isinstance(d, dict)]
    states = [value for each in held for value in each.values() if isinstance(value, Tensor) and not value.is_leaf]
    return copy.deepcopy(network, {id(state): state.detach().clone() for state in states})


def _fitting(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """[T, B, …] in the shape that our layer gives."""
    values = values.to_dense() if values.is_sparse else values
    return values.reshape(*values.shape[:2], *shape)


@torch.no_grad()
def _put_recurrent(module: nn.Module, weight: Tensor) -> None:
    if isinstance(module, StandIn):
        cast(Any, module.neurons.recurrent).posterior.raw_mean.copy_(weight)
        return
    inner: Any = getattr(module, "recurrent", None)
    if isinstance(inner, nn.Linear):
        inner.weight = nn.Parameter(weight)
    elif inner is not None:
        inner.V = nn.Parameter(torch.diagonal(weight).clone())
    else:
        cast(Any, module).recurrent_weights = nn.Parameter(weight)


def _replace(network: nn.Module, name: str, module: nn.Module) -> None:
    owner, _, last = name.rpartition(".")
    setattr(network.get_submodule(owner), last, module)
