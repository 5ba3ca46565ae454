"""Residual streams: their variance is a sum of products that is never a map, with the numbers of the plain formulas."""

import pytest
import torch
import torch.nn.functional as nnf

from axonnx.models import LIF, Conv2d, Sample, SpikingResNet
from axonnx.models.fast import core, lif_core
from axonnx.models.maths.current import Current, more_channels
from axonnx.models.pooling import AveragePool2d, pool_pairs

T, B, C, H = 3, 2, 18, 8


def stream(terms, channels=C):
    """A current of several synapses; with its variance as a map beside it."""
    parts = [
        Current(torch.randn(T, B, channels, H, H), torch.rand(T, B, 1, H, H) * 9, torch.rand(channels, 1, 1) / 9)
        for _ in range(terms)
    ]
    whole = Current(parts[0].mean, parts[0].variance)
    found = parts[0]
    for part in parts[1:]:
        found, whole = found + part, whole + Current(part.mean, part.variance)
    return found, whole


@pytest.mark.parametrize("terms", [1, 2, 5])
def test_a_sum_of_currents_keeps_activities_and_gains(terms):
    torch.manual_seed(0)
    found, whole = stream(terms)
    assert found.activity.shape == (T, B, terms, H, H)
    assert torch.equal(found.mean, whole.mean)
    assert torch.equal(found.variance, whole.variance)


def test_pools_and_wider_streams_change_the_activities():
    torch.manual_seed(1)
    found, whole = stream(3)
    pool = AveragePool2d(4)
    pooled, expected = pool.current(found), pool.current(whole)
    assert pooled.activity.shape == (T, B, 3, H // 4, H // 4)
    assert torch.equal(pooled.mean, expected.mean)
    torch.testing.assert_close(pooled.variance, expected.variance, rtol=1e-6, atol=0)
    wider = pooled.widened(7)
    assert torch.equal(wider.variance, nnf.pad(pooled.variance, (0, 0, 0, 0, 0, 7)))
    assert torch.equal(wider.mean, nnf.pad(pooled.mean, (0, 0, 0, 0, 0, 7)))


def test_pools_and_wider_maps_keep_channels_last_with_the_gradient_of_the_plain_formula():
    torch.manual_seed(2)
    leaf = torch.randn(T, B, C, H, H).movedim(2, -1).contiguous().movedim(-1, 2).requires_grad_()
    out = more_channels(pool_pairs(leaf), 6)
    assert core.channels_last(out) is out
    grad = torch.randn_like(out)
    out.backward(grad)
    plain = leaf.detach().requires_grad_()
    nnf.pad(nnf.avg_pool2d(plain.flatten(0, 1), 2), (0, 0, 0, 0, 0, 6)).backward(grad.flatten(0, 1))
    assert torch.equal(leaf.grad, plain.grad)


@pytest.mark.parametrize("channels", [18, 32])
@pytest.mark.parametrize("terms", [2, 5])
def test_neurons_on_a_stream_have_the_bits_and_gradients_of_the_whole_variance(terms, channels):
    """The pass that adds up the products of a neuron's variance, beside the pass that reads the map."""
    torch.manual_seed(3)
    found, whole = stream(terms, channels)
    torch.manual_seed(4)
    results = []
    for current in (found, whole):
        leaves = [
            None if x is None else x.detach().requires_grad_() for x in (current.mean, current.activity, current.gain)
        ]
        zeros = torch.zeros(B, channels, H, H)
        noise = torch.randn(T, B, channels, H, H, generator=torch.Generator().manual_seed(5))
        neuron = LIF()
        given = Current(*leaves), noise, (zeros, zeros, zeros)
        constants = (neuron.decay, neuron.threshold, neuron.base_variance.detach(), None, None)
        assert lif_core.applies(*given, constants, neuron.estimator)
        passed = lif_core.lif_pass(*given, *constants, neuron.estimator, False)
        weights = torch.randn(passed.spikes.shape, generator=torch.Generator().manual_seed(6))
        ((passed.spikes * weights).sum() + 0.1 * passed.log + 0.1 * passed.quadratic).backward()
        results.append((passed, leaves))
    (ours, leaves), (map_pass, map_leaves) = results
    assert torch.equal(ours.spikes, map_pass.spikes)
    assert torch.equal(ours.gap, map_pass.gap)
    torch.testing.assert_close(leaves[0].grad, map_leaves[0].grad, rtol=1e-5, atol=1e-6)
    by_variance = map_leaves[1].grad.double()
    by_activity = torch.stack([(by_variance * gain).sum(2) for gain in found.gain.double()], 2)
    by_gain = torch.stack([(by_variance * found.activity[:, :, k : k + 1]).sum((0, 1, 3, 4)) for k in range(terms)])
    assert float((leaves[1].grad - by_activity).norm() / by_activity.norm()) < 1e-5
    assert float((leaves[2].grad.flatten(1) - by_gain).norm() / by_gain.norm()) < 1e-5


def test_no_map_of_variances_is_kept_for_the_backward_pass():
    torch.manual_seed(3)
    network, x = SpikingResNet(widths=(16, 32), blocks=2, size=16), (torch.rand(12, 2, 2, 16, 16) < 0.2).float()
    sizes = {}

    def keep(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = network(x, Sample())
    gaps = sum(seen.gap.nbytes for seen in output.observations.values())
    assert gaps < sum(sizes.values()) < 1.5 * gaps


def test_a_convolution_of_a_stream_of_spikes_is_channels_last():
    layer = Conv2d(4, 20, 3, padding=1)
    out = layer.moments((torch.rand(T, B, 4, H, H) < 0.3).float())
    assert core.channels_last(out.mean) is out.mean
