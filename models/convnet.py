"""A spiking network whose weights are shared along its input, and which hears several time steps at once."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from axonnx.models.delays import DelayLine
from axonnx.models.network import SpikingNetwork
from axonnx.models.networks import DenseLayer
from axonnx.models.neurons import LIF, LeakyReadout, LIFSettings
from axonnx.models.run import Run
from axonnx.models.synapses import Conv2d
from axonnx.models.variant import BAYESIAN, Variant

KERNEL = 5  # of an axis longer than one, which a convolution halves


class ConvLayer(nn.Module):
    """A convolution and the neurons it feeds; with ``delays`` there are weights for each of them."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: tuple[int, int],
        variant: Variant,
        settings: LIFSettings,
        delays: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        long = tuple(side > 1 for side in size)
        kernel, stride, padding = (
            (many if long[0] else few, many if long[1] else few)
            for many, few in ((KERNEL, 1), (2, 1), (KERNEL // 2, 0))
        )
        self.delay = DelayLine(delays) if delays else None
        self.synapse = Conv2d(inputs * len(delays or (0,)), outputs, kernel, variant, stride=stride, padding=padding)
        self.neuron = LIF(variant, settings, shape=(outputs, 1, 1))

    def forward(self, x: Tensor, run: Run) -> Tensor:
        """Spikes [… , outputs, height, width]."""
        heard = x if self.delay is None else self.delay(x, run)
        spikes: Tensor = self.neuron(self.synapse(heard, run), run)
        return spikes


class SpikingConvNet(SpikingNetwork):
    """Convolutions of ``widths`` channels, dense layers of ``hidden`` neurons; input [T, B, inputs, height, width].

    A convolution halves every axis that is longer than one: of a cochlea's [1, 1, channels] the row of channels.
    ``delays`` are those of the first layer, and each further layer has twice as long ones: with [0, 1, 2, 3] the third
    layer's are [0, 4, 8, 12], so a few weights see a long time.
    """

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int],
        classes: int,
        variant: Variant = BAYESIAN,
        settings: LIFSettings | None = None,
        *,
        size: tuple[int, int],
        hidden: Sequence[int] = (),
        delays: Sequence[int] | None = None,
        readout_decay: float | None = None,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        if not widths:
            raise ValueError("widths is empty; expected the channels of at least one convolution")
        settings, variant = settings or LIFSettings(), variant.through_time(steps)
        self.maps = nn.ModuleList()
        for number, (before, width) in enumerate(zip([inputs, *widths[:-1]], widths, strict=True)):
            self.maps.append(ConvLayer(before, width, size, variant, settings, _longer(delays, number)))
            size = (size[0] + 1) // 2, (size[1] + 1) // 2
        self.flatten = nn.Flatten()
        neurons = widths[-1] * size[0] * size[1]
        self.hidden = nn.ModuleList()
        for number, width in enumerate(hidden, len(widths)):
            neuron = LIF(variant, settings, shape=(width,))
            self.hidden.append(DenseLayer(neurons, width, variant, neuron, _longer(delays, number)))
            neurons = width
        self.readout = LeakyReadout(neurons, classes, settings.decay if readout_decay is None else readout_decay)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Logits from [(T,) B, inputs, height, width]."""
        for layer in self.maps:
            x = layer(x, run)
        x = self.flatten(x)
        for layer in self.hidden:
            x = layer(x, run)
        logits: Tensor = self.readout(x, run)
        return logits


def _longer(delays: Sequence[int] | None, layer: int) -> list[int] | None:
    """The delays of layer number ``layer``: d·2^layer."""
    return None if delays is None else [delay << layer for delay in delays]
