"""Small networks that together have every spike operator, every instruction and every way to store weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as nnf
from torch import Tensor, nn

from axonnx.export.collapsed import CollapseSettings
from axonnx.models import (
    LIF,
    AveragePool2d,
    BinaryMLP,
    BinaryResNet,
    ChannelScale,
    Conv2d,
    FilledPool2d,
    GaussianPosterior,
    LeakyReadout,
    LIFSettings,
    Linear,
    MaxPool2d,
    Network,
    RecurrentSNN,
    ResonateAndFire,
    SpikingMLP,
    SpikingNetwork,
    SpikingResNet,
    variant,
)
from axonnx.models.general import Adaptation, DirectReadout, Dynamics, GeneralLIF, LeakyCurrent

from ..runtime.engines.small_networks import CLASSES, MODES, TwoBranches

STEPS = 20
MODE_OF = {
    **MODES,
    "step": CollapseSettings(weights="float32"),
}  # how a file's last word says that it was collapsed and written
ZERO = LIFSettings(reset="zero")
OWN = LIFSettings(learn_decay="neuron", learn_threshold="neuron")
OWN_TO_ZERO = replace(OWN, reset="zero")
QUARTERS = LIFSettings(decay=0.5, base_std=0.0)
SINGLE = replace(variant("sbnn"), granularity="weight")  # every weight has a variance of its own
NORM = variant("sg-bn")
SCALES = replace(variant("sbnn"), normalisation="scale_through_time")
POINT = variant("sg-nbn-1")  # no posterior


class Moves(SpikingNetwork):
    """Maps that are transposed, sliced, padded, expanded, subtracted and concatenated between their synapses."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.fire = Conv2d(7, 6, 3, padding=1), LIF()
        self.flat, self.top = Linear(6 * 4 * 4 + 6 * 2 * 5 + 3 * 7, 20), LIF()
        self.readout = LeakyReadout(20, CLASSES)

    def compute(self, x: Tensor, run) -> Tensor:
        first = 2 if run.sequence else 1
        turned = x.permute(*range(first), -1, -3, -2)  # [2, 5, 7] becomes [7, 2, 5]
        spikes = self.fire(self.conv(turned, run), run)
        some = nnf.pad(spikes[..., 1:4], (1, 0, 0, 2))  # [6, 4, 4]
        rows = spikes[..., :1, :].expand_as(spikes) - spikes  # [6, 2, 5], −1 to 1
        flat = [part.flatten(first) for part in (some, rows, turned[..., :1, 0:5:2])]
        return self.readout(self.top(self.flat(torch.cat(flat, -1), run), run), run)


class Pools(SpikingNetwork):
    """Maxima of currents and of spikes, means of currents and of spikes, over squares, rows and thirds."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.largest, self.fire = Conv2d(2, 6, 3, POINT, padding=1), MaxPool2d((1, 2)), LIF(POINT)
        self.tall = nn.MaxPool2d((2, 1))
        self.deep, self.pairs, self.fire_deep = Conv2d(6, 9, 3, POINT, padding=1), AveragePool2d(4), LIF(POINT)
        self.mean, self.thirds = AveragePool2d(2), FilledPool2d(1, 3)
        self.top, self.fire_top = Linear(9 + 2 * 8 * 5, 17, POINT), LIF(POINT)
        self.readout = LeakyReadout(17, CLASSES)

    def compute(self, x: Tensor, run) -> Tensor:  # [2, 16, 16]
        fine = self.tall(self.fire(self.largest.current(self.fine(x, run)), run))  # [6, 8, 8]
        deep = self.mean(self.fire_deep(self.pairs.current(self.deep(fine, run)), run))  # [9, 1, 1]
        flat = [part.flatten(2 if run.sequence else 1) for part in (deep, self.thirds(x[..., ::2, :]))]
        return self.readout(self.fire_top(self.top(torch.cat(flat, -1), run), run), run)


class Convolutions(SpikingNetwork):
    """Every geometry: strides, dilations, groups, one channel a group, windows that are not square, no padding."""

    def __init__(self, inputs: int = 4) -> None:
        super().__init__()
        self.halves = Conv2d(inputs, 10, (3, 2), stride=(2, 1), padding=(1, 0), groups=2)
        self.wide = Conv2d(10, 18, 3, padding=(2, 3), dilation=(2, 3))
        self.each = Conv2d(18, 18, (2, 3), stride=(1, 2), padding=(0, 1), groups=18)
        self.point = Conv2d(18, 7, 1, stride=2)
        self.fires = nn.ModuleList([LIF(), LIF(settings=ZERO), LIF(), LIF()])
        self.readout = LeakyReadout(7 * 2 * 3, CLASSES)

    def compute(self, x: Tensor, run) -> Tensor:  # [inputs, 9, 12]
        for synapse, fire in zip((self.halves, self.wide, self.each, self.point), self.fires, strict=True):
            x = fire(synapse(x, run), run)
        return self.readout(x.flatten(2 if run.sequence else 1), run)


class WideMap(SpikingNetwork):
    """Rows of pixels longer than a vector of any processor, with a rest."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.fire = Conv2d(2, 17, 3, padding=1), LIF()
        self.second, self.fire_second = Conv2d(17, 34, 3, stride=2, padding=1), LIF()
        self.pool, self.readout = nn.MaxPool2d((1, 19)), LeakyReadout(34 * 3, CLASSES)

    def compute(self, x: Tensor, run) -> Tensor:  # [2, 5, 37]
        spikes = self.fire_second(self.second(self.fire(self.first(x, run), run), run), run)
        return self.readout(self.pool(spikes).flatten(2 if run.sequence else 1), run)


