"""Residual blocks made for events: currents on the shortcut, only spikes into convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from axonnx.models.maths.current import Current
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


class ResidualBlock(nn.Module):
    """stream + conv₂(fire₂(conv₁(fire₁(stream))))

    The stream is a real-valued current that no convolution reads. Where a block halves the resolution or
    widens, the shortcut is average pooling with empty extra channels (``pool``), or a 1×1 convolution on the
    spikes of fire₁ (``conv``).
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
        self.neuron1 = neuron(inputs)
        self.conv1 = Conv2d(inputs, outputs, 3, variant, stride=stride, padding=1)
        self.neuron2 = neuron(outputs)
        self.conv2 = Conv2d(outputs, outputs, 3, variant, padding=1)
        scale_block(self.conv2, scale)
        changes = stride != 1 or inputs != outputs
        self.projection = Conv2d(inputs, outputs, 1, variant, stride=stride) if changes and shortcut == "conv" else None
        self.pool = AveragePool2d(stride) if stride != 1 and self.projection is None else None
        self.extra_channels = outputs - inputs if self.projection is None else 0

    def forward(self, stream: Current, run: Run) -> Current:
        """The stream after this block."""
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
