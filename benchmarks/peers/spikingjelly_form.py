"""The same recurrent network in SpikingJelly: its LIFNode with soft reset, stepped in Python, and NonSpikingLIFNode.

SpikingJelly's own container for recurrence multiplies inputs and spikes by one matrix at every step; products of all
inputs at once, and of the spikes alone at each step, are faster, so that is what is timed. NonSpikingLIFNode divides
currents by τ = 1/(1 − β), so the read-out's weights are ours divided by 1 − β.
"""

from __future__ import annotations

from typing import Any

import torch
from spikingjelly.activation_based import functional
from spikingjelly.activation_based.neuron import LIFNode, NonSpikingLIFNode
from torch import Tensor, nn

from axonnx.export.collapsed import Collapsed
from benchmarks.peers import Layer, layers, linear


class Network(nn.Module):
    """Input products of all steps at once, then a node called for each step."""

    def __init__(self, collapsed: Collapsed) -> None:
        super().__init__()
        network: Any = collapsed.network
        decay = float(network.readout.decay)
        self.layers = layers(collapsed)
        self.nodes = nn.ModuleList(_node(layer) for layer in self.layers)
        self.readout = linear(network.readout, 1 - decay)
        self.leaky = NonSpikingLIFNode(1 / (1 - decay), "mean-mem")

    @torch.no_grad()
    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        functional.reset_net(self.nodes)
        found = []
        for layer, node in zip(self.layers, self.nodes, strict=True):
            fired, seen = torch.zeros(x.shape[1], len(layer.recurrent)), []
            for current in layer.synapse(x):
                fired = node(current + nn.functional.linear(fired, layer.recurrent))
                seen.append(fired)
            x = torch.stack(seen)
            found.append(x)
        return found

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        return self.leaky(self.readout(self.spikes(x)[-1]))


def _node(layer: Layer) -> LIFNode:
    return LIFNode(tau=1 / (1 - layer.decay), decay_input=False, v_threshold=layer.threshold, v_reset=None)