class General(SpikingNetwork):
    """Dense neurons of other libraries: every reset, a synaptic current, adaptation, a layer that hears itself."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.leak = Linear(23, 37), LeakyCurrent(torch.tensor(0.5))
        self.first = GeneralLIF(_dynamics((37,)), synaptic_decay=torch.tensor(0.3), recurrent=37)
        self.between = Linear(37, 21)
        self.second = GeneralLIF(_dynamics((21,)), adaptation=_adaptation((21,)))
        self.down = Linear(21, CLASSES)
        self.third = GeneralLIF(
            Dynamics(*torch.tensor([0.9, 1.0, 1.0, 0.0, 0.0, 0.0])),
            adaptation=Adaptation(*torch.tensor([0.8, 0.1, 0.4, 0.2, 0.0])),
            synaptic_decay=torch.tensor(0.6),
        )
        self.readout = DirectReadout(torch.tensor(0.7))

    def compute(self, x: Tensor, run) -> Tensor:
        inner = self.first(self.leak(self.up(x, run), run), run)
        upper = self.second(self.between(inner, run), run)
        return self.readout(self.third(self.down(upper, run), run), run)


class GeneralMaps(SpikingNetwork):
    """Maps of neurons of other libraries, with constants of channels and of single neurons."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = Conv2d(2, 5, 3, padding=1)
        self.first = GeneralLIF(_dynamics((5, 1, 1)), synaptic_decay=0.2 + 0.1 * torch.arange(5.0).reshape(5, 1, 1))
        self.deep = Conv2d(5, 18, 3, stride=2)
        self.second = GeneralLIF(_dynamics((18, 2, 3)), adaptation=_adaptation((18, 1, 1)))
        self.leak = LeakyCurrent(torch.linspace(0.1, 0.9, CLASSES))
        self.down, self.readout = Linear(18 * 6, CLASSES), DirectReadout(torch.tensor(0.0))

    def compute(self, x: Tensor, run) -> Tensor:  # [2, 6, 7]
        spikes = self.second(self.deep(self.first(self.conv(x, run), run), run), run)
        return self.readout(self.leak(self.down(spikes.flatten(2 if run.sequence else 1), run), run), run)


class GeneralTies(SpikingNetwork):
    """Neurons of other libraries whose constants are multiples of a quarter."""

    def __init__(self) -> None:
        super().__init__()
        constants = Dynamics(*torch.tensor([0.5, 1.0, 0.0, 0.5, 0.0, 0.25]))
        self.up, self.first = Linear(11, 17), GeneralLIF(constants)
        self.down = Linear(17, CLASSES)
        self.second = GeneralLIF(constants, adaptation=Adaptation(*torch.tensor([0.5, 0.0, 0.5, 0.25, 0.5])))
        self.readout = DirectReadout(torch.tensor(0.5))

    def compute(self, x: Tensor, run) -> Tensor:
        return self.readout(self.second(self.down(self.first(self.up(x, run), run), run), run), run)


