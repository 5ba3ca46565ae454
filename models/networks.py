"""The networks of the paper. Every variant of its tables is one of these with another ``Variant``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import Tensor, nn

from axonnx.models.delays import DelayLine
from axonnx.models.network import BinaryNetwork, Network, SpikingNetwork
from axonnx.models.neurons import LIF, BinaryNeuron, LeakyReadout, LIFSettings, LinearReadout
from axonnx.models.pooling import WholePool2d
from axonnx.models.residual import CountingBlock, NeuronFactory, ResidualBlock, Shortcut
from axonnx.models.run import Run
from axonnx.models.synapses import Conv2d, Linear, Synapse
from axonnx.models.variant import BAYESIAN, Variant

Stream = Literal["current", "spikes"]
Delayed = Literal["first", "all"]
KERNEL = 5  # of an axis longer than one, which a convolution halves


class _Layer(nn.Module):
    """Synapses and the neurons they feed; with ``delays`` there are synapses for each of them."""

    synapse: Synapse
    neuron: nn.Module

    def __init__(self, delays: Sequence[int] | None) -> None:
        super().__init__()
        self.delay = DelayLine(delays) if delays else None

    def forward(self, x: Tensor, run: Run) -> Tensor:
        """Return spikes [… , outputs]; of maps [… , outputs, height, width]."""
        heard = x if self.delay is None else self.delay(x, run)
        spikes: Tensor = self.neuron(self.synapse(heard, run), run)
        return spikes


class DenseLayer(_Layer):
    """Linear synapses and the neurons they feed; with ``delays`` there are synapses for each of them."""

    def __init__(
        self, inputs: int, outputs: int, variant: Variant, neuron: nn.Module, delays: Sequence[int] | None = None
    ) -> None:
        super().__init__(delays)
        self.synapse = Linear(inputs * len(delays or (0,)), outputs, variant)
        self.neuron = neuron


class BinaryMLP(BinaryNetwork):
    """Dense layers of binary neurons: ``BinaryMLP(64, [128, 128], 10)``."""

    def __init__(self, inputs: int, hidden: Sequence[int], classes: int, variant: Variant = BAYESIAN) -> None:
        super().__init__()
        sizes = _sizes(inputs, hidden)
        self.hidden = nn.ModuleList(DenseLayer(i, o, variant, BinaryNeuron(variant)) for i, o in sizes)
        self.readout = LinearReadout(hidden[-1], classes)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Compute logits from [B, …]."""
        return _dense(self.hidden, self.readout, x.flatten(1), run)


class SpikingMLP(SpikingNetwork):
    """Dense layers of spiking neurons; ``recurrent`` layers also hear themselves.

    ``delays``: synapses for each of these time steps, of the ``delayed`` layers: the first one, or all hidden ones.
    """

    def __init__(
        self,
        inputs: int,
        hidden: Sequence[int],
        classes: int,
        variant: Variant = BAYESIAN,
        settings: LIFSettings | None = None,
        *,
        recurrent: bool = False,
        readout_decay: float | None = None,
        steps: int | None = None,
        delays: Sequence[int] | None = None,
        delayed: Delayed = "all",
    ) -> None:
        super().__init__()
        settings, variant = settings or LIFSettings(), variant.through_time(steps)
        self.hidden = nn.ModuleList(
            DenseLayer(
                i,
                o,
                variant,
                LIF(variant, settings, recurrent=o if recurrent else None, shape=(o,)),
                delays if number == 0 or delayed == "all" else None,
            )
            for number, (i, o) in enumerate(_sizes(inputs, hidden))
        )
        self.readout = LeakyReadout(hidden[-1], classes, _decay_of(readout_decay, settings))

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Compute logits from [(T,) B, …]."""
        return _dense(self.hidden, self.readout, x.flatten(2 if run.sequence else 1), run)


class RecurrentSNN(SpikingMLP):
    """The paper's network for SHD: two fully recurrent layers of 256; further options are those of ``SpikingMLP``."""

    def __init__(
        self,
        inputs: int = 700,
        hidden: Sequence[int] = (256, 256),
        classes: int = 20,
        variant: Variant = BAYESIAN,
        settings: LIFSettings | None = None,
        **options: Any,
    ) -> None:
        super().__init__(inputs, hidden, classes, variant, settings, recurrent=True, **options)


class _ResidualTrunk(nn.Module):
    """Stem, stages of residual blocks, and neurons: [… , C, H, W] to spikes (or counts of them) for each channel.

    ``stream`` says what shortcuts carry: the membrane's ``current``, with neurons on top, or ``spikes``, with neurons
    behind the stem.

    Each stage after the first halves the resolution, and so may the stem (``stem_stride``). Depth in the paper's
    counting: 2 + 2·(blocks in all), stem and read-out included.
    """

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int],
        blocks: int,
        variant: Variant,
        neuron: NeuronFactory,
        shortcut: Shortcut,
        stem_stride: int,
        stream: Stream,
        block_scale: float,
    ) -> None:
        super().__init__()
        self.counts = stream == "spikes"
        self.stem = Conv2d(inputs, widths[0], 3, variant, stride=stem_stride, padding=1)
        previous = [widths[0], *widths[:-1]]
        block_kind = CountingBlock if self.counts else ResidualBlock
        self.blocks = nn.ModuleList(
            block_kind(
                before if block == 0 else width,
                width,
                variant,
                neuron,
                stride=2 if block == 0 and stage > 0 else 1,
                shortcut=shortcut,
                scale=block_scale,
            )
            for stage, (before, width) in enumerate(zip(previous, widths, strict=True))
            for block in range(blocks)
        )
        self.neuron = neuron(widths[0] if self.counts else widths[-1])

    def forward(self, x: Tensor, run: Run) -> Tensor:
        """Return spikes of the last stage, or their counts."""
        stream = self.stem(x, run)
        if self.counts:
            stream = self.neuron(stream, run)
        for block in self.blocks:
            stream = block(stream, run)
        out: Tensor = stream if self.counts else self.neuron(stream, run)
        return out


