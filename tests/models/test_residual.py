"""Pooling and residual blocks: how currents and their variances travel on the shortcut."""

import pytest
import torch
from torch import Tensor

from axonnx.models import (
    MEAN_FIELD,
    AveragePool2d,
    BinaryNetwork,
    BinaryNeuron,
    Current,
    Forced,
    ResidualBlock,
    Run,
    Variant,
    WholePool2d,
)


def test_pooling_of_spikes_is_their_mean():
    pooled = AveragePool2d(2)(torch.tensor([[[[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]]]))
    assert pooled.tolist() == [[[[0.25, 1.0]]]]


@pytest.mark.parametrize("leading", [(), (2,), (3, 2)], ids=["image", "batch", "sequence"])
def test_pooling_keeps_leading_axes(leading):
    x = torch.rand(*leading, 3, 4, 4)
    expected = x.unflatten(-1, (2, 2)).unflatten(-3, (2, 2)).mean((-1, -3))
    torch.testing.assert_close(AveragePool2d(2)(x), expected)


@pytest.mark.parametrize("window", [0, 3, 6, -2])
def test_a_window_is_a_power_of_two(window):
    with pytest.raises(ValueError, match=f"window is {window}; expected a power of two"):
        AveragePool2d(window)


@pytest.mark.parametrize(("height", "width", "pixels"), [(4, 4, 16), (3, 4, 16), (5, 2, 16), (1, 7, 8), (6, 8, 64)])
def test_a_whole_map_is_summed_and_divided_by_a_power_of_two(height, width, pixels):
    x = torch.randint(0, 9, (3, 2, 4, height, width)).float()
    assert torch.equal(WholePool2d(height, width)(x), x.sum((-1, -2), keepdim=True) / pixels)
    assert torch.equal(WholePool2d(height, width)(x[0]), x[0].sum((-1, -2), keepdim=True) / pixels)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_statistical_pooled_current_has_the_moments_of_pooled_samples(window, check_moments):
    """4000 samples of a Gaussian current with independent positions; |z| < 4.5 for up to 32 means and variances."""
    generator = torch.Generator().manual_seed(21)
    current = Current(torch.randn(2, 4, 4), 0.1 + torch.rand(2, 1, 4), torch.tensor([0.5, 2.0]).view(2, 1, 1))
    noise = torch.randn(4000, 2, 4, 4, generator=generator)
    pool = AveragePool2d(window)
    pooled = pool.current(current)
    check_moments("pooled", pool(current.mean + current.variance.sqrt() * noise), pooled.mean, pooled.variance)


def test_a_current_without_variance_pools_without_one():
    assert AveragePool2d(2).current(Current(torch.rand(1, 4, 4))).variance is None


def test_independent_currents_add_their_variances():
    a = Current(torch.tensor([1.0, 2.0]), torch.tensor([0.5]), torch.tensor([1.0, 4.0]))
    b = Current(torch.tensor([10.0, 20.0]), torch.tensor([0.25, 0.25]))
    total = a + b
    assert total.mean.tolist() == [11.0, 22.0]
    assert total.variance.tolist() == [0.75, 2.25]
    for mixed in (a + Current(b.mean), Current(b.mean) + a):
        assert mixed.variance.tolist() == a.variance.tolist()
    assert (Current(a.mean) + Current(b.mean)).variance is None


class Block(BinaryNetwork):
    """One residual block on a stream that is given."""

    def __init__(self, stride: int, outputs: int, shortcut: str, variant: Variant) -> None:
        super().__init__()
        self.block = ResidualBlock(
            3, outputs, variant, lambda _: BinaryNeuron(variant), stride=stride, shortcut=shortcut
        )

    def compute(self, x: Tensor, run: Run) -> Tensor:
        raise NotImplementedError

    def outputs(self, stream: Current, spikes1: Tensor, spikes2: Tensor) -> Current:
        """The block's stream, with both layers of neurons made to give these spikes."""
        forced = Forced({"block.neuron1": spikes1, "block.neuron2": spikes2}, MEAN_FIELD)
        return self.block(stream, Run(self, forced))


def spikes(*shape: int) -> Tensor:
    return (torch.rand(shape) < 0.5).float()


@pytest.mark.parametrize("normalisation", ["scale", "none"])
@pytest.mark.parametrize(("stride", "outputs"), [(1, 3), (1, 5), (2, 3), (2, 5)])
@pytest.mark.parametrize("shortcut", ["pool", "conv"])
def test_the_stream_is_shortcut_plus_second_convolution(shortcut, stride, outputs, normalisation):
    """Mean and variance, with and without a change of resolution and width."""
    net = Block(stride, outputs, shortcut, Variant(normalisation=normalisation))
    stream = Current(torch.randn(2, 3, 4, 4), torch.rand(2, 3, 4, 4))
    size = 4 // stride
    first, second = spikes(2, 3, 4, 4), spikes(2, outputs, size, size)
    found = net.outputs(stream, first, second)
    inner = net.block.conv2.moments(second)
    changes = stride > 1 or outputs > 3
    if changes and shortcut == "conv":
        projected = net.block.projection.moments(first)
        mean, variance = projected.mean, projected.variance
    else:
        mean, variance = torch.zeros(2, outputs, size, size), torch.zeros(2, outputs, size, size)
        mean[:, :3] = torch.nn.functional.avg_pool2d(stream.mean, stride)
        variance[:, :3] = torch.nn.functional.avg_pool2d(stream.variance, stride) / stride**2
    torch.testing.assert_close(found.mean, mean + inner.mean)
    torch.testing.assert_close(found.variance, variance + inner.variance)
    assert (net.block.projection is not None) == (changes and shortcut == "conv")


def test_a_stream_that_widens_keeps_a_variance_shared_by_its_channels():
    """One σ a layer and no scale: the variance of a stem's current is the same number for all channels."""
    net = Block(1, 5, "pool", Variant(normalisation="none"))
    shared = Current(torch.randn(2, 3, 4, 4), torch.full((2, 1, 4, 4), 0.5))
    second = spikes(2, 5, 4, 4)
    variance = net.outputs(shared, spikes(2, 3, 4, 4), second).variance - net.block.conv2.moments(second).variance
    torch.testing.assert_close(variance[:, :3], torch.full((2, 3, 4, 4), 0.5))
    torch.testing.assert_close(variance[:, 3:], torch.zeros(2, 2, 4, 4), rtol=0, atol=1e-6)


def test_a_block_does_not_narrow():
    with pytest.raises(ValueError, match="cannot narrow its stream from 3 to 2 channels"):
        Block(1, 2, "pool", Variant())
