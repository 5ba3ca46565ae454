"""Networks that are not shipped, composed of the layers: one that uses nearly everything, and any wiring at all."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from axonnx.models import (
    LIF,
    AveragePool2d,
    BinaryNetwork,
    BinaryNeuron,
    Conv2d,
    LeakyReadout,
    LIFSettings,
    Linear,
    LinearReadout,
    Run,
    SpikingNetwork,
)

Compute = Callable[[nn.Module, Tensor, Run], Tensor]


class Wired(SpikingNetwork):
    """Layers by name, and a function that wires them."""

    def __init__(self, compute: Compute, **layers: nn.Module) -> None:
        super().__init__()
        self.wiring = compute
        for name, layer in layers.items():
            self.add_module(name, layer)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.wiring(self, x, run)


class WiredBinary(BinaryNetwork):
    """The same without time."""

    def __init__(self, compute: Compute, **layers: nn.Module) -> None:
        super().__init__()
        self.wiring = compute
        for name, layer in layers.items():
            self.add_module(name, layer)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.wiring(self, x, run)


class TwoBranches(SpikingNetwork):
    """Two branches of different kernels and widths, a skip connection of spikes, a pooling, a recurrent layer.

    Input [2, 8, 8]. Another synapse hears the recurrent layer's spikes of the step before.
    """

    layerwise = False

    def __init__(self) -> None:
        super().__init__()
        self.fine = Conv2d(2, 6, 3, padding=1)
        self.fine_neuron = LIF()
        self.coarse = Conv2d(2, 4, 5, stride=2, padding=2)
        self.coarse_neuron = LIF(settings=LIFSettings(reset="zero", decay=0.5))
        self.pool = AveragePool2d(2)
        self.inner = Conv2d(10, 10, 3, padding=1)
        self.inner_neuron = LIF(settings=LIFSettings(learn_decay=True))
        self.narrow = Linear(160, 24)
        self.feedback = Linear(24, 24)
        self.memory = LIF(recurrent=24)
        self.readout = LeakyReadout(24 + 160, 7)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        fine = self.pool(self.fine_neuron(self.fine(x, run), run))  # [B, 6, 4, 4], quarters
        coarse = self.coarse_neuron(self.coarse(x, run), run)  # [B, 4, 4, 4]
        joined = torch.cat([fine, coarse], -3)
        skipped = joined + self.inner_neuron(self.inner(joined, run), run)
        before = run.state_of(self.memory)
        heard = x.new_zeros(x.shape[0], 24) if before is None else before.spikes
        current = self.narrow(skipped.flatten(-3), run) + self.feedback(heard, run)
        memory = self.memory(current, run)
        return self.readout(torch.cat([memory, skipped.flatten(-3)], -1), run)


class TwoBinaryBranches(BinaryNetwork):
    """The same idea without time; the branches meet as currents and as spikes."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = Conv2d(3, 8, 3, padding=1), Conv2d(3, 8, 1)
        self.both = BinaryNeuron(threshold=0.25)
        self.deep = Conv2d(8, 8, 3, padding=1)
        self.deep_neuron = BinaryNeuron()
        self.pool = AveragePool2d(4)
        self.readout = LinearReadout(32, 5)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        first = self.both(self.left(x, run) + self.right(x, run), run)
        second = self.deep_neuron(self.deep(first, run), run)
        return self.readout(self.pool(first + second).flatten(-3), run)


class LayersOfTorch(SpikingNetwork):
    """Layers of torch that are exact between spikes: a maximum, dropout after training, flattening, nothing at all."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = nn.MaxPool2d(2)
        self.fine, self.fine_neuron = Conv2d(2, 6, 3, padding=1), LIF()
        self.pool = nn.MaxPool2d((2, 1))
        self.between = nn.Sequential(nn.Dropout2d(0.5), nn.Identity())
        self.inner, self.inner_neuron = Conv2d(6, 4, 3, padding=1), LIF()
        self.flatten, self.drop = nn.Flatten(), nn.Dropout(0.5)
        self.narrow, self.memory = Linear(4 * 2 * 4, 16), LIF(recurrent=16)
        self.readout = LeakyReadout(16, 5)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        fine = self.between(self.pool(self.fine_neuron(self.fine(self.counts(x), run), run)))
        inner = self.drop(self.flatten(self.inner_neuron(self.inner(fine, run), run)))
        return self.readout(self.memory(self.narrow(inner, run), run), run)
