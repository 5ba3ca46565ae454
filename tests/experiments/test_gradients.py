"""The bias study's own truths: what is summed over patterns is what sampling gives in the long run."""

import pytest
import torch

from axonnx.models import Sample
from axonnx.models.maths.estimators import StraightThrough, make_estimator
from experiments.measures.gradients import (
    FIRST,
    FixedNoise,
    all_estimates,
    compare,
    cross_entropy,
    sampled_estimates,
)
from experiments.measures.references import exact_gradient, ram

X = torch.tensor([[0.7, -0.4, 1.2]], dtype=torch.float64)


def test_sums_over_patterns_are_what_many_draws_give():
    network = FixedNoise([3, 4, 3], make_estimator("iwst", p=0.5), scale=0.7, seed=1)
    estimates, p, _ = all_estimates(network, X)
    assert float(p.sum()) == pytest.approx(1.0, abs=1e-12)
    draws = 20_000
    network.offset = torch.zeros((draws, 4), dtype=torch.float64, requires_grad=True)
    output = network(X.expand(draws, -1), Sample(torch.Generator().manual_seed(0)))
    (drawn,) = torch.autograd.grad(cross_entropy(output.logits).sum(), network.offset)
    z = (drawn.mean(0) - p @ estimates) / (drawn.std(0) / draws**0.5)
    assert z.abs().max() < 4.5
    variance = p @ (estimates - p @ estimates).square().sum(1)
    assert float(drawn.var(0).sum()) == pytest.approx(float(variance), rel=0.1)


def test_p_equal_f_is_straight_through():
    one = FixedNoise([3, 4], StraightThrough(), scale=1.0, seed=2)
    other = FixedNoise([3, 4], make_estimator("iwst", p="F"), scale=1.0, seed=2)
    torch.testing.assert_close(all_estimates(one, X)[0], all_estimates(other, X)[0], rtol=0, atol=0)


def test_bias_falls_with_the_size_of_the_currents():
    biases, squares = [], []
    for scale in (1.0, 0.5, 0.25, 0.125):
        network = FixedNoise([3, 4, 4], StraightThrough(), scale, seed=3)
        estimates, p, square = all_estimates(network, X)
        biases.append(compare(estimates, p, exact_gradient(network, X, cross_entropy)[FIRST])["bias"])
        squares.append(square)
    assert biases == sorted(biases, reverse=True)
    assert squares == sorted(squares, reverse=True)
    assert biases[-1] < 0.02


def test_an_unbiased_reference_agrees_with_the_truth_in_the_mean():
    network = FixedNoise([3, 3, 3], StraightThrough(), scale=1.0, seed=4)
    draws = sampled_estimates(ram, network, X, 400, seed=0)
    exact = exact_gradient(network, X, cross_entropy)[FIRST]
    z = (draws.mean(0) - exact) / (draws.std(0) / len(draws) ** 0.5)
    assert z.abs().max() < 4.5


def test_comparison_of_the_truth_with_itself():
    exact = torch.tensor([1.0, -2.0], dtype=torch.float64)
    same = compare(exact.expand(5, 2), torch.full((5,), 0.2, dtype=torch.float64), exact)
    assert same == pytest.approx({"bias": 0.0, "variance": 0.0, "cosine": 1.0, "cosine_of_one": 1.0})
