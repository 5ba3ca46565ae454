"""Relaxed estimators: gs, gs_st and gr, with uniform and logistic noise."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from axonnx.models import make_estimator
from axonnx.models.maths.estimators import relaxation

KINDS = ["uniform", "logistic"]


def neurons(n: int = 200) -> tuple[Tensor, Tensor, Tensor]:
    """Gaps, variances and noise of neurons that are neither certain nor at a tie."""
    gap, noise = torch.randn(n, dtype=torch.float64), torch.randn(n, dtype=torch.float64)
    return gap, 0.2 + torch.rand(n, dtype=torch.float64), noise


def argument(gap: Tensor, variance: Tensor, noise: Tensor, kind: str) -> Tensor:
    """x of S_k(x), naively: F − 1 + u, or ln(F/(1−F)) + ln(u/(1−u)), with u = Φ(ε)."""
    F, u = Normal(0.0, 1.0).cdf(gap / variance.sqrt()), Normal(0.0, 1.0).cdf(noise)
    return F - 1 + u if kind == "uniform" else torch.logit(F) + torch.logit(u)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0.3, 1.0])
def test_gs_gradcheck(kind, k):
    """Both gradients, of h* and of κ², in float64."""
    gap, variance, noise = neurons(20)
    gs = make_estimator("gs", k=k, noise=kind)
    assert torch.autograd.gradcheck(
        lambda g, v: gs.fire(g, v, noise), (gap.requires_grad_(), variance.requires_grad_()), atol=1e-8
    )


@pytest.mark.parametrize("kind", KINDS)
def test_gs_emits_the_relaxed_step(kind):
    gap, variance, noise = neurons()
    relaxed = make_estimator("gs", k=0.5, noise=kind).fire(gap, variance, noise)
    torch.testing.assert_close(relaxed, torch.sigmoid(argument(gap, variance, noise, kind) / 0.5))


@pytest.mark.parametrize("kind", KINDS)
def test_gs_st_emits_spikes_with_the_gradient_of_gs(kind):
    gap, variance, noise = neurons()
    gradients = []
    for name in ("gs", "gs_st"):
        g, v = gap.clone().requires_grad_(), variance.clone().requires_grad_()
        spikes = make_estimator(name, k=0.5, noise=kind).fire(g, v, noise)
        spikes.sum().backward()
        gradients.append((g.grad, v.grad))
    assert set(spikes.tolist()) == {0.0, 1.0}
    assert torch.equal(gradients[0][0], gradients[1][0])
    assert torch.equal(gradients[0][1], gradients[1][1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_reproduces_the_decision(kind):
    """x ≥ 0 exactly where the neuron fired, with the very noise that made it fire."""
    gap, variance, noise = neurons(20_000)
    spikes = make_estimator("gs_st", noise=kind).fire(gap, variance, noise)
    x, _ = relaxation(gap / variance.sqrt(), noise, kind)
    assert torch.equal(x >= 0, spikes == 1)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_field_pass_of_gs_is_binary(kind):
    gap, variance, _ = neurons()
    spikes = make_estimator("gs", noise=kind).fire(gap, variance, None)
    assert torch.equal(spikes, (gap >= 0).double())


@pytest.mark.parametrize("outcome", [0.0, 1.0])
@pytest.mark.parametrize("k", [0.3, 1.0])
def test_statistical_gr_is_the_mean_over_the_truncated_noise(outcome, k, check_z):
    """E[S_k'(x) | o] by 400-point quadrature over u | o; 20000 draws of gr(n=1) at 7 values of z, |z-score| < 4.5."""
    nodes, weights = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(400))
    z = torch.linspace(-2.5, 2.5, 7, dtype=torch.float64)
    F = Normal(0.0, 1.0).cdf(z)
    low, high = (1 - F, torch.ones_like(F)) if outcome else (torch.zeros_like(F), 1 - F)
    u = low[:, None] + (high - low)[:, None] * (nodes + 1) / 2
    s = torch.sigmoid((torch.logit(F)[:, None] + torch.logit(u)) / k)
    chain = Normal(0.0, 1.0).log_prob(z).exp() / (F * (1 - F))
    expected = ((s * (1 - s) / k) * weights / 2).sum(1) * chain

    drawn = torch.full((20_000, 7), outcome, dtype=torch.float64)
    one_each, _ = make_estimator("gr", k=k, n=1).slopes(z.expand(20_000, 7), torch.ones_like(drawn), drawn, None)
    check_z("gr", (one_each.mean(0) - expected) / (one_each.std(0) / 20_000**0.5))


def test_statistical_gr_averages_its_samples(check_z):
    """gr(n=16) has 1/16 of the variance of gr(n=1): the log ratio of two variances of 20000 draws, |z| < 4.5."""
    z = torch.full((20_000,), 0.4, dtype=torch.float64)
    spikes = torch.ones_like(z)
    one, many = (make_estimator("gr", n=n).slopes(z, torch.ones_like(z), spikes, None)[0] for n in (1, 16))

    def relative_variance_of_the_variance(x: Tensor) -> Tensor:
        centred = x - x.mean()
        return (centred**4).mean() / x.var() ** 2 - 1

    spread = (relative_variance_of_the_variance(one) + relative_variance_of_the_variance(many)) / len(z)
    check_z("log variance ratio", torch.log(one.var() / many.var() / 16) / spread.sqrt())


def test_gr_repeats_with_the_seed():
    slopes = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        slopes.append(make_estimator("gr").slopes(torch.ones(5), torch.ones(5), torch.ones(5), None)[0])
    assert torch.equal(slopes[0], slopes[1])
    assert not torch.equal(slopes[0], slopes[2])
