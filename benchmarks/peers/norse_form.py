"""The same recurrent network in Norse: LIFBox cells, which have no synaptic current, stepped in Python.

Norse integrates v + dt/τ·(i − v), so with dt/τ = 1 − β its weights are ours divided by 1 − β. It fires above the
threshold, not on it.
"""

from __future__ import annotations

from typing import Any

import torch
from norse.torch import LIBoxCell, LIFBoxCell, LIFBoxParameters
from norse.torch.functional.leaky_integrator_box import LIBoxParameters
from norse.torch.functional.reset import reset_subtract
from torch import Tensor, nn

from axonnx.export.collapsed import Collapsed
from benchmarks.peers import layers, linear

DT = 1e-3


class Network(nn.Module):
    """Input products of all steps at once, then a cell called for each step."""

    def __init__(self, collapsed: Collapsed) -> None:
        super().__init__()
        network: Any = collapsed.network
        self.layers = layers(collapsed, scale=lambda decay: 1 - decay)
        self.cells = nn.ModuleList(LIFBoxCell(_parameters(layer.decay, layer.threshold), DT) for layer in self.layers)
        decay = float(network.readout.decay)
        self.readout = linear(network.readout, 1 - decay)
        self.leaky = LIBoxCell(LIBoxParameters(tau_mem_inv=_inverse(decay)), dt=DT)

    @torch.no_grad()
    def spikes(self, x: Tensor) -> list[Tensor]:
        """Of each hidden layer [T, B, neurons]."""
        found = []
        for layer, cell in zip(self.layers, self.cells, strict=True):
            fired, state, seen = torch.zeros(x.shape[1], len(layer.recurrent)), None, []
            for current in layer.synapse(x):
                fired, state = cell(current + nn.functional.linear(fired, layer.recurrent), state)
                seen.append(fired)
            x = torch.stack(seen)
            found.append(x)
        return found

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Logits from [T, B, inputs]."""
        state, total = None, torch.zeros(())
        for current in self.readout(self.spikes(x)[-1]):
            membrane, state = self.leaky(current, state)
            total = total + membrane
        return total / len(x)


def _inverse(decay: float) -> Tensor:
    return torch.tensor((1 - decay) / DT)


def _parameters(decay: float, threshold: float) -> LIFBoxParameters:
    return LIFBoxParameters(
        tau_mem_inv=_inverse(decay), v_th=torch.tensor(threshold), reset_method=reset_subtract, method="heaviside"
    )
