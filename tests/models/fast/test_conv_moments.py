"""W ∗ x + b with Σ x² under each window: both results and all gradients, against the plain formulas under autograd."""

import pytest
import torch
import torch.nn.functional as nnf

from axonnx.models import Conv2d, Sample, SpikingResNet
from axonnx.models.fast.conv_moments import Window, conv_moments
from axonnx.models.maths.current import Current
from axonnx.models.synapses import Synapse

WINDOWS = [
    (Window([1, 1], [1, 1], [1, 1]), (3, 3)),
    (Window([2, 1], [0, 2], [1, 1]), (2, 3)),
    (Window([2, 2], [1, 1], [1, 2]), (3, 2)),
    (Window([2, 2], [0, 0], [1, 1]), (1, 1)),
]


def plain(x, weight, bias, window):
    """As the formulas say: the activity is the product of squares with ones."""
    ones = torch.ones_like(weight[:1])
    return nnf.conv2d(x, weight, bias, *window), nnf.conv2d(x.square(), ones, None, *window)


def tensors(dtype, size):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in ((6, 3, 7, 8), (5, 3, *size), (5,))]


@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=["both", "mean", "activity"])
@pytest.mark.parametrize(("window", "size"), WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_gradient_is_that_of_the_plain_formulas(used, window, size, dtype):
    given = tensors(dtype, size)
    shapes = [out.shape for out in plain(*given, window)]
    weights = [torch.randn(shape, dtype=dtype) for shape in shapes]
    found = []
    for compute in (conv_moments, plain):
        outs = compute(*given, window)
        terms = [(out * by).sum() for out, by, use in zip(outs, weights, used, strict=True) if use]
        found.append(torch.autograd.grad(sum(terms), given, allow_unused=True))
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-4 if dtype == torch.float32 else 1e-12, atol=1e-5)
            assert ours.abs().max() > 0.1


@pytest.mark.parametrize(("window", "size"), WINDOWS, ids=str)
def test_of_spikes_and_counts_every_bit_is_that_of_the_plain_formulas(window, size):
    torch.manual_seed(1)
    weight, bias = torch.randn(5, 3, *size), torch.randn(5)
    for x in (torch.zeros(2, 3, 7, 8), torch.ones(2, 3, 7, 8), torch.randint(0, 16, (2, 3, 7, 8)).float()):
        for ours, theirs in zip(conv_moments(x, weight, bias, window), plain(x, weight, bias, window), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("granularity", ["layer", "neuron"])
def test_a_layer_has_the_moments_of_the_general_formula(granularity):
    from axonnx.models import Variant

    torch.manual_seed(2)
    layer = Conv2d(3, 4, (3, 2), Variant(granularity=granularity), stride=2, padding=(1, 0))
    x = (torch.rand(2, 5, 3, 8, 6) < 0.3).float()
    ours, general = layer.moments(x), Synapse.moments(layer, x)
    assert isinstance(ours, Current)
    assert torch.equal(ours.mean, general.mean)
    assert torch.equal(ours.variance, general.variance)


def test_no_squares_are_kept_for_the_backward_pass():
    """Spikes and gaps of every layer of neurons; nothing else of their size."""
    torch.manual_seed(3)
    network, x = SpikingResNet(widths=(8, 8), blocks=2), (torch.rand(12, 2, 2, 32, 32) < 0.2).float()
    sizes = {}

    def keep(tensor):
        sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = network(x, Sample())
    seen = output.observations.values()
    needed = sum(4 * (layer.gap.numel() + layer.spikes.numel() * 13 / 12) for layer in seen)
    assert needed < sum(sizes.values()) < 1.15 * needed
