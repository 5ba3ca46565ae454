"""Convolutions with delays: what a network of them hears, and how its map shrinks."""

import pytest
import torch

from axonnx.models import SpikingConvNet
from axonnx.models.maths.firing import MEAN_FIELD

COCHLEA = {"inputs": 1, "widths": [3, 4], "classes": 2, "size": (1, 9), "hidden": [5]}


def test_the_row_of_a_cochlea_is_halved_and_its_height_is_not():
    net = SpikingConvNet(**COCHLEA, delays=[0, 1, 3])
    shapes = [tuple(layer.synapse.posterior.raw_mean.shape) for layer in [*net.maps, *net.hidden]]
    assert shapes == [(3, 3, 1, 5), (4, 9, 1, 5), (5, 3 * 4 * 3)]
    assert [layer.delay.delays for layer in [*net.maps, *net.hidden]] == [(0, 1, 3), (0, 2, 6), (0, 4, 12)]
    seen = net(torch.ones(2, 1, 1, 1, 9)).observations
    assert [tuple(each.spikes.shape[2:]) for each in seen.values()] == [(3, 1, 5), (4, 1, 3), (5,)]


def test_both_axes_of_a_sensor_are_halved():
    net = SpikingConvNet(2, [3], 2, size=(6, 10))
    assert net.maps[0].synapse.posterior.raw_mean.shape == (3, 2, 5, 5)
    assert net(torch.ones(2, 1, 2, 6, 10)).observations["maps.0.neuron"].spikes.shape == (2, 1, 3, 3, 5)


@torch.no_grad()
def test_chunks_with_their_state_are_the_whole():
    torch.manual_seed(0)
    net, x = SpikingConvNet(**COCHLEA, delays=[0, 1]).eval(), 9.0 * (torch.rand(7, 2, 1, 1, 9) < 0.5)
    whole, first = net(x), net(x[:3])
    rest = net(x[3:], MEAN_FIELD, first.state)
    assert whole.observations["hidden.0.neuron"].spikes.any()
    for name, seen in whole.observations.items():
        parts = [part.observations[name].spikes for part in (first, rest)]
        assert torch.equal(torch.cat(parts), seen.spikes)
    torch.testing.assert_close(rest.logits, whole.logits)


@torch.no_grad()
def test_moved_along_the_row_the_first_map_moves_along():
    torch.manual_seed(1)
    net = SpikingConvNet(1, [6], 2, size=(1, 21), delays=[0, 1]).eval()
    x = torch.zeros(4, 1, 1, 1, 21)
    x[:2, 0, 0, 0, 8] = 5.0
    here, there = (net(each).observations["maps.0.neuron"].spikes for each in (x, x.roll(4, -1)))
    assert here.any()
    assert torch.equal(here.roll(2, -1), there)


def test_a_convnet_has_convolutions():
    with pytest.raises(ValueError, match="widths is empty; expected the channels of at least one convolution"):
        SpikingConvNet(1, [], 2, size=(1, 9))
