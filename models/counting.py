"""Residual blocks whose shortcuts add up spikes: integers with a known bound enter convolutions and the read-out."""

from __future__ import annotations

from torch import Tensor, nn

from axonnx.models.maths.current import more_channels
from axonnx.models.pooling import AveragePool2d
from axonnx.models.residual import NeuronFactory, Shortcut, scale_block
from axonnx.models.run import Run
from axonnx.models.synapses import Conv2d
from axonnx.models.variant import Variant


class CountingBlock(nn.Module):
    """counts + fire₂(conv₂(fire₁(conv₁(counts))))

    After n blocks a count is at most n + 1. Where a block halves the resolution or widens, the shortcut is average
    pooling with empty extra channels (``pool``: counts in quarters), or neurons of their own behind a 1×1
    convolution (``conv``).
    """

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
        self.conv1 = Conv2d(inputs, outputs, 3, variant, stride=stride, padding=1)
        self.neuron1 = neuron(outputs)
        self.conv2 = Conv2d(outputs, outputs, 3, variant, padding=1)
        self.neuron2 = neuron(outputs)
        scale_block(self.conv2, scale)
        changes = stride != 1 or inputs != outputs
        projects = changes and shortcut == "conv"
        self.projection = Conv2d(inputs, outputs, 1, variant, stride=stride) if projects else None
        self.projected = neuron(outputs) if projects else None
        self.pool = AveragePool2d(stride) if stride != 1 and not projects else None
        self.extra_channels = 0 if projects else outputs - inputs

    def forward(self, counts: Tensor, run: Run) -> Tensor:
        """The counts after this block."""
        spikes: Tensor = self.neuron2(self.conv2(self.neuron1(self.conv1(counts, run), run), run), run)
        return self._shortcut(counts, run) + spikes

    def _shortcut(self, counts: Tensor, run: Run) -> Tensor:
        if self.projection is not None and self.projected is not None:
            projected: Tensor = self.projected(self.projection(counts, run), run)
            return projected
        if self.pool is not None:
            counts = self.pool(counts)
        return more_channels(counts, self.extra_channels)
