"""Residual blocks made for events: only spikes, or counts of them, enter convolutions.

Shortcuts carry currents (``ResidualBlock``), or add up spikes to integers with a known bound (``CountingBlock``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from axonnx.models.maths.current import Current, more_channels
from axonnx.models.pooling import AveragePool2d
from axonnx.models.run import Run
from axonnx.models.synapses import Conv2d
from axonnx.models.variant import Variant

NeuronFactory = Callable[[int], nn.Module]  # from the number of channels
Shortcut = Literal["pool", "conv"]


def scale_block(last: Conv2d, scale: float) -> None:
    """Let a block begin as ``scale`` times itself, as in SkipInit: its last channel scales begin there and learn."""
    if scale == 1.0:
        return
    if last.norm is None:
        raise ValueError(f"block_scale is {scale}, but convolutions without normalisation have no scale to begin with")
    nn.init.constant_(last.norm.scale, scale)


class _Block(nn.Module):
    """Two convolutions, each with its neurons before or behind it, and what a shortcut around them needs.

    Where a block halves the resolution or widens, the shortcut is average pooling with empty extra channels
    (``pool``), or a 1×1 convolution (``conv``).
    """

    neurons_first: bool
    neuron1: nn.Module
    neuron2: nn.Module
    conv1: Conv2d
    conv2: Conv2d

    def __init__(
        self,
        inputs: int,
        outputs: int,
        variant: Variant,
        neuron: NeuronFactory,
        *,
        stride: int = 1,
        shortcut: Shortcut = "pool",
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        if outputs < inputs:
            raise ValueError(f"a residual block cannot narrow its stream from {inputs} to {outputs} channels")
        for number, before, step in ((1, inputs, stride), (2, outputs, 1)):
            if self.neurons_first:
                self.add_module(f"neuron{number}", neuron(before))
            self.add_module(f"conv{number}", Conv2d(before, outputs, 3, variant, stride=step, padding=1))
            if not self.neurons_first:
                self.add_module(f"neuron{number}", neuron(outputs))
        scale_block(self.conv2, scale)
        changes = stride != 1 or inputs != outputs
        self.projection = Conv2d(inputs, outputs, 1, variant, stride=stride) if changes and shortcut == "conv" else None
        self.projected = None if self.projection is None or self.neurons_first else neuron(outputs)
        self.pool = AveragePool2d(stride) if stride != 1 and self.projection is None else None
        self.extra_channels = outputs - inputs if self.projection is None else 0


class ResidualBlock(_Block):
    """Computes stream + conv₂(fire₂(conv₁(fire₁(stream)))).

    The stream is a real-valued current that no convolution reads. A convolution in the shortcut hears the spikes of
    fire₁.
    """

    neurons_first = True

    def forward(self, stream: Current, run: Run) -> Current:
        """Return the stream after this block."""
        spikes = self.neuron1(stream, run)
        inner: Current = self.conv2(self.neuron2(self.conv1(spikes, run), run), run)
        return self._shortcut(stream, spikes, run) + inner

    def _shortcut(self, stream: Current, spikes: Tensor, run: Run) -> Current:
        if self.projection is not None:
            projected: Current = self.projection(spikes, run)
            return projected
        if self.pool is not None:
            stream = self.pool.current(stream)
        return stream.widened(self.extra_channels) if self.extra_channels else stream


class CountingBlock(_Block):
    """Computes counts + fire₂(conv₂(fire₁(conv₁(counts)))).

    After n blocks a count is at most n + 1. A shortcut by pooling gives counts in quarters; behind a convolution it has
    neurons of its own.
    """

    neurons_first = False

    def forward(self, counts: Tensor, run: Run) -> Tensor:
        """Return the counts after this block."""
        spikes: Tensor = self.neuron2(self.conv2(self.neuron1(self.conv1(counts, run), run), run), run)
        return self._shortcut(counts, run) + spikes

    def _shortcut(self, counts: Tensor, run: Run) -> Tensor:
        if self.projection is not None and self.projected is not None:
            projected: Tensor = self.projected(self.projection(counts, run), run)
            return projected
        if self.pool is not None:
            counts = self.pool(counts)
        return more_channels(counts, self.extra_channels)
