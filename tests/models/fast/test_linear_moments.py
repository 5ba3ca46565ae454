"""W·x + b with Σ x²: both results and all gradients, against the plain formulas under autograd."""

import pytest
import torch

from axonnx.models.fast.linear_moments import linear_moments


def tensors(dtype):
    torch.manual_seed(0)
    shapes = ((3, 4, 7), (5, 7), (5,))
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes]


def plain(x, weight, bias):
    return x @ weight.T + bias, x.square().sum(-1, keepdim=True)


@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True)], ids=["both", "mean", "activity"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_the_gradient_is_that_of_the_plain_formulas(used, dtype):
    """∂(Σ x²)/∂x = 2 x, and Wᵀ for the mean."""
    given = tensors(dtype)
    weights = [torch.randn(3, 4, 5, dtype=dtype), torch.randn(3, 4, 1, dtype=dtype)]
    found = []
    for compute in (linear_moments, plain):
        terms = [(out * by).sum() for out, by, use in zip(compute(*given), weights, used, strict=True) if use]
        found.append(torch.autograd.grad(sum(terms), given, allow_unused=True))
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-5 if dtype == torch.float32 else 1e-12, atol=1e-6)
            assert ours.abs().max() > 0.1


def test_by_hand():
    x = torch.tensor([[1.0, -3.0]], requires_grad=True)
    mean, activity = linear_moments(x, torch.tensor([[0.5, 0.25]]), torch.tensor([1.0]))
    assert (mean.item(), activity.item()) == (0.75, 10.0)
    (mean + activity).sum().backward()
    assert x.grad.tolist() == [[2.5, -5.75]]  # 0.5 + 2·1, 0.25 − 2·3
