"""A NIR file as a source: its plan, and a run of its equations by themselves in double precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from axonnx.base.errors import AxonnxError
from axonnx.export.convert.neuron import wide
from axonnx.export.convert.nir_equations import Equations, Late, delay_steps, put_together, taken_apart
from axonnx.export.convert.nir_graph import FlatGraph, read_graph
from axonnx.export.convert.nir_neurons import FIRING, KINDS, NIRS_OWN, Assumed, assumed_of, neuron_of
from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.source import Seen
from axonnx.models.described import INPUT

MOST_INPUTS = 10**7
WEIGHTS = ("Affine", "Linear", "Conv1d", "Conv2d")


@dataclass(frozen=True)
class NirSource:
    """A graph of NIR, run step by step from its equations."""

    graph: FlatGraph
    dt: float | None
    plan: Plan
    name: str
    weights: Mapping[str, tuple[Tensor, Tensor]]
    assumed: Assumed
    proves: str = "NIR's equations"

    @property
    def repeats(self) -> int:
        """None: a graph takes every step from outside."""
        return 0

    def observe(self, x: Tensor) -> Seen:
        """Every neuron's spikes, and what reaches the output."""
        fired, outputs = Equations(self.graph, self.dt, self.weights, self.assumed).run(x)
        neurons = [layer.name for layer in self.plan.layers if layer.kind == "neurons"]
        spikes = {
            name: fired[self.plan.sources[name]].reshape(*x.shape[:2], *self.plan.shapes[name]).float()
            for name in neurons
        }
        return Seen(spikes, outputs.flatten(2).float())

    def with_weights(self, weights: Mapping[str, Tensor]) -> NirSource:
        """Return the same graph with a file's weights and biases."""
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for layer in self.plan.layers:
            source = self.plan.sources[layer.name]
            if layer.kind in SYNAPSES and source:
                gain = self.plan.gains.get(layer.name, 1.0)
                if layer.name in self.plan.merged:
                    found[source] = weights[f"{layer.name}.weight"] / gain, weights[f"{layer.name}.bias"] / gain
                    behind, biased = self.plan.merged[layer.name]
                    outputs = len(weights[f"{layer.name}.weight"])
                    shift = torch.zeros(outputs) if biased is None else weights[f"{biased}.bias"]
                    found[behind] = torch.eye(outputs), shift
                    continue
                weight = put_together(weights[f"{layer.name}.weight"], self.graph.nodes[source].weight.shape)
                weight = weight / self.plan.taken_in.get(layer.name, 1.0)
                found[source] = weight / gain, weights[f"{layer.name}.bias"] / gain
            elif layer.options.get("recurrent"):
                weight = weights[f"{layer.name}.recurrent_weight"]
                found[str(recurrent_of(self.graph, source))] = weight, torch.zeros(len(weight))
            for folded in self.plan.folded.get(layer.name, []):
                found.setdefault(folded, (torch.zeros(()), torch.zeros(())))
        return replace(self, weights=found)


def nir_source(path: Path, dt: float | None, assumed: Assumed = NIRS_OWN) -> NirSource:
    """Return the network of a NIR file; ``dt`` in seconds."""
    graph = read_graph(path)
    if dt is not None and not 0.0 < dt < float("inf"):
        raise AxonnxError(f"the time step is {dt}; expected seconds, e.g. 1e-3")
    assumed = assumed_of(graph.nodes, assumed)
    return NirSource(graph, dt, _Reading(graph, dt, assumed).plan(), f"{path.name} (NIR)", {}, assumed)


def recurrent_of(graph: FlatGraph, neuron: str) -> str | None:
    """Return the node of weights through which neurons hear themselves."""
    weights = [name for name in graph.heard[neuron] if type(graph.nodes[name]).__name__ in WEIGHTS]
    return next((name for name in weights if graph.heard[name] == (neuron,)), None)


