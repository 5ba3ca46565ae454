"""The same recurrent network in snnTorch: its RLeaky neurons with our weights, layer after layer.

Its guide calls every layer at every step; input products of all steps at once are half as fast again, so that is timed.
"""

from __future__ import annotations

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

    def forward(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        membrane, total = self.leaky.reset_mem(), torch.zeros(())
        for current in self.readout(self.spikes(x)[-1]):
            _, membrane = self.leaky(current, membrane)
            total = total + membrane
        return total / len(x)

    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        found = []
        for synapse, neuron in zip(self.synapses, self.neurons, strict=True):
            (fired, membrane), seen = neuron.reset_mem(), []
            for current in synapse(x):
                fired, membrane = neuron(current, fired, membrane)
                seen.append(fired)
            x = torch.stack(seen)
            found.append(x)
        return found


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    layer.weight.data.copy_(weight)
    if bias is not None:
        layer.bias.data.copy_(bias)
    return layer
