"""The read-out's sum over time: the plain loop bit for bit, and its closed-form gradient."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axonnx.models.fast.leaky_sum import leaky_sum


def plain(current: Tensor, membrane: Tensor, total: Tensor, decay: Tensor) -> tuple[Tensor, Tensor]:
    for arriving in current:
        membrane = decay * membrane + arriving
        total = total + membrane
    return membrane, total


def arguments(steps: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    shape = (2, 3)
    return (
        torch.randn(steps, *shape, dtype=dtype, requires_grad=True),
        torch.randn(shape, dtype=dtype, requires_grad=True),
        torch.randn(shape, dtype=dtype, requires_grad=True),
    )


@given(steps=st.integers(1, 40), decay=st.sampled_from([0.0, 0.5, 0.9048374, 1.0]), seed=st.integers(0, 1000))
@settings(deadline=None, derandomize=True, max_examples=40)
def test_equals_the_plain_loop_bit_for_bit(steps, decay, seed):
    torch.manual_seed(seed)
    beta = torch.tensor(decay)
    given_arguments = arguments(steps, torch.float32)
    for fast, slow in zip(leaky_sum(*given_arguments, beta), plain(*given_arguments, beta), strict=True):
        assert torch.equal(fast, slow)


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("decay", [0.0, 0.6, 1.0])
def test_gradcheck(steps, decay):
    beta = torch.tensor(decay, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda *given_arguments: leaky_sum(*given_arguments, beta), arguments(steps))


@pytest.mark.parametrize("output", [0, 1], ids=["membrane", "total"])
def test_gradient_of_each_output_is_that_of_the_loop(output):
    """One output used and the other not: its missing gradient counts as zero."""
    beta = torch.tensor(0.8, dtype=torch.float64)
    given_arguments = arguments(30)
    found, expected = (
        torch.autograd.grad(function(*given_arguments, beta)[output].square().sum(), given_arguments, allow_unused=True)
        for function in (leaky_sum, plain)
    )
    for fast, slow in zip(found, expected, strict=True):
        torch.testing.assert_close(fast, torch.zeros_like(fast) if slow is None else slow, rtol=1e-12, atol=1e-14)
