"""What onnxruntime joins on its own account must not change an order of additions.

On x86 it turns convolutions and the sums behind them into one operator of the layout NCHWc; elsewhere (disabled here:
``NchwcTransformer``) it joins a convolution and any sum of its result; a constant factor behind a convolution goes into
its weights. Channels that fill a vector register, and layers whose grids differ, are what shows it.
"""

import pytest
import torch
from torch import Tensor, nn

from axonnx.export.collapsed import CollapseSettings
from axonnx.models import LIF, Conv2d, Current, LeakyReadout, Network, Run, SpikingNetwork, SpikingResNet
from axonnx.runtime.format.contract import InputContract

from ..running import Comparison, Exported, export, open_session
from ..small_networks import counts, stir

ARRIVING = InputContract(name="events", shape=(2, 8, 8), steps=40, largest=15)
PLATFORMS = {"x86": (), "others": ("NchwcTransformer",)}


def wide_residual(shortcut: str) -> Network:
    torch.manual_seed(5)
    network = SpikingResNet(2, (16, 32), 1, 5, size=8, shortcut=shortcut)
    stir(network)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("conv2.norm.scale"):
                parameter.mul_(0.05)  # a finer grid than that of the stream it is added to
    return network


class Scaled(SpikingNetwork):
    """A current that is scaled and shifted behind its convolution, by buffers of a layer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.stem = Conv2d(2, 8, 3, padding=1)
        self.affine = nn.Module()
        self.affine.register_buffer("scale", torch.rand(8, 1, 1))
        self.affine.register_buffer("shift", torch.randn(8, 1, 1))
        self.neuron = LIF()
        self.readout = LeakyReadout(512, 5)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        current = self.stem(x, run).mean * self.affine.scale + self.affine.shift
        return self.readout(self.neuron(Current(current), run).flatten(-3), run)


def compare_on(exported: Exported, platform: str) -> Comparison:
    x = counts(ARRIVING, 7, 40)
    noises = exported.noises(x)
    session = open_session(exported.model, PLATFORMS[platform])
    there = Exported(exported.collapsed, exported.contract, exported.model, session)
    comparison = Comparison()
    comparison.add(exported.on_torch(x, noises), there.on_onnxruntime(x, noises))
    return comparison


@pytest.fixture(scope="module", params=["pool", "conv", "affine", "stochastic"])
def fused_somewhere(request) -> Exported:
    if request.param == "affine":
        return export(Scaled(), ARRIVING)
    stochastic = request.param == "stochastic"
    mode = CollapseSettings("stochastic" if stochastic else "mfa")
    return export(wide_residual("pool" if stochastic else request.param), ARRIVING, mode)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sums_behind_convolutions_keep_their_order(fused_somewhere, platform):
    compare_on(fused_somewhere, platform).hold(("spikes", "membranes", "logits"))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("mode", ["mfa", "stochastic"])
def test_a_single_channel_keeps_its_variance(mode, platform):
    """A gain for one channel looks like any constant factor behind a convolution."""
    torch.manual_seed(1)
    network = SpikingResNet(2, (1, 2), 1, 5, size=8)
    stir(network)
    compare_on(export(network, ARRIVING, CollapseSettings(mode)), platform).hold(("spikes", "membranes", "logits"))


def test_the_fusions_are_there_to_be_kept_apart(fused_somewhere):
    """Without the reshape behind each convolution the same comparison fails: this test's own proof."""
    bare = _without_reshapes(fused_somewhere)
    differing = [compare_on(bare, platform).differing["membranes"] for platform in PLATFORMS]
    assert max(differing) > 0


def _without_reshapes(exported: Exported) -> Exported:
    model = type(exported.model).FromString(exported.data)
    body = next(node for node in model.graph.node if node.op_type == "Scan").attribute[0].g
    convolutions = {node.output[0] for node in body.node if node.op_type == "Conv"}
    for node in [node for node in body.node if node.op_type == "Reshape" and node.input[0] in convolutions]:
        for user in body.node:
            user.input[:] = [node.input[0] if name == node.output[0] else name for name in user.input]
        body.node.remove(node)
    return Exported(exported.collapsed, exported.contract, model, open_session(model))
