"""Propositions 2 and 3 of the paper in numbers: what bounds the bias of straight-through, and which p has the least."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from axonnx.models import BinaryMLP, Sample, make_estimator, variant
from axonnx.models.maths.estimators import low_variance


def share_and_bound(z: Tensor, epsilon: float) -> tuple[float, float]:
    """P(all |z_i − E z_i| < ε) and 1 − Σ Var(z_i)/ε², of the distribution that gives each row of z [N, neurons] 1/N."""
    near = (z - z.mean(0)).abs() < epsilon
    return near.all(1).double().mean().item(), 1 - z.var(0, correction=0).sum().item() / epsilon**2


def test_proposition_2_bounds_how_often_all_membranes_are_near_their_means():
    """z = (h − θ)/κ of a noisy network on one input, over 20,000 passes: exact for their own distribution."""
    torch.manual_seed(0)
    network = BinaryMLP(20, [12, 8], 3, variant("sbnn")).double()
    x = torch.rand(1, 20, dtype=torch.float64).round().expand(20_000, -1)
    with torch.no_grad():
        seen = network(x, Sample(torch.Generator().manual_seed(1))).observations["hidden.1.neuron"]
    z = seen.gap / seen.variance.sqrt()
    assert z.var(0).min() > 0  # the layer before it does vary
    pairs = [share_and_bound(z, float(epsilon)) for epsilon in torch.logspace(-1, 1, 40) * z.std()]
    assert all(share >= bound for share, bound in pairs)
    assert any(share < 1 and bound > 0 for share, bound in pairs)  # where the bound says something


def test_proposition_2_is_reached():
    """One neuron that is ± ε away in 2 of 8 cases and on its mean in the others."""
    z = torch.tensor([-0.5, 0.5, 0, 0, 0, 0, 0, 0], dtype=torch.float64)[:, None]
    assert share_and_bound(z, 0.5) == (0.75, 0.75)


def density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def expected_estimate(p: float, z: float, x: float, w: float) -> float:
    """E[IW-ST(p)] of L₁ − L₀ for L(o) = Φ(x + w·o), the next neuron's firing; the neuron itself fires with Φ(z)."""
    gap, one = torch.tensor([z], dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    fires = 0.5 * math.erfc(-z / math.sqrt(2))
    slopes = [make_estimator("iwst", p=p).slopes(gap, one, o * one, None)[0].item() / density(z) for o in (0, 1)]
    return (1 - fires) * slopes[0] * w * density(x) + fires * slopes[1] * w * density(x + w)


# Means of membranes from −1 to 1, where φ is concave, and steps that stay there and are not symmetric about 0.
STEPS = [(x / 10, w / 10) for x, w in itertools.product(range(-10, 10), range(1, 11)) if x + w <= 10 and x + w != -x]


@pytest.mark.parametrize("z", [-0.7, 0.3])
def test_proposition_3_the_least_biased_p_is_on_the_side_to_which_the_next_membrane_comes_to_rest(z):
    """p* > ½ where firing brings the next membrane nearer to its zero mean, |x + w| < |x|, and p* < ½ otherwise."""
    for x, w in STEPS:
        truth = 0.5 * (math.erf((x + w) / math.sqrt(2)) - math.erf(x / math.sqrt(2)))
        never, always = (expected_estimate(p, z, x, w) for p in (0.0, 1.0))
        best = (truth - never) / (always - never)  # the estimate is linear in p, so this p has no bias
        assert expected_estimate(0.25, z, x, w) == pytest.approx(0.75 * never + 0.25 * always, rel=1e-12)
        assert (best > 0.5) == (abs(x + w) < abs(x)), (x, w, best)


def test_the_low_variance_choice_is_in_that_interval_and_a_tie_counts_as_silent():
    """P = 1[F > ½]: F = ½ itself is not above it."""
    F = torch.tensor([0.0, 0.25, 0.5, 0.5 + 1e-7, 0.75, 1.0], dtype=torch.float64)
    assert low_variance(F).tolist() == [0, 0, 0, 1, 1, 1]
    gap, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    estimator = make_estimator("iwst", p="low_variance")
    fired, silent = (estimator.slopes(gap, one, o * one, None)[0].item() for o in (1, 0))
    assert fired == 0
    assert silent == pytest.approx(2 * density(0), rel=1e-12)  # φ(0)/(1 − ½)