class _ResNet(Network):
    """A trunk of residual blocks, what is left of each channel after pooling, and the read-out."""

    trunk: _ResidualTrunk
    pool: WholePool2d
    readout: nn.Module

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Compute logits from [(T,) B, C, H, W]."""
        logits: Tensor = self.readout(self.pool(self.trunk(x, run)).flatten(-3), run)
        return logits


class BinaryResNet(_ResNet, BinaryNetwork):
    """The paper's network for CIFAR-10: 26 layers, 64→128→256→512 channels; input [B, 3, 32, 32].

    ``size`` is the input's side, or its (height, width).
    """

    def __init__(
        self,
        inputs: int = 3,
        widths: Sequence[int] = (64, 128, 256, 512),
        blocks: int = 3,
        classes: int = 10,
        variant: Variant = BAYESIAN,
        *,
        size: int | tuple[int, int] = 32,
        shortcut: Shortcut = "pool",
        stem_stride: int = 1,
        stream: Stream = "current",
        block_scale: float = 1.0,
    ) -> None:
        super().__init__()

        def neuron(channels: int) -> nn.Module:
            return BinaryNeuron(variant)

        self.trunk = _ResidualTrunk(inputs, widths, blocks, variant, neuron, shortcut, stem_stride, stream, block_scale)
        self.pool = WholePool2d(*_last_sides(size, stem_stride, len(widths)))
        self.readout = LinearReadout(widths[-1], classes)


class SpikingResNet(_ResNet, SpikingNetwork):
    """The paper's network for DVS Gesture: 20 layers, 32→64→128 channels; input [T, B, 2, 32, 32].

    ``size`` is the input's side, or its (height, width).
    """

    def __init__(
        self,
        inputs: int = 2,
        widths: Sequence[int] = (32, 64, 128),
        blocks: int = 3,
        classes: int = 11,
        variant: Variant = BAYESIAN,
        settings: LIFSettings | None = None,
        *,
        size: int | tuple[int, int] = 32,
        shortcut: Shortcut = "pool",
        stem_stride: int = 1,
        stream: Stream = "current",
        block_scale: float = 1.0,
        readout_decay: float | None = None,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        settings, variant = settings or LIFSettings(), variant.through_time(steps)

        def neuron(channels: int) -> nn.Module:
            return LIF(variant, settings, shape=(channels, 1, 1))

        self.trunk = _ResidualTrunk(inputs, widths, blocks, variant, neuron, shortcut, stem_stride, stream, block_scale)
        self.pool = WholePool2d(*_last_sides(size, stem_stride, len(widths)))
        self.readout = LeakyReadout(widths[-1], classes, _decay_of(readout_decay, settings))


def _decay_of(readout_decay: float | None, settings: LIFSettings) -> float:
    """Return the read-out's β, by default that of the neurons; with 0, logits are the plain mean of W·o + b."""
    return settings.decay if readout_decay is None else readout_decay


def _sizes(inputs: int, hidden: Sequence[int]) -> list[tuple[int, int]]:
    if not hidden:
        raise ValueError("hidden is empty; expected the sizes of at least one hidden layer")
    return list(zip([inputs, *hidden[:-1]], hidden, strict=True))


def _dense(hidden: nn.ModuleList, readout: nn.Module, x: Tensor, run: Run) -> Tensor:
    for layer in hidden:
        x = layer(x, run)
    logits: Tensor = readout(x, run)
    return logits


def _last_sides(size: int | tuple[int, int], stem_stride: int, stages: int) -> tuple[int, int]:
    """Return height and width after all stages, which the final pooling covers whole; ``size`` is (height, width)."""
    height, width = (size, size) if isinstance(size, int) else size
    shrink = stem_stride << (stages - 1)
    if height % shrink or width % shrink:
        near = [max(1, round(side / shrink)) * shrink for side in (width, height)]
        raise ValueError(
            f"input of {width}×{height} pixels cannot shrink {shrink} times; expected multiples of {shrink}, "
            f"e.g. {near[0]}×{near[1]}"
        )
    return height // shrink, width // shrink


class ConvLayer(_Layer):
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
        super().__init__(delays)
        long = tuple(side > 1 for side in size)
        kernel, stride, padding = (
            (many if long[0] else few, many if long[1] else few)
            for many, few in ((KERNEL, 1), (2, 1), (KERNEL // 2, 0))
        )
        self.synapse = Conv2d(inputs * len(delays or (0,)), outputs, kernel, variant, stride=stride, padding=padding)
        self.neuron = LIF(variant, settings, shape=(outputs, 1, 1))


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
        self.readout = LeakyReadout(neurons, classes, _decay_of(readout_decay, settings))

    def compute(self, x: Tensor, run: Run) -> Tensor:
        """Compute logits from [(T,) B, inputs, height, width]."""
        for layer in self.maps:
            x = layer(x, run)
        return _dense(self.hidden, self.readout, self.flatten(x), run)


def _longer(delays: Sequence[int] | None, layer: int) -> list[int] | None:
    """Return the delays of layer number ``layer``: d·2^layer."""
    return None if delays is None else [delay << layer for delay in delays]
