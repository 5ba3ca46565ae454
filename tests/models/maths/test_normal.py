"""The normal distribution's functions against the C library's erfc, into both tails."""

import math

import pytest
import torch

from axonnx.models.maths import normal

Z = [-37.0, -20.0, -12.0, -8.0, -5.5, -3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 5.5, 8.0, 20.0]


def phi(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


def cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def test_float64_values():
    z = torch.tensor(Z, dtype=torch.float64)
    for function, exact in [(normal.pdf, phi), (normal.cdf, cdf)]:
        torch.testing.assert_close(function(z).tolist(), [exact(x) for x in Z], rtol=1e-12, atol=0.0)
    mills = [phi(x) / cdf(x) for x in Z]
    torch.testing.assert_close(normal.inverse_mills(z).tolist(), mills, rtol=1e-12, atol=0.0)
    logits = [math.log(cdf(x)) - math.log(cdf(-x)) for x in Z]
    torch.testing.assert_close(normal.logit_cdf(z).tolist(), logits, rtol=1e-12, atol=1e-15)


def test_the_lower_tail_keeps_its_digits_in_float32():
    """Down to −12, where Φ is 2e-33; ½(1 + erf) has none left below −5.5."""
    z = torch.linspace(-12, 3, 151)
    exact = torch.tensor([cdf(x) for x in z.double().tolist()], dtype=torch.float64)
    torch.testing.assert_close(normal.cdf(z).double(), exact, rtol=5e-5, atol=0.0)


@pytest.mark.parametrize("function", [normal.pdf, normal.cdf, normal.logit_cdf, normal.inverse_mills])
def test_finite_for_large_arguments_in_float32(function):
    z = torch.tensor([-1e4, -1e3, -100.0, 100.0, 1e3, 1e4])
    assert function(z).isfinite().all()


def test_standardise_counts_tiny_variances_as_no_noise():
    gap, variance = torch.tensor([3.0, 3.0, 3.0]), torch.tensor([0.0, 1e-21, 4.0])
    z, std, noisy = normal.standardise(gap, variance)
    assert noisy.tolist() == [False, False, True]
    assert std.tolist() == [1.0, 1.0, 2.0]
    assert z.tolist() == [3.0, 3.0, 1.5]
