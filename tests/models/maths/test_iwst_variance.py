"""Proposition 4: the variance of IW-ST(p) and the p that minimises it, for one neuron with given L₀' and L₁'."""

import math

import pytest
import torch
from torch import Tensor

from axonnx.models import Sample, make_estimator

DRAWS = 200_000
# z, L₀', L₁'; the losses' slopes agree in sign but in the last two.
CASES = [(0.1, 1.0, 1.0), (0.8, 2.0, 0.5), (-1.2, 0.3, 1.7), (1.5, -1.0, -3.0), (0.4, 1.0, -2.0), (-0.5, 0.0, 1.0)]
MIXES = [0.0, 0.25, 0.5, 0.9, 1.0]


def fire_probability(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def formula(p: float, F: float, l0: float, l1: float) -> float:
    """(1−p)² L₀'²/(1−F) + p² L₁'²/F − ((1−p) L₀' + p L₁')²"""
    return (1 - p) ** 2 * l0**2 / (1 - F) + p**2 * l1**2 / F - ((1 - p) * l0 + p * l1) ** 2


def estimates(p: float, z: float, l0: float, l1: float, std: float = 0.6) -> Tensor:
    """Estimates of L₁ − L₀: the gradient of the membrane divided by ∂F/∂h* = φ(z)/κ."""
    gap = torch.full((DRAWS,), z * std, dtype=torch.float64, requires_grad=True)
    variance = torch.full((DRAWS,), std * std, dtype=torch.float64)
    noise = Sample(torch.Generator().manual_seed(int(1000 * p) + 13)).noise("", gap, 0)
    o = make_estimator("iwst", p=p).fire(gap, variance, noise)
    (l0 * o + (l1 - l0) * o.square() / 2).sum().backward()
    return gap.grad / (math.exp(-z * z / 2) / math.sqrt(2 * math.pi) / std)


def two_outcomes(p: float, z: float, l0: float, l1: float) -> tuple[float, float]:
    """What the estimator gives for o = 0 and for o = 1."""
    gap, one = torch.tensor([z], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    slope = [make_estimator("iwst", p=p).slopes(gap, one, o, None)[0].item() for o in (0 * one, one)]
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return slope[0] * l0 / density, slope[1] * l1 / density


@pytest.mark.parametrize(("z", "l0", "l1"), CASES)
def test_statistical_mean_and_variance_of_iwst(z, l0, l1, check_z):
    """200000 draws for 5 values of p; |z-score| < 4.5 for the mean p L₁' + (1−p) L₀' and the variance formula.

    The standard error of the variance, √((μ₄ − σ⁴)/n), comes from the two values that an estimate can have.
    """
    F = fire_probability(z)
    for p in MIXES:
        sample = estimates(p, z, l0, l1)
        mean, variance = p * l1 + (1 - p) * l0, formula(p, F, l0, l1)
        low, high = two_outcomes(p, z, l0, l1)
        fourth = (1 - F) * (low - mean) ** 4 + F * (high - mean) ** 4
        error = torch.tensor([sample.mean().item() - mean, sample.var().item() - variance], dtype=torch.float64)
        spread = torch.tensor([variance / DRAWS, (fourth - variance**2) / DRAWS], dtype=torch.float64).sqrt()
        if variance > 0:
            check_z(f"p = {p}", error / spread)
        else:  # L₀' = 0 and p = 0: nothing is left to vary
            assert (error == 0).all()


@pytest.mark.parametrize(("z", "l0", "l1"), CASES)
def test_variance_formula_is_that_of_the_two_outcomes(z, l0, l1):
    """Exactly, without draws: Var of a value that is ``high`` with probability F and ``low`` otherwise."""
    F = fire_probability(z)
    for p in MIXES:
        low, high = two_outcomes(p, z, l0, l1)
        assert F * (1 - F) * (high - low) ** 2 == pytest.approx(formula(p, F, l0, l1), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("z", "l0", "l1"), [case for case in CASES if case[1] * case[2] > 0])
def test_the_best_p_is_that_of_the_proposition(z, l0, l1):
    """The argmin of the estimator's own variance over a grid of 1001 is p* = L₀'F / (L₀'F + L₁'(1−F))."""
    F = fire_probability(z)
    grid = [i / 1000 for i in range(1001)]
    variances = []
    for p in grid:
        low, high = two_outcomes(p, z, l0, l1)
        variances.append(F * (1 - F) * (high - low) ** 2)
    best = grid[variances.index(min(variances))]
    star = l0 * F / (l0 * F + l1 * (1 - F))
    assert best == pytest.approx(star, abs=0.5e-3 + 1e-9)
    if abs(l0) > abs(l1):
        assert F <= star <= 1
    if abs(l0) < abs(l1):
        assert 0 <= star <= F
