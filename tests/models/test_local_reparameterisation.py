"""The moments of W·o against Monte Carlo over weights that were really drawn."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axonnx.models import MEAN_FIELD, Conv2d, Linear, Run, Variant

GRANULARITIES = ["layer", "neuron", "weight"]
SAMPLES = 4000


def randomise(synapse: torch.nn.Module) -> None:
    """Move stds, scales and biases away from their regular starting values."""
    with torch.no_grad():
        synapse.posterior.log_std += 0.5 * torch.randn_like(synapse.posterior.log_std)
        synapse.norm.scale += 0.5 * torch.randn_like(synapse.norm.scale)
        synapse.norm.bias += torch.randn_like(synapse.norm.bias)


def currents_of_real_weights(synapse: torch.nn.Module, x: Tensor) -> Tensor:
    """a ⊙ (W·x) + b for SAMPLES weight sets, [samples, B, …]; all sets as channels of one big product."""
    generator = torch.Generator().manual_seed(11)
    channels = (-1, *(1,) * (synapse.posterior.mean.dim() - 2))
    scale, bias = (value.detach().view(channels) for value in (synapse.norm.scale, synapse.norm.bias))
    weights = torch.cat([synapse.posterior.sample(generator) for _ in range(SAMPLES)])
    products = synapse.product(x, weights).unflatten(1, (SAMPLES, -1)).transpose(0, 1)
    return scale * products + bias


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("graded", [False, True], ids=["spikes", "graded"])
def test_statistical_linear_moments(granularity, graded, check_moments):
    """4000 weight sets; |z| < 4.5 for the means and variances of 4 × 6 currents, one sample without any spike."""
    synapse = Linear(9, 6, Variant(granularity=granularity))
    randomise(synapse)
    x = torch.randn(4, 9) if graded else (torch.rand(4, 9) < 0.5).float()
    x[0] = 0.0
    current = synapse(x, Run(synapse, MEAN_FIELD))
    check_moments("linear", currents_of_real_weights(synapse, x), current.mean, current.variance)


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (1, 1), (2, 1)])
@pytest.mark.parametrize("graded", [False, True], ids=["spikes", "graded"])
def test_statistical_conv2d_moments(granularity, stride, padding, graded, check_moments):
    """4000 weight sets; |z| < 4.5 for the means and variances of up to 2 × 3 × 25 currents."""
    synapse = Conv2d(2, 3, 3, Variant(granularity=granularity), stride=stride, padding=padding)
    randomise(synapse)
    x = torch.randn(2, 2, 5, 5) if graded else (torch.rand(2, 2, 5, 5) < 0.5).float()
    current = synapse(x, Run(synapse, MEAN_FIELD))
    check_moments("conv2d", currents_of_real_weights(synapse, x), current.mean, current.variance)


@given(
    batch=st.integers(1, 3),
    inputs=st.integers(1, 6),
    outputs=st.integers(1, 6),
    granularity=st.sampled_from(GRANULARITIES),
    active=st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_shared_variances_are_those_of_the_single_weights(batch, inputs, outputs, granularity, active):
    """σ² Σ o² is Σ σ² o² to rounding; no active input gives a variance of exactly zero."""
    torch.manual_seed(0)
    synapse = Linear(inputs, outputs, Variant(granularity=granularity))
    x = (torch.rand(batch, inputs) < active).float()
    current = synapse.moments(x)
    torch.testing.assert_close(current.variance, x.square() @ synapse.posterior.full_variance.T, rtol=1e-5, atol=0.0)
    if active == 0.0:
        assert (current.variance == 0).all()
        assert (current.mean == 0).all()


def test_convolution_over_a_sequence_is_that_of_each_step():
    synapse = Conv2d(2, 3, 3, padding=1)
    x = torch.rand(4, 2, 2, 5, 5)
    whole = synapse.moments(x)
    for t in range(4):
        step = synapse.moments(x[t])
        assert torch.equal(whole.mean[t], step.mean)
        assert torch.equal(whole.variance[t], step.variance)
