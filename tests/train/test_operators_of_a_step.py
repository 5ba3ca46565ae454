"""A training step as a GPU would see it: few operators, none that waits for the device, none on another one.

Tensors of the device ``meta`` have shapes and no numbers: whoever asks for a number there (``.item()``, a branch on a
value, a copy to the host) is refused by torch. The operators are counted as they reach a device.
"""

from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from axonnx.models import MEAN_FIELD, BinaryMLP, RecurrentSNN, Regulariser, Sample, SpikingMLP, SpikingResNet, variant
from axonnx.train.loop import _gradient_norms, _total_norm
from axonnx.train.objective import Objective

REGULARISERS = [Regulariser("log"), *(Regulariser("quadratic", of) for of in ("neuron", "current", "weight"))]
WAITING = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "unique")


class Operators(TorchDispatchMode):
    """Counts operators, and the devices of all that goes in and comes out."""

    def __init__(self):
        super().__init__()
        self.names, self.devices = Counter(), Counter()

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        result = operator(*arguments, **(options or {}))
        self.names[operator.overloadpacket.__name__] += 1
        leaves = tree_leaves((arguments, options, result))
        self.devices.update(leaf.device.type for leaf in leaves if isinstance(leaf, torch.Tensor))
        return result

    @property
    def count(self):
        return sum(self.names.values())


def step(network, shape, regulariser=None, fire=None):
    """The operators of forward pass, loss, backward pass and gradient norms."""
    for part in network.modules():
        getattr(part, "existing", None)  # is counted in the first step of a run, and known in all others
    network = network.to("meta")
    regulariser = regulariser or Regulariser()
    network.keeps_currents = regulariser.of == "current"
    x, labels = torch.zeros(shape, device="meta"), torch.zeros(shape[-2], dtype=torch.long, device="meta")
    if len(shape) > 3:
        labels = torch.zeros(shape[1], dtype=torch.long, device="meta")
    with Operators() as seen:
        output = network(x, fire or Sample())
        Objective(0.1, regulariser)(network, output, labels).total.backward()
        _total_norm(_gradient_norms(network))
    assert set(seen.devices) == {"meta"}
    assert not [name for name in seen.names if name.startswith(WAITING)]
    return seen


@pytest.mark.parametrize("regulariser", REGULARISERS, ids=lambda chosen: f"{chosen.form}-{chosen.of}")
def test_operators_grow_with_steps_and_not_with_size(regulariser):
    """Batches of 4 and of 8,192 (of 512 neurons) take as many operators; each step as many as another."""
    counts = [step(RecurrentSNN(30, [16, 16], 5), (steps, 4, 30), regulariser).count for steps in (3, 5, 9)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0
    wide = RecurrentSNN(700, [512, 512], 20)
    assert step(wide, (9, 8192, 700), regulariser).count == counts[2]


def test_operators_grow_with_layers():
    counts = [step(SpikingMLP(30, [16] * layers, 5), (6, 4, 30)).count for layers in (1, 2, 4)]
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0]) > 0
    assert counts[1] - counts[0] < 70 * 6


@pytest.mark.parametrize("name", ["sbnn", "mfa", "fpv", "nkl-sampled", "sg-nbn-1"])
def test_every_variant_stays_on_its_device(name):
    chosen = variant(name)
    fire = Sample() if chosen.fire == "sample" else MEAN_FIELD
    assert step(RecurrentSNN(30, [16], 5, chosen), (6, 4, 30), fire=fire).count < 1200
    assert step(SpikingMLP(30, [16], 5, chosen), (6, 4, 30), fire=fire).count < 600


def test_binary_and_residual_networks_stay_on_their_device():
    assert step(BinaryMLP(30, [16, 16], 5), (4, 30)).count < 300
    few, many = (step(SpikingResNet(), (steps, 2, 2, 32, 32)).count for steps in (1, 2))
    assert many < 2 * few


def test_the_test_can_fail():
    """A number that is asked for, a tensor on another device, a waiting operator."""
    x = torch.zeros(3, device="meta")
    with Operators() as seen, pytest.raises((RuntimeError, NotImplementedError)):
        bool((x == 1).all())
    with Operators() as seen:
        torch.zeros(3) + 1
    assert set(seen.devices) == {"cpu"}