class _Reading:
    """Walks from the output back to the input."""

    def __init__(self, graph: FlatGraph, dt: float | None, assumed: Assumed) -> None:
        self.graph, self.dt, self.assumed, self.made = graph, dt, assumed, Plan()
        self.done: dict[str, str] = {}
        self.under_way: list[str] = []
        self.late: dict[str, Late] = {}  # delay lines whose delays differ from neuron to neuron

    def plan(self) -> Plan:
        self.made.shapes[INPUT] = input_shape(self.graph.nodes[self.graph.only("Input")])
        end = self.graph.only("Output")
        self._heard(end, 1)
        last = self._together(self.graph.heard[end])
        self.made.readout(last)
        if any(type(node).__name__ in FIRING for node in self.graph.nodes.values()):
            self.made.notes.append(self.assumed.note())
        return self.made

    def _heard(self, name: str, count: int | None = None) -> tuple[str, ...]:
        names = self.graph.heard[name]
        if not names or (count is not None and len(names) != count):
            raise AxonnxError(
                f"{name}: hears {len(names)} nodes ({', '.join(names)}); expected {count or 'one or more'}"
            )
        return tuple(self._value(each) for each in names)

    def _value(self, name: str) -> str:
        if name in self.under_way:
            raise AxonnxError(
                f"{name}: hears itself through {' → '.join(self.under_way)}; only neurons that hear themselves through "
                f"one layer of weights are known"
            )
        if name not in self.done:
            self.under_way.append(name)
            self.done[name] = self._node(name, self.graph.nodes[name], type(self.graph.nodes[name]).__name__)
            self.under_way.pop()
        return self.done[name]

    def _together(self, names: tuple[str, ...], weights: bool = False) -> str:
        values = tuple(self._value(each) for each in names)
        if not values:
            raise AxonnxError("a node hears nothing")
        mixed = [name for name, value in zip(names, values, strict=True) if value in self.late]
        if mixed and not (weights and len(values) == 1):
            raise AxonnxError(f"{mixed[0]}: delays that differ from neuron to neuron need weights right behind them")
        return values[0] if len(values) == 1 else self.made.add("", "add", values, self.made.shapes[values[0]])

    def _node(self, name: str, node: Any, kind: str) -> str:
        if kind == "Input":
            return INPUT
        if kind in KINDS:
            return self._neurons(name, node, kind)
        of = self._together(self.graph.heard[name], kind in WEIGHTS)
        if kind in WEIGHTS:
            return self._synapse(name, node, kind, of)
        if kind == "Delay":
            return self._delay(name, node, of)
        shape = self.made.shapes[of]
        if kind == "Flatten":
            flat = int(torch.Size(shape).numel())
            return of if len(shape) == 1 else self.made.add(name, "flatten", (of,), (flat,))
        if kind in ("AvgPool2d", "SumPool2d"):
            return self._pool(name, node, kind, of)
        if kind == "Scale":
            return self._scale(name, node, of)
        raise AxonnxError(
            f"{name}: a node of the kind {kind} has no exact form here; known are {', '.join((*WEIGHTS, *KINDS))}, "
            f"AvgPool2d, SumPool2d, Flatten, Scale and Delay"
        )

    def _neurons(self, name: str, node: Any, kind: str) -> str:
        neuron = neuron_of(node, kind, name, self.dt, self.assumed)
        loop = recurrent_of(self.graph, name)
        of = self._together(tuple(each for each in self.graph.heard[name] if each != loop))
        found: dict[str, Any] = {}
        if loop is not None:
            weights = self.graph.nodes[loop]
            if type(weights).__name__ not in ("Affine", "Linear"):
                raise AxonnxError(f"{loop}: recurrent weights are a convolution; only dense ones are known")
            found["recurrent"] = torch.as_tensor(weights.weight).float()
            bias = getattr(weights, "bias", None)
            found["bias"] = None if bias is None else torch.as_tensor(bias)
        return self.made.neurons(name, replace(neuron, **found), of)

    def _synapse(self, name: str, node: Any, kind: str, of: str) -> str:
        weight, bias = torch.as_tensor(node.weight), getattr(node, "bias", None)
        bias = None if bias is None else torch.as_tensor(bias)
        if of in self.late:
            weight = taken_apart(weight, self.late[of], int(getattr(node, "groups", 1)), name)
        if kind in ("Affine", "Linear"):
            if len(self.made.shapes[of]) != 1:
                of = self.made.add("", "flatten", (of,), (int(weight.shape[1]),))
            return self.made.synapse(name, weight, bias, of, (int(weight.shape[0]),))
        line = kind == "Conv1d"
        sides = {
            part: _sides(getattr(node, part), line, name, part == "padding")
            for part in ("stride", "padding", "dilation")
        }
        weight = weight.unsqueeze(2) if line else weight
        shape = self.made.shapes[of]
        out = [
            (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, stride, pad, dilation in zip(shape[1:], weight.shape[2:], *sides.values(), strict=True)
        ]
        how: dict[str, Any] = {part: list(pair) for part, pair in sides.items()}
        shape = (int(weight.shape[0]), *out)
        return self.made.synapse(name, weight, bias, of, shape, groups=int(node.groups), **how)

    def _delay(self, name: str, node: Any, of: str) -> str:
        """Add a delay line; if neurons have delays of their own, weights behind it choose among all of them."""
        if of in self.made.currents:
            raise AxonnxError(f"{name}: delays a current; delay the spikes before the weights, which is the same")
        shape = self.made.shapes[of]
        if shape[:-1] == (1, 1):
            of, shape = self.made.add("", "flatten", (of,), shape[-1:]), shape[-1:]
        late = delay_steps(node.delay, shape, self.dt, name)
        if late.delays == (0,):
            return of
        out = (shape[0] * len(late.delays), *shape[1:])
        found = self.made.add(name, "delay", (of,), out, delays=list(late.delays))
        if len(late.delays) > 1:
            self.late[found] = late
        return found

    def _pool(self, name: str, node: Any, kind: str, of: str) -> str:
        shape, window = self.made.shapes[of], _sides(node.kernel_size, False, name)
        steps, pads = _sides(node.stride, False, name), _sides(node.padding, False, name)
        if steps != window or any(pads) or len(shape) != 3:
            raise AxonnxError(
                f"{name}: windows of {list(window)} with steps of {list(steps)} over {list(shape)}; only windows that "
                f"stand side by side on maps are exact"
            )
        return self.made.pool(name, "sum_pool" if kind == "SumPool2d" else "average_pool", of, window)

    def _scale(self, name: str, node: Any, of: str) -> str:
        """Into the weights before it, where all of a channel are scaled alike."""
        scale, layer = wide(node.scale), self.made.layer(of) if of != INPUT else None
        if layer is None or layer.kind not in SYNAPSES:
            raise AxonnxError(f"{name}: Scale is folded into weights, and {of!r} before it has none")
        outputs = int(layer.options["outputs"])
        rows = scale.expand(self.made.shapes[of]).reshape(outputs, -1)
        if not bool((rows == rows[:, :1]).all()):
            raise AxonnxError(
                f"{name}: scales differ within a channel; one for each channel can be folded into weights"
            )
        self.made.fold(of, rows[:, 0], torch.zeros(()))
        self.made.folded.setdefault(of, []).append(name)
        return of


def input_shape(node: Any) -> tuple[int, int, int]:
    """(C, H, W) of the graph's input: maps, a line (C, L) or a row of numbers."""
    sides = [int(side) for side in node.input_type["input"]]
    if any(side < 1 for side in sides) or math.prod(sides) > MOST_INPUTS:
        raise AxonnxError(f"the graph's input has the shape {sides}; expected sides from 1, {MOST_INPUTS:,} in all")
    if len(sides) == 1:
        return 1, 1, sides[0]
    if len(sides) == 2:
        return sides[0], 1, sides[1]
    if len(sides) == 3:
        return sides[0], sides[1], sides[2]
    raise AxonnxError(
        f"the graph's input has the shape {sides}; expected (n), (channels, n) or (channels, height, width)"
    )


def _sides(value: Any, line: bool, name: str, padding: bool = False) -> tuple[int, int]:
    if isinstance(value, str | bytes):
        raise AxonnxError(f"{name}: padding is {value!r}; give it in numbers")
    numbers = [int(number) for number in torch.as_tensor(value).flatten().tolist()]
    if line:
        return (0 if padding else 1), numbers[0]
    return (numbers[0], numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
