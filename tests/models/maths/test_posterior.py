"""The Gaussian posterior: shapes, initial values, the mask, samples."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.models import Conv2d, GaussianPosterior, Linear, Recurrent, Variant, divergence_sum

SHAPES = st.sampled_from([(3, 5), (1, 1), (4, 2, 3, 3), (1, 3, 1, 1)])
GRANULARITIES = ["layer", "neuron", "weight"]


def off_diagonal(n: int) -> torch.Tensor:
    return 1.0 - torch.eye(n)


@given(shape=SHAPES, granularity=st.sampled_from(GRANULARITIES))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_granularity_decides_how_many_stds_there_are(shape, granularity):
    posterior = GaussianPosterior(shape, granularity)
    ones = (1,) * (len(shape) - 1)
    expected = {"layer": (1, *ones), "neuron": (shape[0], *ones), "weight": shape}[granularity]
    assert posterior.std.shape == posterior.variance.shape == expected
    assert posterior.full_variance.shape == posterior.mean.shape == shape


@given(shape=SHAPES, granularity=st.sampled_from(GRANULARITIES))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_initial_std_is_half_over_root_fan_in(shape, granularity):
    std = GaussianPosterior(shape, granularity).std
    torch.testing.assert_close(std, torch.full_like(std, 0.5 / math.sqrt(math.prod(shape[1:]))))


@pytest.mark.parametrize("shape", [(200, 50), (64, 8, 3, 3)])
def test_means_are_kaiming_uniform(shape):
    """Uniform on ±√(6/fan_in); of n > 4000 means the largest is above 0.99 of it but for a chance of 1e-18."""
    mean = GaussianPosterior(shape).mean
    bound = math.sqrt(6.0 / math.prod(shape[1:]))
    assert 0.99 * bound < mean.abs().max() <= bound
    z = mean.mean() / (bound / math.sqrt(3 * mean.numel()))
    assert abs(z) < 4.5


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_mask_removes_a_weight_from_mean_variance_sample_kl_and_gradient(granularity):
    n = 5
    posterior = GaussianPosterior((n, n), granularity, mask=off_diagonal(n))
    assert (posterior.raw_mean.diagonal() != 0).all()  # so that the zeros below are the mask's doing
    for masked in (posterior.mean, posterior.full_variance, posterior.sample()):
        assert (masked.diagonal() == 0).all()
        assert (masked[off_diagonal(n) == 1] != 0).all()

    kl = divergence_sum(posterior.mean, posterior.variance, "log")
    ratio = (posterior.raw_mean.square() / posterior.variance)[off_diagonal(n) == 1]
    torch.testing.assert_close(kl, 0.5 * torch.log1p(ratio).sum())

    o = torch.rand(3, n)
    variance, gain = posterior.noise_of(torch.nn.functional.linear, o.square())
    assert gain is None  # a mask makes every row another sum
    (kl + (o @ posterior.mean.T).sum() + variance.sum()).backward()
    assert (posterior.raw_mean.grad.diagonal() == 0).all()
    assert (posterior.raw_mean.grad[off_diagonal(n) == 1] != 0).all()
    if granularity == "weight":
        assert (posterior.log_std.grad.diagonal() == 0).all()


def test_recurrent_synapse_masks_its_diagonal():
    recurrent = Recurrent(4, Variant(granularity="weight"))
    mean, variance = recurrent.weights()
    assert (mean.diagonal() == 0).all()
    assert (variance.diagonal() == 0).all()


@pytest.mark.parametrize("granularity", GRANULARITIES)
def test_statistical_samples_have_the_mean_and_variance_of_the_posterior(granularity, check_moments):
    """4000 weight sets of 20 weights; |z| < 4.5 for 20 means and 20 variances (12 with the mask)."""
    generator = torch.Generator().manual_seed(1)
    for mask in (None, off_diagonal(4)):
        posterior = GaussianPosterior((4, 4 if mask is not None else 5), granularity, mask=mask)
        with torch.no_grad():
            posterior.log_std += 0.7 * torch.randn_like(posterior.log_std)
        samples = torch.stack([posterior.sample(generator) for _ in range(4000)])
        check_moments("masked" if mask is not None else "full", samples, posterior.mean, posterior.full_variance)


def test_samples_repeat_with_the_generator():
    posterior = GaussianPosterior((3, 4))
    a, b = (posterior.sample(torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, posterior.sample(torch.Generator().manual_seed(8)))
    assert not a.requires_grad


def test_learned_spread_is_a_parameter_and_fixed_spread_a_buffer():
    learned, fixed = GaussianPosterior((2, 3)), GaussianPosterior((2, 3), spread="fixed")
    assert set(dict(learned.named_parameters())) == {"raw_mean", "log_std"}
    assert set(dict(fixed.named_parameters())) == {"raw_mean"}
    assert "log_std" in fixed.state_dict()
    assert torch.equal(learned.std, fixed.std)


def test_no_spread_is_a_point_estimate():
    point = GaussianPosterior((2, 3), spread="none")
    assert set(point.state_dict()) == {"raw_mean"}
    assert torch.equal(point.sample(), point.mean)
    assert point.noise_of(torch.nn.functional.linear, torch.ones(1, 3)) == (None, None)
    for spread in ("std", "variance"):
        with pytest.raises(ValueError, match=f"no posterior.*no {spread}"):
            getattr(point, spread)


def test_unknown_granularity_is_refused():
    with pytest.raises(ValueError, match="'column'; known are 'layer', 'neuron' and 'weight'"):
        GaussianPosterior((2, 3), "column")


@pytest.mark.parametrize(("init", "widest"), [("wide", math.sqrt(6.0)), ("narrow", 1.0)])
@pytest.mark.parametrize("initial_std", [0.5, 1.0])
def test_means_begin_uniform_and_spreads_where_they_are_told(init, widest, initial_std):
    """Both scale with 1/√fan_in, whatever the kind of synapse."""
    chosen = Variant(init=init, initial_std=initial_std)
    for synapse in (Linear(72, 500, chosen), Conv2d(8, 500, 3, chosen), Recurrent(300, chosen)):
        posterior = synapse.posterior
        reach = posterior.raw_mean.detach() * math.sqrt(posterior.raw_mean[0].numel())
        assert 0.99 * widest < reach.abs().max() <= widest
        assert reach.var().item() == pytest.approx(widest**2 / 3, rel=0.03)
        torch.testing.assert_close(
            posterior.std.flatten()[0] * math.sqrt(posterior.raw_mean[0].numel()), torch.tensor(initial_std)
        )


@pytest.mark.parametrize(("init", "expected"), [("wide", 8.0), ("narrow", 4 / 3)])
def test_signals_begin_that_far_above_their_noise(init, expected):
    """E[z²] = Var(m)/σ² for any input, as long as the bias is zero."""
    torch.manual_seed(0)
    current = Linear(50, 20_000, Variant(init=init)).moments((torch.rand(1, 50) < 0.3).float())
    assert (current.mean.square() / current.variance).mean().item() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("wrong", [{"init": "kaiming"}, {"initial_std": 0.0}])
def test_a_start_that_is_none_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Variant(**wrong)
