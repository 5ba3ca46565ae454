"""The regulariser: closed forms, the empirical-Bayes identity, normalisation, noiseless neurons."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import Normal, kl_divergence

from axonnx.models import (
    MEAN_FIELD,
    BinaryMLP,
    BinaryResNet,
    GaussianPosterior,
    LIFSettings,
    RecurrentSNN,
    Regulariser,
    Sample,
    SpikingMLP,
    Variant,
    divergence_sum,
    variant,
)

FORMS = ["quadratic", "log"]
KINDS = [Regulariser(form, of, total) for form in FORMS for of in ("neuron", "weight") for total in ("mean", "sum")]


def test_closed_forms_by_hand():
    """z = 2 and z = −1: ½ (ln 5 + ln 2) and 4 + 1."""
    gap, variance = torch.tensor([[1.0], [-3.0]]), torch.tensor([[0.25], [9.0]])
    assert divergence_sum(gap, variance, "log").item() == pytest.approx(0.5 * (math.log(5) + math.log(2)))
    assert divergence_sum(gap, variance, "quadratic").item() == pytest.approx(5.0)


@given(mean=st.floats(-50, 50), std=st.floats(1e-3, 50))
@settings(deadline=None, derandomize=True)
def test_empirical_bayes_prior_gives_half_log_one_plus_ratio(mean, std):
    """With τ² = m² + σ², KL(N(m, σ²) ‖ N(0, τ²)) is ½ ln(1 + m²/σ²); no other τ² gives less."""
    m, s = torch.tensor(mean, dtype=torch.float64), torch.tensor(std, dtype=torch.float64)
    tau = (m * m + s * s).sqrt()
    closed = divergence_sum(m, s * s, "log")
    torch.testing.assert_close(kl_divergence(Normal(m, s), Normal(0.0, tau)), closed, rtol=1e-9, atol=1e-12)
    for factor in (0.9, 1.1, math.sqrt(0.5)):  # the last is the paper's τ² = (m² + σ²)/2
        assert kl_divergence(Normal(m, s), Normal(0.0, factor * tau)) > closed


@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_weights_are_summed_over_whatever_their_granularity(granularity):
    net = BinaryMLP(5, [4, 3], 2, Variant(granularity=granularity)).double()
    for layer in net.hidden:
        with torch.no_grad():
            layer.synapse.posterior.log_std += torch.randn_like(layer.synapse.posterior.log_std)
    posteriors = [layer.synapse.posterior for layer in net.hidden]
    pairs = [(part.mean, part.full_variance.sqrt()) for part in posteriors]
    taus = [(mean.square() + std.square()).sqrt() for mean, std in pairs]
    expected = sum(kl_divergence(Normal(*pair), Normal(0.0, tau)).sum() for pair, tau in zip(pairs, taus, strict=True))
    for x in (torch.zeros(1, 5).double(), torch.rand(7, 5).double()):  # whatever the data
        torch.testing.assert_close(net.regulariser(net(x), Regulariser("log", "weight", "sum")), expected)
        squares = sum((mean / std).square().sum() for mean, std in pairs)
        torch.testing.assert_close(net.regulariser(net(x), Regulariser("quadratic", "weight")), squares / 32)


def test_masked_weights_are_not_counted():
    net = RecurrentSNN(3, (4,), 2)
    counts = {name: term.ratios for name, term in Regulariser(of="weight").terms(net, net(torch.rand(2, 1, 3))).items()}
    assert counts == {"hidden.0.synapse.posterior": 12, "hidden.0.neuron.recurrent.posterior": 12}


def z_of(output):
    return {name: seen.gap / seen.variance.sqrt() for name, seen in output.observations.items()}


def test_a_sum_goes_over_neurons_and_steps_and_averages_the_batch():
    net = SpikingMLP(5, [4, 3], 2)
    output = net((torch.rand(6, 3, 5) < 0.5).float())
    every = torch.cat([z.flatten() for z in z_of(output).values()])
    log, square = (net.regulariser(output, Regulariser(form, "neuron", "sum")) for form in ("log", "quadratic"))
    torch.testing.assert_close(log, 0.5 * torch.log1p(every.square()).sum() / 3)
    torch.testing.assert_close(square, every.square().sum() / 3)


@pytest.mark.parametrize("form", FORMS)
def test_the_mean_is_over_every_neuron_and_step_of_the_network(form):
    net = SpikingMLP(5, [4, 3], 2)
    output = net((torch.rand(6, 3, 5) < 0.5).float())
    every = torch.cat([z.flatten() for z in z_of(output).values()]).square()
    expected = every.mean() if form == "quadratic" else 0.5 * torch.log1p(every).mean()
    torch.testing.assert_close(net.regulariser(output, Regulariser(form)), expected)


def test_each_layer_may_have_a_weight_of_its_own():
    net = BinaryMLP(5, [4, 3], 2)
    output = net(torch.rand(6, 5))
    first, second = z_of(output).values()
    weights = {"hidden.0.neuron": 0.5, "hidden.1.neuron": 3.0}
    expected = (0.5 * first.square().sum() + 3.0 * second.square().sum()) / 6 / 7
    kind = Regulariser()
    torch.testing.assert_close(kind.added(kind.terms(net, output), output.logits, weights), expected)


@pytest.mark.parametrize("form", FORMS)
def test_the_mean_square_is_that_of_the_ratio_whatever_the_form(form):
    net = BinaryMLP(5, [4, 3], 2)
    output = net(torch.rand(6, 5))
    found = Regulariser(form).mean_squares(net, output)
    for name, z in z_of(output).items():
        torch.testing.assert_close(found[name], z.square().mean())
        assert not found[name].requires_grad


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_repeated_batch_has_the_same_value(kind):
    net = BinaryMLP(5, [4, 3], 2)
    x = torch.rand(3, 5)
    once, twice = (net.regulariser(net(batch), kind) for batch in (x, torch.cat([x, x])))
    torch.testing.assert_close(once, twice)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_network_without_posterior_has_no_regulariser(kind):
    net = BinaryMLP(5, [4], 2, variant("sg-nbn-1"))
    assert net.regulariser(net(torch.rand(3, 5)), kind) == 0


@pytest.mark.parametrize("form", FORMS)
def test_noiseless_neurons_add_nothing_and_pass_no_gradient(form):
    gap = torch.tensor([0.0, 3.0, -2.0, 1.0], requires_grad=True)
    variance = torch.tensor([0.0, 0.0, 1e-30, 1.0], requires_grad=True)
    value = divergence_sum(gap, variance, form)
    value.backward()
    assert value == divergence_sum(torch.tensor([1.0]), torch.tensor([1.0]), form)
    assert torch.equal(gap.grad[:3], torch.zeros(3))
    assert torch.equal(variance.grad[:3], torch.zeros(3))
    assert gap.grad[3] > 0 > variance.grad[3]


@pytest.mark.parametrize("fire", [MEAN_FIELD, Sample()], ids=["mean-field", "sample"])
def test_a_silent_input_gives_finite_values_and_finite_gradients(fire):
    """No active input and no base noise: κ = 0 in the first layer."""
    net = BinaryMLP(5, [4, 3], 2)
    output = net(torch.zeros(2, 5), fire)
    (output.logits.sum() + sum(net.regulariser(output, Regulariser(form)) for form in FORMS)).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad.isfinite().all(), name
    assert (net.hidden[0].synapse.posterior.raw_mean.grad == 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_gradcheck(form):
    gap = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    variance = (0.1 + torch.rand(4, 3, dtype=torch.float64)).requires_grad_()
    assert torch.autograd.gradcheck(lambda g, v: divergence_sum(g, v, form), (gap, variance))


@pytest.mark.parametrize("form", FORMS)
def test_blocks_change_nothing(form, monkeypatch):
    gap, variance = torch.randn(50, 7).double().requires_grad_(), (0.1 + torch.rand(50, 7)).double()
    whole = divergence_sum(gap, variance, form)
    (expected,) = torch.autograd.grad(whole, gap)
    monkeypatch.setattr("axonnx.models.maths.kl._BLOCK", 16)
    parts = divergence_sum(gap, variance, form)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(torch.autograd.grad(parts, gap)[0], expected, rtol=0, atol=0)


@pytest.mark.parametrize("mask", [None, 1.0 - torch.eye(3)], ids=["all", "masked"])
@pytest.mark.parametrize("form", FORMS)
def test_gradcheck_of_weights(form, mask):
    def total(raw_mean, log_std):
        posterior = GaussianPosterior((3, 3), "neuron", mask=mask).double()
        del posterior.raw_mean, posterior.log_std
        posterior.raw_mean, posterior.log_std = raw_mean, log_std
        return divergence_sum(posterior.mean, posterior.variance, form)

    raw_mean = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)
    log_std = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(total, (raw_mean, log_std))


@pytest.mark.parametrize("form", FORMS)
def test_of_a_binary_network_the_current_is_the_neuron(form):
    """θ = 0: (h* − θ)/κ is I/κ_I; the residual stream is a current, too."""
    net = BinaryResNet(1, (4, 8), 1, 3, size=4)
    net.keeps_currents = True
    output = net(torch.rand(3, 1, 4, 4), Sample())
    currents, neurons = (net.regulariser(output, Regulariser(form, of)) for of in ("current", "neuron"))
    torch.testing.assert_close(currents, neurons)


@pytest.mark.parametrize("reset", ["subtract", "zero"])
@pytest.mark.parametrize("granularity", ["layer", "weight"])
def test_the_current_of_a_recurrent_layer_is_what_arrives_from_below_and_from_itself(reset, granularity):
    kind = Variant(granularity=granularity)
    net = RecurrentSNN(5, (4, 3), 2, kind, LIFSettings(reset=reset)).double()
    net.keeps_currents = True
    events = (torch.rand(6, 3, 5) < 0.5).double()
    output = net(events, Sample())
    spikes = {name: seen.spikes for name, seen in output.observations.items()}
    total, count = 0.0, 0
    for number, below in enumerate((events, spikes["hidden.0.neuron"])):
        layer = net.hidden[number]
        mean, bias, scale = layer.synapse.constants()
        spread = layer.synapse.posterior.full_variance * scale.square()[:, None]
        again, variance = layer.neuron.recurrent.posterior.mean, layer.neuron.recurrent.posterior.full_variance
        own = spikes[f"hidden.{number}.neuron"]
        for t in range(6):
            before = torch.zeros_like(own[0]) if t == 0 else own[t - 1]
            current = below[t] @ mean.t() + bias + before @ again.t()
            noise = below[t] @ spread.t() + before @ variance.t()
            total += torch.where(noise > 0, current.square() / noise, 0.0).sum()
            count += current[0].numel()
    torch.testing.assert_close(net.regulariser(output, Regulariser(of="current")), total / 3 / count)
    net.layerwise = False
    stepwise = net(events, Sample())
    assert stepwise.currents["hidden.0.neuron"].mean.shape == (6, 3, 4)


def test_currents_that_were_not_kept_are_refused():
    net = BinaryMLP(5, [4], 2)
    output = net(torch.rand(3, 5))
    assert output.currents is None
    with pytest.raises(ValueError, match="keeps_currents = True"):
        net.regulariser(output, Regulariser(of="current"))
