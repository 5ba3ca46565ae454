"""Every shipped network, small, with random or trained weights and batch norms that have seen something."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as nnf
from torch import Tensor

from axonnx.models import (
    MEAN_FIELD,
    VARIANTS,
    BatchNorm,
    BinaryMLP,
    BinaryResNet,
    ChannelScale,
    LIFSettings,
    Network,
    RecurrentSNN,
    Sample,
    SpikingMLP,
    SpikingResNet,
    Variant,
)
from axonnx.runtime.format.contract import InputContract

STEPS = 200  # the longest sequence: batch norm through time knows no more
CLASSES = 5


@dataclass(frozen=True)
class Recipe:
    """What a small network is made of."""

    network: str = "spiking-mlp"
    variant: str = "sbnn"
    granularity: str = "layer"
    reset: str = "subtract"
    decay: str = "fixed"
    shortcut: str = "pool"
    weights: str = "random"
    stream: str = "current"
    delays: str = "none"

    @property
    def spiking(self) -> bool:
        return not self.network.startswith("binary")

    @property
    def residual(self) -> bool:
        return self.network.endswith("resnet")

    @property
    def bayesian(self) -> bool:
        return VARIANTS[self.variant].spread != "none"


def input_of(recipe: Recipe, largest: int = 3, shift: int = 0) -> InputContract:
    """What the network of ``recipe`` expects: centred pixels, or counts of events."""
    shape = {"binary-resnet": (3, 8, 8), "spiking-resnet": (2, 8, 8)}.get(recipe.network, (2, 3, 3))
    return InputContract(
        name="events", shape=shape, steps=STEPS if recipe.spiking else None, largest=largest, shift=shift
    )


def build(recipe: Recipe, seed: int = 0) -> Network:
    """The network of ``recipe``; everything in it follows from ``seed``."""
    torch.manual_seed(seed)
    variant = replace(VARIANTS[recipe.variant], granularity=recipe.granularity)
    each = recipe.decay == "of each neuron"
    settings = LIFSettings(
        reset=recipe.reset, learn_decay=LEARNED[recipe.decay], learn_threshold="neuron" if each else False
    )
    network = NETWORKS[recipe.network](variant, settings, recipe)
    stir(network)
    if recipe.weights == "trained":
        train_a_little(network, input_of(recipe), variant)
    return network.eval()


DELAYS = {"none": None, "some": [0, 2, 7]}
LEARNED = {"fixed": False, "learned": True, "of each neuron": "neuron"}
NETWORKS: dict[str, Callable[[Variant, LIFSettings, Recipe], Network]] = {
    "binary-mlp": lambda v, _s, _r: BinaryMLP(18, [12, 9], CLASSES, v),
    "binary-resnet": lambda v, _s, r: BinaryResNet(
        3, (4, 8), 1, CLASSES, v, size=8, shortcut=r.shortcut, stream=r.stream
    ),
    "spiking-mlp": lambda v, s, r: SpikingMLP(18, [12, 9], CLASSES, v, s, steps=STEPS, delays=DELAYS[r.delays]),
    "recurrent-snn": lambda v, s, r: RecurrentSNN(
        18, [12, 9], CLASSES, v, s, steps=STEPS, delays=DELAYS[r.delays], delayed="first"
    ),
    "spiking-resnet": lambda v, s, r: SpikingResNet(
        2, (4, 8), 1, CLASSES, v, s, size=8, shortcut=r.shortcut, stream=r.stream, steps=STEPS
    ),
}


@torch.no_grad()
def stir(network: Network) -> None:
    """Scales that are not one, biases that are not zero, running statistics and spreads that differ."""
    for module in network.modules():
        if isinstance(module, ChannelScale | BatchNorm):
            module.scale.mul_(0.5 + torch.rand_like(module.scale))
            module.bias.add_(0.1 * torch.randn_like(module.bias))
        if isinstance(module, BatchNorm):
            module.running_mean.add_(0.3 * torch.randn_like(module.running_mean))
            module.running_variance.mul_(0.3 + torch.rand_like(module.running_variance))
    for name, parameter in network.named_parameters():
        if name.endswith(("log_std", "log_base_std", "decay_logit", "threshold")):
            parameter.add_(0.4 * torch.randn_like(parameter))


def train_a_little(network: Network, arriving: InputContract, variant: Variant, updates: int = 4) -> None:
    """A few steps of Adam on random data, as the variant is trained: noise where it samples, statistics in norms."""
    network.train()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.02)
    fire = Sample() if variant.fire == "sample" else MEAN_FIELD
    for _ in range(updates):
        x = counts(arriving, 8, 6)
        loss = nnf.cross_entropy(network(x, fire).logits, torch.randint(0, CLASSES, (8,)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def counts(arriving: InputContract, batch: int, steps: int, share: float = 0.3) -> Tensor:
    """Random input within the contract: a ``share`` of values that are not zero; negative ones for images."""
    shape = (steps, batch, *arriving.shape) if arriving.steps else (batch, *arriving.shape)
    lowest = 0 if arriving.steps else -arriving.largest
    values = torch.randint(lowest, arriving.largest + 1, shape) * (torch.rand(shape) < share)
    return values.float() * 2.0**-arriving.shift
