"""Networks of snnTorch's layers to be trained: the recurrent one in two forms, and the spiking ResNet-20."""

from __future__ import annotations

from itertools import pairwise

import snntorch
import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.models.neurons import DEFAULT_DECAY


class Recurrent(nn.Module):
    """Every layer called at every step, as snnTorch's documentation writes it."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.synapses = nn.ModuleList([nn.Linear(inputs, hidden), nn.Linear(hidden, hidden)])
        self.neurons = nn.ModuleList(snntorch.RLeaky(DEFAULT_DECAY, linear_features=hidden) for _ in range(2))
        self.last = nn.Linear(hidden, classes)
        self.readout = snntorch.Leaky(DEFAULT_DECAY, reset_mechanism="none")

    def forward(self, x: Tensor) -> Tensor:
        states = [neuron.reset_mem() for neuron in self.neurons]
        membrane, total = self.readout.reset_mem(), 0.0
        for frame in x:
            for number, (synapse, neuron) in enumerate(zip(self.synapses, self.neurons, strict=True)):
                states[number] = neuron(synapse(frame), *states[number])
                frame = states[number][0]
            _, membrane = self.readout(self.last(frame), membrane)
            total = total + membrane
        return total / len(x)


class LayerWise(Recurrent):
    """Input products of all steps at once, then a layer's neurons step by step."""

    def forward(self, x: Tensor) -> Tensor:
        for synapse, neuron in zip(self.synapses, self.neurons, strict=True):
            state, seen = neuron.reset_mem(), []
            for current in synapse(x):
                state = neuron(current, *state)
                seen.append(state[0])
            x = torch.stack(seen)
        return _leaky_mean(self.readout, self.last(x))


class ResNet(nn.Module):
    """Our spiking ResNet-20 of snnTorch's neurons: convolutions of all steps at once, neurons step by step."""

    def __init__(self, inputs: int = 2, widths: tuple[int, ...] = (32, 64, 128), blocks: int = 3, classes: int = 11):
        super().__init__()
        self.stem = nn.Conv2d(inputs, widths[0], 3, padding=1)
        sizes = [widths[0], *(width for width in widths for _ in range(blocks))]
        self.blocks = nn.ModuleList(Block(a, b) for a, b in pairwise(sizes))
        self.neurons, self.last = _Fire(), nn.Linear(widths[-1], classes)
        self.readout = snntorch.Leaky(DEFAULT_DECAY, reset_mechanism="none")

    def forward(self, x: Tensor) -> Tensor:
        stream = _over_time(self.stem, x)
        for block in self.blocks:
            stream = block(stream)
        return _leaky_mean(self.readout, self.last(self.neurons(stream).mean((-2, -1))))


class Block(nn.Module):
    """stream + conv₂(fire₂(conv₁(fire₁(stream)))); half the resolution where it widens."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.stride = 1 if inputs == outputs else 2
        self.fire1, self.fire2 = _Fire(), _Fire()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, self.stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.extra = outputs - inputs

    def forward(self, stream: Tensor) -> Tensor:
        inner = _over_time(self.conv2, self.fire2(_over_time(self.conv1, self.fire1(stream))))
        if self.extra:
            stream = nnf.pad(_over_time(nn.AvgPool2d(2), stream), (0, 0, 0, 0, 0, self.extra))
        return stream + inner


class _Fire(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.neurons = snntorch.Leaky(DEFAULT_DECAY)

    def forward(self, current: Tensor) -> Tensor:
        membrane, seen = self.neurons.reset_mem(), []
        for arriving in current:
            spikes, membrane = self.neurons(arriving, membrane)
            seen.append(spikes)
        return torch.stack(seen)


def _over_time(layer: nn.Module, x: Tensor) -> Tensor:
    return layer(x.flatten(0, 1)).unflatten(0, x.shape[:2])


def _leaky_mean(readout: nn.Module, currents: Tensor) -> Tensor:
    membrane, total = readout.reset_mem(), torch.zeros(())
    for current in currents:
        _, membrane = readout(current, membrane)
        total = total + membrane
    return total / len(currents)