class Resonators(SpikingNetwork):
    """Neurons that oscillate: maps with constants of channels, and dense ones that hear themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = Conv2d(2, 5, 3, padding=1)
        self.maps = ResonateAndFire(torch.linspace(0.05, 0.25, 5).reshape(5, 1, 1), threshold=0.5)
        self.flat = Linear(5 * 6 * 7, 19)
        self.tuned = ResonateAndFire(
            torch.linspace(0.02, 0.4, 19), decay=torch.linspace(0.7, 1.0, 19), threshold=0.4, recurrent=19
        )
        self.readout = LeakyReadout(19, CLASSES)

    def compute(self, x: Tensor, run) -> Tensor:  # [2, 6, 7]
        maps = self.maps(self.conv(x, run), run)
        return self.readout(self.tuned(self.flat(maps.flatten(-3), run), run), run)


class Chosen(SpikingNetwork):
    """A read-out that decides by one time step: the last one, or that of the largest membrane."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self.up, self.fire, self.down = Linear(23, 19), LIF(), Linear(19, CLASSES)
        self.readout = DirectReadout(torch.tensor(0.75), 0.5, rule)

    def compute(self, x: Tensor, run) -> Tensor:
        return self.readout(self.down(self.fire(self.up(x, run), run), run), run)


@torch.no_grad()
def make_exact(network: nn.Module) -> None:
    """Round weights and biases to multiples of a quarter: membranes then often equal their thresholds."""
    for module in network.modules():
        if isinstance(module, GaussianPosterior):
            module.raw_mean.copy_(torch.round(4 * module.raw_mean) / 4)
        if isinstance(module, ChannelScale):
            module.scale.fill_(1.0)
            module.bias.copy_(torch.arange(len(module.bias)) % 5 / 4)


def _dynamics(shape: tuple[int, ...]) -> Dynamics:
    """Each of the resets in turn: none, to zero, by an amount, later by an amount, later to zero, to a value."""
    rows = [(0, 0, 0, 0), (1, 0, 0, 0), (0, 0.6, 0, 0), (0, 0, 0, 0.9), (0, 0, 1, 0), (1, -0.3, 0, 0)]
    kind = torch.arange(torch.Size(shape).numel()) % len(rows)
    resets = [torch.tensor([float(row[at]) for row in rows])[kind].reshape(shape) for at in range(4)]
    number = torch.arange(torch.Size(shape).numel()).reshape(shape)
    return Dynamics(0.5 + 0.4 * (number % 7) / 7, 0.6 + 0.1 * (number % 5), *resets)


def _adaptation(shape: tuple[int, ...]) -> Adaptation:
    """Thresholds that rise, currents that fall, or both."""
    number = torch.arange(torch.Size(shape).numel()).reshape(shape)
    gains = 0.3 * (number % 3 != 0), 0.2 * (number % 3 != 1)
    return Adaptation(torch.tensor(0.7), torch.tensor(0.05), 0.5 + 0.1 * (number % 4), *gains)


@dataclass(frozen=True)
class Golden:
    """A network, the ways in which it is written, and its input: (value − centre) · 2^−shift, up to ``largest``.

    ``ties``: its numbers are multiples of a quarter, so that many membranes are equal to their thresholds.
    """

    build: Callable[[], Network]
    shape: tuple[int, ...]
    modes: tuple[str, ...]
    spiking: bool = True
    steps: int = STEPS
    largest: int = 3
    centre: int = 0
    shift: int = 0
    ties: bool = False


