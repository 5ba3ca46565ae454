"""The regularisers: closed forms, the empirical-Bayes identity, normalisation, noiseless neurons."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from axonnx.models import (
    MEAN_FIELD,
    BinaryMLP,
    GaussianPosterior,
    Sample,
    SpikingMLP,
    kl_of_neurons,
    kl_of_weights,
    quadratic_of_neurons,
    variant,
)


def test_closed_forms_by_hand():
    """z = 2 and z = −1: ½ (ln 5 + ln 2) and 4 + 1, over a batch of 2."""
    gap, variance = torch.tensor([[1.0], [-3.0]]), torch.tensor([[0.25], [9.0]])
    assert kl_of_neurons(gap, variance, batch=2).item() == pytest.approx(0.25 * (math.log(5) + math.log(2)))
    assert quadratic_of_neurons(gap, variance, batch=2).item() == pytest.approx(2.5)


@given(mean=st.floats(-50, 50), std=st.floats(1e-3, 50))
@settings(deadline=None, derandomize=True)
def test_empirical_bayes_prior_gives_half_log_one_plus_ratio(mean, std):
    """With τ² = m² + σ², KL(N(m, σ²) ‖ N(0, τ²)) is ½ ln(1 + m²/σ²); no other τ² gives less."""
    m, s = torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64)
    tau = (m * m + s * s).sqrt()
    closed = kl_of_neurons(m, s * s, batch=1)
    torch.testing.assert_close(kl_divergence(Normal(m, s), Normal(0.0, tau)), closed, rtol=1e-9, atol=1e-12)
    for factor in (0.9, 1.1, math.sqrt(0.5)):  # the last is the paper's τ² = (m² + σ²)/2
        assert kl_divergence(Normal(m, s), Normal(0.0, factor * tau)) > closed


@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_kl_of_weights_sums_over_all_weights_of_any_granularity(granularity):
    posterior = GaussianPosterior((3, 2, 3, 3), granularity).double()
    with torch.no_grad():
        posterior.log_std += torch.randn_like(posterior.log_std)
    tau = (posterior.mean.square() + posterior.full_variance).sqrt()
    expected = kl_divergence(Normal(posterior.mean, posterior.full_variance.sqrt()), Normal(0.0, tau)).sum()
    torch.testing.assert_close(kl_of_weights(posterior), expected)


def test_kl_of_a_network_sums_neurons_and_steps_and_averages_the_batch():
    net = SpikingMLP(5, [4, 3], 2)
    x = (torch.rand(6, 3, 5) < 0.5).float()
    output = net(x)
    terms = [
        torch.log1p(seen.gap[t, b].square() / seen.variance[t, b]).sum() / 2
        for seen in output.observations.values()
        for t in range(6)
        for b in range(3)
    ]
    torch.testing.assert_close(net.regulariser(output, "neuron"), torch.stack(terms).sum() / 3)
    squares = [(seen.gap.square() / seen.variance).sum() / 3 for seen in output.observations.values()]
    torch.testing.assert_close(net.regulariser(output, "quadratic"), torch.stack(squares).sum())


def test_a_repeated_batch_has_the_same_kl():
    net = BinaryMLP(5, [4, 3], 2)
    x = torch.rand(3, 5)
    once, twice = (net(batch).kl() for batch in (x, torch.cat([x, x])))
    torch.testing.assert_close(once, twice)


def test_kl_of_a_networks_weights_does_not_depend_on_the_data():
    net = BinaryMLP(5, [4, 3], 2)
    posteriors = [layer.synapse.posterior for layer in net.hidden]
    expected = sum(kl_of_weights(posterior) for posterior in posteriors)
    for x in (torch.zeros(1, 5), torch.rand(7, 5)):
        torch.testing.assert_close(net.regulariser(net(x), "weight"), expected)


def test_a_network_without_posterior_has_no_regulariser():
    net = BinaryMLP(5, [4], 2, variant("sg-nbn-1"))
    output = net(torch.rand(3, 5))
    for kind in ("neuron", "weight", "quadratic"):
        assert net.regulariser(output, kind) == 0


@pytest.mark.parametrize("term", [kl_of_neurons, quadratic_of_neurons])
def test_noiseless_neurons_add_nothing_and_pass_no_gradient(term):
    gap = torch.tensor([0.0, 3.0, -2.0, 1.0], requires_grad=True)
    variance = torch.tensor([0.0, 0.0, 1e-30, 1.0], requires_grad=True)
    value = term(gap, variance, batch=1)
    value.backward()
    assert value == term(torch.tensor([1.0]), torch.tensor([1.0]), batch=1)
    assert torch.equal(gap.grad[:3], torch.zeros(3))
    assert torch.equal(variance.grad[:3], torch.zeros(3))
    assert gap.grad[3] > 0 > variance.grad[3]


@pytest.mark.parametrize("fire", [MEAN_FIELD, Sample()], ids=["mean-field", "sample"])
def test_a_silent_input_gives_a_finite_kl_and_finite_gradients(fire):
    """No active input and no base noise: κ = 0 in the first layer."""
    net = BinaryMLP(5, [4, 3], 2)
    output = net(torch.zeros(2, 5), fire)
    (output.logits.sum() + output.kl() + output.kl("quadratic")).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad.isfinite().all(), name
    assert (net.hidden[0].synapse.posterior.raw_mean.grad == 0).all()


@pytest.mark.parametrize("term", [kl_of_neurons, quadratic_of_neurons])
def test_gradcheck(term):
    gap = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    variance = (0.1 + torch.rand(4, 3, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda g, v: term(g, v, batch=4), (gap, variance))


def test_gradcheck_of_the_kl_of_weights():
    def kl(raw_mean, log_std):
        posterior = GaussianPosterior((3, 3), "neuron", mask=1.0 - torch.eye(3)).double()
        del posterior.raw_mean, posterior.log_std
        posterior.raw_mean, posterior.log_std = raw_mean, log_std
        return kl_of_weights(posterior)

    raw_mean = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    log_std = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(kl, (raw_mean, log_std))
