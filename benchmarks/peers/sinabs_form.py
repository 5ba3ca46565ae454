"""The same recurrent network in sinabs: its LIFRecurrent and ExpLeak layers, which take a whole sequence each."""

from __future__ import annotations

from typing import Any

import torch
from sinabs.activation import MembraneSubtract, SingleSpike
from sinabs.layers import ExpLeak, LIFRecurrent
from torch import Tensor, nn

from axonnx.export.collapsed import Collapsed
from benchmarks.peers import Layer, layers, linear


class Network(nn.Module):
    """Layer after layer; sinabs has the batch before time."""

    def __init__(self, collapsed: Collapsed) -> None:
        super().__init__()
        network: Any = collapsed.network
        self.layers = layers(collapsed)
        self.neurons = nn.ModuleList(_neurons(layer) for layer in self.layers)
        self.readout = linear(network.readout)
        self.leaky = ExpLeak(tau_mem=1.0, train_alphas=True)
        self.leaky.alpha_mem.data.fill_(float(network.readout.decay))

    @torch.no_grad()
    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        return [fired.transpose(0, 1) for fired in self._hidden(x)]

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        self.leaky.reset_states()
        return self.leaky(self.readout(self._hidden(x)[-1])).mean(1)

    def _hidden(self, x: Tensor) -> list[Tensor]:
        found, fired = [], x.transpose(0, 1)
        for layer, neuron in zip(self.layers, self.neurons, strict=True):
            neuron.reset_states()
            fired = neuron(layer.synapse(fired))
            found.append(fired)
        return found


def _neurons(layer: Layer) -> LIFRecurrent:
    connect = nn.Linear(*layer.recurrent.shape, bias=False)
    connect.weight.data.copy_(layer.recurrent)
    made = LIFRecurrent(
        tau_mem=1.0,
        rec_connect=connect,
        spike_threshold=torch.tensor(layer.threshold),
        spike_fn=SingleSpike,
        reset_fn=MembraneSubtract(),
        train_alphas=True,  # so that β itself is a parameter, and not e^(−1/τ)
        norm_input=False,
    )
    made.alpha_mem.data.fill_(layer.decay)
    return made
