"""Every shipped network and one of a user's own, small and with odd sizes, in every way to collapse them."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from axonnx.export.collapsed import CollapseSettings
from axonnx.models import (
    LIF,
    AveragePool2d,
    BatchNorm,
    BinaryMLP,
    BinaryResNet,
    ChannelScale,
    Conv2d,
    DelayLine,
    LeakyReadout,
    LIFSettings,
    Linear,
    Network,
    RecurrentSNN,
    SpikingMLP,
    SpikingNetwork,
    SpikingResNet,
    Variant,
    variant,
)

STEPS = 200
CLASSES = 5
MODES = {
    "mfa": CollapseSettings(weights="float32"),
    "sampled": CollapseSettings(mode="sampled", members=2, weights="float32"),
    "stochastic": CollapseSettings(mode="stochastic", weights="float32"),
    "int8": CollapseSettings(weights="int8"),
    "int16": CollapseSettings(weights="int16"),
}


class TwoBranches(SpikingNetwork):
    """A user's network: a convolution and a recurrent layer side by side, a skip connection, pooling, odd widths."""

    def __init__(self, kind: Variant | None = None) -> None:
        super().__init__()
        kind, settings = kind or variant("sbnn"), LIFSettings()
        self.conv = Conv2d(2, 5, 3, kind, stride=1, padding=1)
        self.fire = LIF(kind, settings)
        self.pool = AveragePool2d(2)
        self.late = DelayLine([0, 1, 3])
        self.deep = Conv2d(15, 3, 3, kind, stride=2, padding=0)
        self.fire_deep = LIF(kind, settings)
        self.flat = Linear(2 * 36, 21, kind)
        self.loop = LIF(kind, settings, recurrent=21)
        self.join = Linear(5 * 9 + 3 + 21, 18, kind)
        self.skip = Linear(72, 18, kind)
        self.top = LIF(kind, settings)
        self.readout = LeakyReadout(18, CLASSES, settings.decay)

    def compute(self, x: Tensor, run) -> Tensor:
        first = 2 if run.sequence else 1
        spikes = self.fire(self.conv(x, run), run)
        pooled = self.pool(spikes)
        deep = self.fire_deep(self.deep(self.late(pooled, run), run), run).flatten(first)
        looped = self.loop(self.flat(x.flatten(first), run), run)
        together = torch.cat([pooled.flatten(first), deep, looped], -1)
        current = self.join(together, run) + self.skip(x.flatten(first), run)
        return self.readout(self.top(current, run), run)


@dataclass(frozen=True)
class Recipe:
    """A network, the shape of its input, and whether it knows time."""

    build: object
    shape: tuple[int, ...]
    spiking: bool = True
    bayesian: bool = True
    steps: int = 40


OWN_DECAYS = LIFSettings(learn_decay="neuron", learn_threshold="neuron")
OWN_DECAYS_TO_ZERO = LIFSettings(learn_decay="neuron", learn_threshold="neuron", reset="zero")
RECIPES = {
    "binary-mlp": Recipe(lambda: BinaryMLP(23, [19, 33], CLASSES), (23,), spiking=False),
    "binary-resnet": Recipe(lambda: BinaryResNet(3, (4, 20), 1, CLASSES, size=8), (3, 8, 8), spiking=False),
    "mlp": Recipe(lambda: SpikingMLP(23, [19, 33], CLASSES), (23,), steps=STEPS),
    "mlp-zero": Recipe(lambda: SpikingMLP(23, [19, 33], CLASSES, settings=LIFSettings(reset="zero")), (23,)),
    "mlp-bntt": Recipe(lambda: SpikingMLP(23, [19, 33], CLASSES, variant("sg-bn"), steps=STEPS), (23,), bayesian=False),
    "recurrent": Recipe(lambda: RecurrentSNN(23, [70, 33], CLASSES), (23,), steps=STEPS),
    "recurrent-weight": Recipe(
        lambda: RecurrentSNN(23, [19, 33], CLASSES, replace(variant("sbnn"), granularity="weight")), (23,)
    ),
    "recurrent-decays": Recipe(lambda: RecurrentSNN(23, [19, 33], CLASSES, settings=OWN_DECAYS), (23,)),
    "resnet-decays": Recipe(
        lambda: SpikingResNet(2, (4, 20), 1, CLASSES, settings=OWN_DECAYS_TO_ZERO, size=(6, 10)), (2, 6, 10), steps=20
    ),
    "binary-counts": Recipe(
        lambda: BinaryResNet(3, (4, 20), 2, CLASSES, size=(4, 12), stream="spikes"), (3, 4, 12), spiking=False
    ),
    "resnet-counts": Recipe(
        lambda: SpikingResNet(2, (4, 20), 2, CLASSES, size=(12, 4), stream="spikes", readout_decay=0.0),
        (2, 12, 4),
        steps=20,
    ),
    "resnet-counts-conv": Recipe(
        lambda: SpikingResNet(2, (4, 8), 2, CLASSES, size=8, stream="spikes", shortcut="conv"), (2, 8, 8), steps=20
    ),
    "resnet": Recipe(lambda: SpikingResNet(2, (4, 20), 1, CLASSES, size=8), (2, 8, 8), steps=20),
    "resnet-conv": Recipe(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, size=(6, 10), shortcut="conv"), (2, 6, 10), steps=20
    ),
    "resnet-bntt": Recipe(
        lambda: SpikingResNet(2, (4, 8), 1, CLASSES, variant("sg-bn"), size=8, steps=STEPS), (2, 8, 8), True, False, 20
    ),
    "two-branches": Recipe(TwoBranches, (2, 6, 6), steps=30),
}
CASES = [
    (name, mode) for name, recipe in RECIPES.items() for mode in MODES if recipe.bayesian or mode in ("mfa", "int8")
]


def build(name: str) -> Network:
    torch.manual_seed(7)
    network = RECIPES[name].build()
    stir(network)
    return network.eval()


@torch.no_grad()
def stir(network: nn.Module) -> None:
    """Scales that are not one, biases that are not zero, running statistics that differ from step to step."""
    for name, parameter in network.named_parameters():
        if name.endswith("decay_logit"):
            parameter.add_(torch.randn_like(parameter))
    for module in network.modules():
        if isinstance(module, ChannelScale | BatchNorm):
            module.scale.mul_(1.0 + torch.rand_like(module.scale))
            module.bias.add_(0.1 * torch.randn_like(module.bias))
        if isinstance(module, BatchNorm):
            module.running_mean.add_(0.3 * torch.randn_like(module.running_mean))
            module.running_variance.mul_(0.3 + torch.rand_like(module.running_variance))
