"""Small networks that together use every operator, layer and way to write a file; only samples are made with them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from axonnx.models import (
    LIF,
    AveragePool2d,
    BinaryMLP,
    BinaryResNet,
    Conv2d,
    FilledPool2d,
    LeakyReadout,
    LIFSettings,
    Linear,
    MaxPool2d,
    Network,
    RecurrentSNN,
    Run,
    SpikingMLP,
    SpikingNetwork,
    SpikingResNet,
    variant,
)
from axonnx.models.general import Adaptation, DirectReadout, Dynamics, GeneralLIF, LeakyCurrent

Sample = tuple[Network, tuple[int, ...], list[str]]


def networks(steps: int, classes: int) -> dict[str, Sample]:
    """Name → a network, the shape of its input, and the ways to write it."""
    norm, zero = variant("sg-bn"), LIFSettings(reset="zero")
    scales = replace(variant("sbnn"), normalisation="scale_through_time")
    own = LIFSettings(learn_decay="neuron", learn_threshold="neuron")
    return {
        "binary-mlp": (BinaryMLP(6, [7], classes), (6,), ["mfa", "sampled", "stochastic", "int8"]),
        "binary-resnet": (BinaryResNet(2, (3, 4), 1, classes, size=4), (2, 4, 4), ["mfa", "traces", "float32"]),
        "delays": (SpikingMLP(6, [7, 5], classes, delays=[0, 2]), (6,), ["mfa", "stochastic", "step", "traces"]),
        "general": (General(classes), (6,), ["mfa", "step", "sampled", "traces"]),
        "mlp": (SpikingMLP(6, [7], classes), (6,), ["mfa", "step", "sampled", "traces", "float32"]),
        "mlp-zero": (SpikingMLP(6, [7], classes, settings=zero), (6,), ["stochastic", "step"]),
        "mlp-norm": (SpikingMLP(6, [7], classes, norm, steps=steps), (6,), ["mfa", "step"]),
        "mlp-scales": (SpikingMLP(6, [7], classes, scales, steps=steps), (6,), ["mfa", "stochastic"]),
        "pools": (Pools(classes), (2, 4, 4), ["mfa", "step"]),
        "recurrent": (RecurrentSNN(6, [7], classes), (6,), ["mfa", "stochastic", "step", "int8", "float32"]),
        "recurrent-own": (RecurrentSNN(6, [7], classes, settings=own), (6,), ["mfa", "step"]),
        "resnet": (SpikingResNet(2, (3, 4), 1, classes, size=4), (2, 4, 4), ["mfa", "step", "float32"]),
        "resnet-conv": (SpikingResNet(2, (3, 4), 1, classes, size=4, shortcut="conv"), (2, 4, 4), ["stochastic"]),
    }


class General(SpikingNetwork):
    """Neurons of other libraries: every reset, a synaptic current, adaptation, a layer that hears itself."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.up, self.leak = Linear(6, 7), LeakyCurrent(torch.tensor(0.5))
        self.first = GeneralLIF(_dynamics(7), synaptic_decay=torch.tensor(0.25), recurrent=7)
        self.down = Linear(7, classes)
        self.second = GeneralLIF(_dynamics(classes), adaptation=Adaptation(*torch.tensor([0.5, 0.25, 0.5, 0.25, 0.5])))
        self.readout = DirectReadout(torch.tensor(0.0))

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Logits."""
        inner = self.first(self.leak(self.up(x, run), run), run)
        out: Tensor = self.readout(self.second(self.down(inner, run), run), run)
        return out


class Pools(SpikingNetwork):
    """Maxima of currents and of spikes, and means over powers of two and over thirds, between convolutions."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.fine, self.first, self.fine_neuron = Conv2d(2, 3, 3, padding=1), MaxPool2d((1, 2)), LIF()
        self.largest = nn.MaxPool2d((2, 1))  # 2 × 2
        self.deep, self.deep_neuron, self.mean = Conv2d(3, 4, 3, padding=1), LIF(), AveragePool2d(2)
        self.thirds = FilledPool2d(1, 3)
        self.readout = LeakyReadout(4 + 8, classes)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Logits."""
        fine = self.largest(self.fine_neuron(self.first.current(self.fine(x, run)), run))
        deep = self.mean(self.deep_neuron(self.deep(fine, run), run))
        flat, thirds = (part.flatten(2 if run.sequence else 1) for part in (deep, self.thirds(x)))
        out: Tensor = self.readout(torch.cat([flat, thirds], -1), run)
        return out


def _dynamics(neurons: int) -> Dynamics:
    """Constants of single neurons and of all, on the grid of quarters."""
    some = torch.arange(neurons) % 2 * 1.0
    return Dynamics(
        decay=torch.tensor(0.75),
        threshold=1.0 + 0.25 * some,
        zeroed=some,
        taken=0.5 * (1.0 - some),
        late_zeroed=torch.tensor(0.0),
        late_taken=0.25 * some,
    )