NETWORKS = {
    "binary-mlp": Golden(
        lambda: BinaryMLP(23, [19, 33], CLASSES), (23,), ("int16", "sampled", "stochastic"), spiking=False
    ),
    "binary-pixels": Golden(
        lambda: BinaryResNet(3, (4, 18), 1, CLASSES, size=8),
        (3, 8, 8),
        ("mfa", "stochastic"),
        spiking=False,
        largest=128,
        centre=128,
        shift=7,
    ),
    "binary-counts": Golden(
        lambda: BinaryResNet(3, (4, 18), 1, CLASSES, size=(4, 12), stream="spikes"), (3, 4, 12), ("int8",), False
    ),
    "mlp": Golden(lambda: SpikingMLP(23, [70, 18], CLASSES), (23,), ("mfa", "sampled", "stochastic")),
    "mlp-events": Golden(lambda: SpikingMLP(150, [130], CLASSES), (150,), ("int8",), largest=1),
    "mlp-zero": Golden(lambda: SpikingMLP(23, [19, 33], CLASSES, settings=ZERO), (23,), ("mfa", "stochastic")),
    "mlp-bntt": Golden(lambda: SpikingMLP(23, [19, 33], CLASSES, NORM, steps=STEPS), (23,), ("int8",)),
    "mlp-scales": Golden(lambda: SpikingMLP(23, [19], CLASSES, SCALES, steps=STEPS), (23,), ("mfa", "stochastic")),
    "delays": Golden(lambda: SpikingMLP(23, [19, 33], CLASSES, delays=[0, 2, 5]), (23,), ("mfa",)),
    "recurrent": Golden(lambda: RecurrentSNN(23, [40, 33], CLASSES), (23,), ("mfa", "stochastic", "int8")),
    "recurrent-weight": Golden(lambda: RecurrentSNN(23, [19, 33], CLASSES, SINGLE), (23,), ("stochastic",)),
    "recurrent-own": Golden(
        lambda: RecurrentSNN(23, [19, 33], CLASSES, settings=OWN_TO_ZERO), (23,), ("mfa", "stochastic")
    ),
    "resnet": Golden(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, size=8), (2, 8, 8), ("sampled", "stochastic"), steps=12
    ),
    "resnet-own": Golden(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, settings=OWN, size=(6, 10)), (2, 6, 10), ("mfa",), steps=12
    ),
    "resnet-own-zero": Golden(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, settings=OWN_TO_ZERO, size=(6, 10)),
        (2, 6, 10),
        ("stochastic",),
        steps=12,
    ),
    "resnet-conv": Golden(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, size=(6, 10), shortcut="conv"), (2, 6, 10), ("int16",), steps=12
    ),
    "resnet-counts": Golden(
        lambda: SpikingResNet(2, (4, 18), 1, CLASSES, size=(12, 4), stream="spikes", readout_decay=0.0),
        (2, 12, 4),
        ("mfa", "stochastic"),
        steps=12,
    ),
    "resnet-bntt": Golden(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, NORM, size=8, steps=12), (2, 8, 8), ("mfa",), steps=12
    ),
    "two-branches": Golden(TwoBranches, (2, 6, 6), ("mfa", "stochastic", "int8"), steps=16),
    "moves": Golden(Moves, (2, 5, 7), ("mfa", "stochastic", "int16"), steps=12),
    "pools": Golden(Pools, (2, 16, 16), ("mfa", "int8"), steps=10),
    "convolutions": Golden(Convolutions, (4, 9, 12), ("mfa", "stochastic", "int8"), steps=12),
    "wide-map": Golden(WideMap, (2, 5, 37), ("int8", "int16"), steps=6),
    "pixels": Golden(
        lambda: SpikingMLP(50, [40], CLASSES), (50,), ("mfa", "int8"), steps=12, largest=128, centre=128, shift=7
    ),
    "general": Golden(General, (23,), ("mfa", "int8", "step")),
    "ties-binary": Golden(
        lambda: BinaryMLP(11, [17, 6], CLASSES), (11,), ("mfa", "stochastic"), spiking=False, ties=True
    ),
    "ties": Golden(
        lambda: SpikingMLP(11, [17, 6], CLASSES, settings=QUARTERS), (11,), ("mfa", "stochastic"), ties=True
    ),
    "ties-zero": Golden(
        lambda: SpikingMLP(11, [17, 6], CLASSES, settings=replace(QUARTERS, reset="zero")),
        (11,),
        ("mfa", "stochastic"),
        ties=True,
    ),
    "ties-general": Golden(GeneralTies, (11,), ("mfa",), ties=True),
    "general-maps": Golden(GeneralMaps, (2, 6, 7), ("mfa", "int16"), steps=16),
    "resonators": Golden(Resonators, (2, 6, 7), ("mfa", "int8", "step")),
    "last": Golden(lambda: Chosen("last"), (23,), ("mfa", "step")),
    "maximum": Golden(lambda: Chosen("maximum"), (23,), ("mfa", "step", "sampled")),
}
