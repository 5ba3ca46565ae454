"""The same recurrent network in snnTorch: its RLeaky neurons with our weights, stepped in Python as its guide does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import snntorch
import torch
from torch import Tensor, nn

from axonnx.export.collapsed import Collapsed


class Network(nn.Module):
    """Linear and RLeaky layers, and a leaky read-out that is averaged over time."""

    def __init__(self, collapsed: Collapsed) -> None:
        super().__init__()
        network: Any = collapsed.network
        self.synapses, self.neurons = nn.ModuleList(), nn.ModuleList()
        for layer in network.hidden:
            self.synapses.append(_linear(layer.synapse.weight, layer.synapse.bias))
            size = layer.synapse.weight.shape[0]
            neuron = snntorch.RLeaky(
                beta=float(layer.neuron.decay),
                threshold=float(layer.neuron.threshold.max()),
                linear_features=size,
                all_to_all=True,
                reset_mechanism="subtract",
            )
            neuron.recurrent = _linear(layer.neuron.recurrent_weight, None)
            self.neurons.append(neuron)
        self.readout = _linear(network.readout.weight, network.readout.bias)
        self.leaky = snntorch.Leaky(beta=float(network.readout.decay), reset_mechanism="none")

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        membrane, total = self.leaky.reset_mem(), torch.zeros(())
        for fired in self._steps(x):
            _, membrane = self.leaky(self.readout(fired[-1]), membrane)
            total = total + membrane
        return total / len(x)

    @torch.no_grad()
    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        return [torch.stack(layer) for layer in zip(*self._steps(x), strict=True)]

    def _steps(self, x: Tensor) -> Iterator[list[Tensor]]:
        """The spikes of each hidden layer, step by step."""
        states = [neuron.reset_mem() for neuron in self.neurons]
        for frame in x:
            for number, (synapse, neuron) in enumerate(zip(self.synapses, self.neurons, strict=True)):
                frame, membrane = neuron(synapse(frame), *states[number])
                states[number] = (frame, membrane)
            yield [fired for fired, _ in states]


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias)
    return layer
