"""Shortcuts that carry counts of spikes, scaled blocks, the plain mean over time: each against its definition."""

import pytest
import torch
import torch.nn.functional as nnf

from axonnx.models import (
    MEAN_FIELD,
    BinaryNetwork,
    BinaryNeuron,
    BinaryResNet,
    CountingBlock,
    LIFSettings,
    ResidualBlock,
    Sample,
    SpikingMLP,
    SpikingResNet,
    Variant,
    variant,
)


class OneBlock(BinaryNetwork):
    """A counting block by itself; its logits are its counts."""

    def __init__(self, inputs: int, outputs: int, **options: object) -> None:
        super().__init__()
        self.block = CountingBlock(inputs, outputs, Variant(), lambda _: BinaryNeuron(), **options)

    def compute(self, x, run):
        return self.block(x, run).flatten(1)


def fired(conv, x):
    """H(conv(x)) of the means, by hand."""
    weight, bias, _ = conv.constants()
    return (nnf.conv2d(x, weight, bias, stride=conv.stride, padding=conv.padding) >= 0).float()


@pytest.mark.parametrize(("shortcut", "stride", "outputs"), [("pool", 1, 3), ("pool", 2, 5), ("conv", 2, 5)])
def test_a_block_adds_its_spikes_to_the_counts(shortcut, stride, outputs):
    torch.manual_seed(0)
    network = OneBlock(3, outputs, stride=stride, shortcut=shortcut)
    block, counts = network.block, torch.randint(0, 4, (2, 3, 8, 8)).float()
    spikes = fired(block.conv2, fired(block.conv1, counts))
    if shortcut == "conv":
        kept = fired(block.projection, counts)
    else:
        kept = nnf.pad(nnf.avg_pool2d(counts, stride), (0, 0, 0, 0, 0, outputs - 3))
    assert torch.equal(network(counts).logits, (kept + spikes).flatten(1))
    assert 0 < spikes.mean() < 1


def test_counts_grow_by_at_most_one_in_each_block_and_reach_the_read_out():
    torch.manual_seed(0)
    network = BinaryResNet(1, (6,), 5, 3, size=4, stream="spikes")
    seen = []
    network.pool.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    network(torch.rand(50, 1, 4, 4), Sample())
    (counts,) = seen
    assert torch.equal(counts, counts.round())
    assert 2 <= counts.max() <= 6
    assert len(network(torch.rand(1, 1, 4, 4)).observations) == 11  # the stem's and two in each block


@pytest.mark.parametrize("kind", ["sbnn", "mfa", "sg-bn"])
def test_a_spiking_network_with_counts_learns_in_one_pass_as_step_by_step(kind):
    torch.manual_seed(0)
    network = SpikingResNet(2, (4, 8), 1, 3, variant(kind), size=4, stream="spikes", steps=5).eval()
    events = (torch.rand(5, 3, 2, 4, 4) < 0.4).float()
    output, state = network(events), None
    for x in events:
        step = network.step(x, state)
        state = step.state
    assert torch.equal(output.logits, step.logits)
    output.logits.square().sum().backward()
    assert all(parameter.grad is not None for name, parameter in network.named_parameters() if "log" not in name)


@pytest.mark.parametrize("stream", ["current", "spikes"])
@pytest.mark.parametrize("scale", [0.0, 0.25])
def test_a_scaled_block_begins_as_less_of_itself(stream, scale):
    network = BinaryResNet(1, (4,), 2, 3, size=4, stream=stream, block_scale=scale)
    for block in network.trunk.blocks:
        assert isinstance(block, CountingBlock if stream == "spikes" else ResidualBlock)
        assert torch.equal(block.conv2.norm.scale, torch.full((4,), scale))
        assert torch.equal(block.conv1.norm.scale, torch.ones(4))
    output = network(torch.rand(3, 1, 4, 4), Sample())
    output.logits.square().sum().backward()
    if scale == 0.0 and stream == "current":  # the stream passes every block as it is
        gaps = [seen.gap for name, seen in output.observations.items() if not name.endswith("neuron2")]
        assert all(torch.equal(gap, gaps[0]) for gap in gaps)
    with pytest.raises(ValueError, match="no scale to begin with"):
        BinaryResNet(1, (4,), 1, 3, Variant(normalisation="none"), size=4, block_scale=0.5)


def test_a_read_out_without_decay_is_the_plain_mean_over_time():
    torch.manual_seed(0)
    network = SpikingMLP(5, [8], 3, settings=LIFSettings(threshold=0.3), readout_decay=0.0)
    output = network((torch.rand(7, 4, 5) < 0.5).float(), MEAN_FIELD)
    spikes = output.observations["hidden.0.neuron"].spikes
    torch.testing.assert_close(output.logits, network.readout.current(spikes).mean(0))
    (found,) = torch.autograd.grad(output.logits.square().sum(), network.readout.weight, retain_graph=True)
    plain = network.readout.current(spikes).mean(0).square().sum()
    torch.testing.assert_close(found, torch.autograd.grad(plain, network.readout.weight)[0])
