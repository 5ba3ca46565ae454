"""Every estimator stays finite where probabilities underflow and variances vanish; and what make_estimator refuses."""

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.models import Estimator, make_estimator
from axonnx.models.maths.normal import pdf

# Every estimator and every option that changes its arithmetic.
CASES = {
    "st": make_estimator("st"),
    **{f"iwst({p})": make_estimator("iwst", p=p) for p in (0.0, 0.5, 1.0, "low_variance", "F")},
    **{f"agr({k})": make_estimator("agr", k=k) for k in (0.01, 1.0)},
    **{
        f"{name}({k}, {noise})": make_estimator(name, k=k, noise=noise)
        for name in ("gs_st", "gs")
        for k in (0.01, 1.0)
        for noise in ("uniform", "logistic")
    },
    "gr": make_estimator("gr", n=2),
    "sg": make_estimator("sg"),
}
ZS = st.one_of(st.floats(-1e4, 1e4, width=32), st.sampled_from([0.0, -1e4, 1e4, -5.5, 5.5, -13.0, 13.0, 1e-30]))
STDS = st.one_of(st.floats(0, 100, width=32), st.sampled_from([0.0, 1e-22, 1e-15, 1e-10, 1.01e-10, 1e-5, 1.0]))


@pytest.mark.parametrize("case", CASES)
@given(z=ZS, std=STDS, outcome=st.booleans(), mild=st.booleans())
@settings(deadline=None, derandomize=True, max_examples=60)
def test_forward_and_backward_are_finite(case, z, std, outcome, mild):
    """κ from 0 to 100, |z| up to 1e4, float32; the outcome is forced by noise that outweighs z, or barely does."""
    reach = 1.01 if mild else 3.0
    noise = (1.0 if outcome else -1.0) * torch.tensor([max(reach * abs(z), 1e-3)])
    gap = torch.tensor([z * std if std > 0 else z], requires_grad=True)
    variance = torch.tensor([std * std], requires_grad=True)
    out = CASES[case].fire(gap, variance, noise)
    out.sum().backward()
    assert 0.0 <= out.item() <= 1.0
    if not case.startswith("gs("):
        assert out.item() in (0.0, 1.0)
        assert std < 1e-5 or out.item() == outcome
    assert gap.grad.isfinite().all()
    assert variance.grad is None or variance.grad.isfinite().all()
    if std == 0 and case != "sg":
        assert gap.grad.item() == variance.grad.item() == 0.0


@pytest.mark.parametrize("case", CASES)
def test_mean_field_slopes_are_finite_and_never_negative(case):
    """Without noise ε = 0: the outcome is the likelier one."""
    z = torch.linspace(-1e4, 1e4, 2001, requires_grad=True)
    variance = torch.ones(2001, requires_grad=True)
    spikes = CASES[case].fire(z, variance)
    assert torch.equal(spikes, (z >= 0).float())
    spikes.sum().backward()
    assert z.grad.isfinite().all()
    assert (z.grad >= 0).all()


def test_a_new_estimator_is_one_class(monkeypatch):
    monkeypatch.setattr(Estimator, "known", dict(Estimator.known))

    @dataclass(frozen=True)
    class Damped(Estimator, name="damped"):
        factor: float = 0.3

        def slope(self, z, spikes, noise):
            return self.factor * pdf(z)

    gap, variance = torch.randn(5), torch.rand(5) + 0.1
    slopes = make_estimator("damped", factor=0.5).slopes(gap, variance, torch.ones(5), None)
    straight = make_estimator("st").slopes(gap, variance, torch.ones(5), None)
    torch.testing.assert_close(slopes[0], 0.5 * straight[0])
    torch.testing.assert_close(slopes[1], 0.5 * straight[1])


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"unknown estimator 'ts'; known are \['agr', 'gr', 'gs', 'gs_st', 'iwst', "):
        make_estimator("ts")


def test_unknown_options_are_answered_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'agr' has no option 'temperature'; it takes \['k'\]"):
        make_estimator("agr", temperature=1.0)
    with pytest.raises(ValueError, match="'st' has no option 'k'; it takes none"):
        make_estimator("st", k=1.0)


@pytest.mark.parametrize("name", ["agr", "gs", "gs_st", "gr"])
@pytest.mark.parametrize("k", [0.0, -1.0, float("nan")])
def test_a_temperature_is_positive(name, k):
    with pytest.raises(ValueError, match=f"{name}: temperature k is .*; expected a positive number"):
        make_estimator(name, k=k)


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan"), 2])
def test_a_mixing_number_is_a_probability(p):
    with pytest.raises(ValueError, match=r"iwst: p is .*; expected a number in \[0, 1\]"):
        make_estimator("iwst", p=p)


def test_a_mixing_name_is_known():
    with pytest.raises(ValueError, match=r"iwst: p is 'half'; known are .*'F', 'low_variance'.*function of F"):
        make_estimator("iwst", p="half")


def test_widths_sample_counts_and_noises_are_checked():
    with pytest.raises(ValueError, match="sg: width is 0; expected a positive number"):
        make_estimator("sg", width=0)
    with pytest.raises(ValueError, match="gr: n is 0; expected at least one sample"):
        make_estimator("gr", n=0)
    with pytest.raises(ValueError, match=r"'gaussian'.*'uniform'.*'logistic'"):
        make_estimator("gs", noise="gaussian")


@pytest.mark.parametrize("k", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("outcome", [0.0, 1.0])
def test_agr_where_the_probability_of_the_outcome_is_nearly_zero(k, outcome):
    """tanh(P/2k)/(2P) → 1/(4k) as P → 0: the same on both sides of the place where P is taken for zero."""
    z = torch.tensor([-9.0, -11.0, -11.7, -15.0], dtype=torch.float64)  # P from 1e-19 to 1e-51; 1e-30 is between
    away = z if outcome else -z  # the outcome that nearly never happens
    density = torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    slope = make_estimator("agr", k=k).slope(away, torch.full_like(z, outcome), None)
    assert (slope > 0).all()
    torch.testing.assert_close(slope, density / (4 * k), rtol=1e-12, atol=0.0)
