"""Slopes of the estimators against their formulas, written naively in float64."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from axonnx.models import Estimator, Sample, SurrogateGradient, make_estimator

BOTH = [0.0, 1.0]


def grid(limit: float = 4.0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Gaps and variances with z from −limit to limit, for four noise levels."""
    std = torch.tensor([[0.05], [0.5], [1.0], [7.0]], dtype=dtype)
    z = torch.linspace(-limit, limit, 81, dtype=dtype)
    return z * std, (std * std).expand(4, 81)


def naive(gap: Tensor, variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """F, ∂F/∂h* and ∂F/∂κ² by autograd of Φ(gap/√variance)."""
    gap, variance = gap.clone().requires_grad_(), variance.clone().requires_grad_()
    F = Normal(0.0, 1.0).cdf(gap / variance.sqrt())
    F.sum().backward()
    return F.detach(), gap.grad, variance.grad


def assert_slopes(estimator: Estimator, factor: Tensor, gap: Tensor, variance: Tensor, spikes: Tensor) -> None:
    """The estimator's slopes are factor · ∂F/∂h* and factor · ∂F/∂κ²."""
    _, by_gap, by_variance = naive(gap, variance)
    got_gap, got_variance = estimator.slopes(gap, variance, spikes, None)
    torch.testing.assert_close(got_gap, factor * by_gap, rtol=1e-10, atol=1e-14)
    torch.testing.assert_close(got_variance, factor * by_variance, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("outcome", BOTH)
def test_st_slopes_are_the_derivatives_of_the_firing_probability(outcome):
    gap, variance = grid()
    spikes = torch.full_like(gap, outcome)
    assert_slopes(make_estimator("st"), torch.ones_like(gap), gap, variance, spikes)


@pytest.mark.parametrize("outcome", BOTH)
@pytest.mark.parametrize("p", [0, 1, 0.0, 0.3, 0.5, 1.0, "low_variance", lambda F: F * F])
def test_iwst_is_the_importance_weight_times_st(p, outcome):
    """(p/F)^o ((1−p)/(1−F))^(1−o) where F is far enough from 0 and 1 for naive arithmetic: |z| ≤ 4."""
    gap, variance = grid()
    spikes = torch.full_like(gap, outcome)
    F, _, _ = naive(gap, variance)
    mixing = (F > 0.5).double() if p == "low_variance" else p(F) if callable(p) else torch.full_like(F, p)
    factor = (mixing / F) ** spikes * ((1 - mixing) / (1 - F)) ** (1 - spikes)
    assert_slopes(make_estimator("iwst", p=p), factor, gap, variance, spikes)


@pytest.mark.parametrize("outcome", BOTH)
@pytest.mark.parametrize("p", ["F", lambda F: F], ids=["named", "lambda"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("limit", [4.0, 12.0, 1e4])
def test_iwst_with_p_equal_to_f_is_st_bit_for_bit(p, outcome, dtype, limit):
    gap, variance = grid(limit, dtype)
    spikes = torch.full_like(gap, outcome)
    st, iwst = (e.slopes(gap, variance, spikes, None) for e in (make_estimator("st"), make_estimator("iwst", p=p)))
    assert torch.equal(st[0], iwst[0])
    assert torch.equal(st[1], iwst[1])


@pytest.mark.parametrize("outcome", BOTH)
@pytest.mark.parametrize("name", ["iwst", "agr"])
def test_rare_outcomes_are_as_accurate_in_float32_as_in_float64(name, outcome):
    """Up to |z| = 12 the rarer outcome has probability 2e-33; 1 − F would have no digits left in float32."""
    gap, variance = grid(12.0)
    spikes = torch.full_like(gap, outcome)
    exact, _ = make_estimator(name).slopes(gap, variance, spikes, None)
    single, _ = make_estimator(name).slopes(gap.float(), variance.float(), spikes.float(), None)
    ordinary = exact.abs() > 1e-30  # below, float32 itself runs out of exponents
    torch.testing.assert_close(single.double()[ordinary], exact[ordinary], rtol=2e-4, atol=0.0)


@pytest.mark.parametrize("width", [0.1, 0.4, 2.0])
def test_sg_slope_is_a_normal_density_and_ignores_the_variance(width):
    gap, variance = grid()
    spikes = make_estimator("sg", width=width).output(gap, None, None)
    expected = Normal(0.0, torch.tensor(width, dtype=torch.float64)).log_prob(gap).exp()
    for given_variance in (None, variance):
        slope, by_variance = SurrogateGradient(width).slopes(gap, given_variance, spikes, None)
        torch.testing.assert_close(slope, expected, rtol=1e-12, atol=1e-300)
        assert by_variance is None


@pytest.mark.parametrize("name", sorted(Estimator.known))
def test_a_noiseless_neuron_decides_by_its_sign_and_passes_no_gradient(name):
    gap = torch.tensor([-1.0, -1e-6, 0.0, 1e-6, 1.0], requires_grad=True)
    variance = torch.zeros(5, requires_grad=True)
    spikes = make_estimator(name).fire(gap, variance, torch.tensor([5.0, -5.0, -5.0, -5.0, -5.0]))
    assert spikes.tolist() == [0, 0, 1, 1, 1]
    spikes.sum().backward()
    if name != "sg":
        assert (gap.grad == 0).all()
        assert (variance.grad == 0).all()


@pytest.mark.parametrize("name", sorted(set(Estimator.known) - {"sg"}))
def test_estimators_of_probabilities_refuse_a_layer_without_posterior(name):
    gap = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match=f"estimator '{name}' needs weights with a posterior; without one use 'sg'"):
        make_estimator(name).fire(gap, None).sum().backward()


def test_statistical_neurons_fire_with_probability_f(check_z):
    """40000 draws for 41 values of z; binomial |z| < 4.5."""
    z = torch.linspace(-2, 2, 41, dtype=torch.float64)
    std, draws = torch.tensor(0.3, dtype=torch.float64), 40_000
    gap = (z * std).expand(draws, -1)
    noise = Sample(torch.Generator().manual_seed(2)).noise("", gap, 0)
    rate = make_estimator("st").fire(gap, std * std, noise).mean(0)
    F = Normal(0.0, 1.0).cdf(z)
    check_z("firing rate", (rate - F) / (F * (1 - F) / draws).sqrt())


@pytest.mark.parametrize("outcome", BOTH)
def test_agr_is_its_compact_formula(outcome):
    gap, variance = grid()
    spikes = torch.full_like(gap, outcome)
    F, _, _ = naive(gap, variance)
    for k in (0.2, 1.0, 5.0):
        S = lambda x, k=k: torch.sigmoid(x / k)  # noqa: E731
        w1, w0 = (S(F) - 0.5) / F, (0.5 - S(F - 1)) / (1 - F)
        assert_slopes(make_estimator("agr", k=k), w1**spikes * w0 ** (1 - spikes), gap, variance, spikes)


@pytest.mark.parametrize("outcome", BOTH)
def test_agr_tends_to_the_trapezoid_rule(outcome):
    """For k → 0 the factor tends to that of iwst(½), at a rate exp(−P/k) of the drawn outcome's probability P."""
    gap, variance = grid(2.0)
    spikes = torch.full_like(gap, outcome)
    trapezoid, _ = make_estimator("iwst", p=0.5).slopes(gap, variance, spikes, None)
    F, _, _ = naive(gap, variance)
    P = torch.where(spikes == 1, F, 1 - F)
    for k in (0.1, 0.01, 0.001):
        slope, _ = make_estimator("agr", k=k).slopes(gap, variance, spikes, None)
        error = (slope / trapezoid - 1).abs()
        assert (error <= 2 * torch.exp(-P / k) + 1e-12).all()
    assert error.max() < 1e-9


@pytest.mark.parametrize("outcome", BOTH)
@pytest.mark.parametrize("k", [0.2, 1.0])
def test_agr_is_gs_st_integrated_over_the_noise_of_the_observed_spike(outcome, k):
    """o = 1 where u ≥ 1 − F: the mean of gs_st over that part of [0, 1], by Gauss–Legendre quadrature."""
    nodes, weights = (torch.from_numpy(v) for v in np.polynomial.legendre.leggauss(120))
    for z in (-2.0, -0.3, 0.0, 1.5):
        F = 0.5 * math.erfc(-z / math.sqrt(2))
        low, high = (1 - F, 1.0) if outcome else (0.0, 1 - F)
        u = low + (high - low) * (nodes + 1) / 2
        gap = torch.full_like(u, 0.7 * z)
        variance, spikes = torch.full_like(u, 0.49), torch.full_like(u, outcome)
        gs_st, _ = make_estimator("gs_st", k=k).slopes(gap, variance, spikes, torch.special.ndtri(u))
        agr, _ = make_estimator("agr", k=k).slopes(gap, variance, spikes, None)
        torch.testing.assert_close((gs_st * weights / 2).sum(), agr[0], rtol=1e-9, atol=0.0)
