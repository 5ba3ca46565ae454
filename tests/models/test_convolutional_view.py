"""The recurrences of h* and κ² against Appendix D's convolutional view, which resamples every past weight.

h_t = Σ_s β^s (W^(t,s) x_{t−s} + R^(t,s) o_{t−s−1} − θ o_{t−s−1}), with W^(t,s) and R^(t,s) drawn anew for every
pair (t, s). The network's own spikes o are prescribed (``Forced``), so that the history is the same in both views.
"""

import pytest
import torch
from torch import Tensor

from axonnx.models import MEAN_FIELD, Forced, LIFSettings, SpikingMLP, Variant

STEPS, INPUTS, NEURONS, SAMPLES = 6, 5, 4, 4000
LAYER = "hidden.0.neuron"


def network(granularity: str, recurrent: bool, base_std: float = 0.3, decay: float = 0.8) -> SpikingMLP:
    torch.manual_seed(3)
    settings = LIFSettings(decay=decay, base_std=base_std)
    net = SpikingMLP(INPUTS, [NEURONS], 2, Variant(granularity=granularity), settings, recurrent=recurrent).double()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("log_std") or "norm" in name:
                parameter += 0.4 * torch.randn_like(parameter)
    return net


def history(steps: int = STEPS) -> tuple[Tensor, Tensor]:
    """Input and output spikes, [T, 1, …]; two steps without any input."""
    generator = torch.Generator().manual_seed(5)
    x = (torch.rand(steps, 1, INPUTS, generator=generator) < 0.5).double()
    o = (torch.rand(steps, 1, NEURONS, generator=generator) < 0.5).double()
    x[1:3] = 0.0
    return x, o


def draw(posterior: torch.nn.Module, generator: torch.Generator) -> Tensor:
    """SAMPLES independent weight sets w = m + σ ε, [samples, out, in]."""
    mean, std = posterior.mean.detach(), posterior.full_variance.detach().sqrt()
    return mean + std * torch.randn(SAMPLES, *mean.shape, generator=generator, dtype=mean.dtype)


def convolutional_view(net: SpikingMLP, x: Tensor, o: Tensor) -> Tensor:
    """Samples of h_t + (threshold noise) for every step, [samples, T, neurons]."""
    generator = torch.Generator().manual_seed(9)
    synapse, lif = net.hidden[0].synapse, net.hidden[0].neuron
    scale, bias = (value.detach() for value in (synapse.norm.scale, synapse.norm.bias))
    o_before = torch.cat([torch.zeros_like(o[:1]), o[:-1]])
    h = torch.zeros(SAMPLES, len(x), NEURONS, dtype=x.dtype)
    for t in range(len(x)):
        for s in range(t + 1):
            past = scale * (draw(synapse.posterior, generator) @ x[t - s, 0]) + bias - lif.threshold * o_before[t - s]
            if lif.recurrent is not None:
                past = past + draw(lif.recurrent.posterior, generator) @ o_before[t - s, 0]
            h[:, t] += lif.decay**s * past
    if lif.base_variance is None:
        return h
    return h + lif.base_variance.detach().sqrt() * torch.randn(h.shape, generator=generator, dtype=h.dtype)


@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_statistical_recurrences_equal_the_convolutional_view(granularity, recurrent, check_moments):
    """4000 samples; |z| < 4.5 for the mean and the variance of 4 neurons at 6 steps."""
    net = network(granularity, recurrent)
    x, o = history()
    seen = net(x, Forced({LAYER: o}, MEAN_FIELD)).observations[LAYER]
    membrane = seen.gap + net.hidden[0].neuron.threshold
    check_moments("h[t]", convolutional_view(net, x, o), membrane[:, 0], seen.variance[:, 0])


@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
@pytest.mark.parametrize("granularity", ["layer", "neuron", "weight"])
def test_recurrences_equal_their_sums_in_closed_form(granularity, recurrent):
    """Σ_s β^s (…) and Σ_s β^2s (…) over 40 steps, in float64."""
    net = network(granularity, recurrent)
    x, o = history(40)
    synapse, lif = net.hidden[0].synapse, net.hidden[0].neuron
    o_before = torch.cat([torch.zeros_like(o[:1]), o[:-1]])
    current = x @ (synapse.norm.scale[:, None] * synapse.posterior.mean).T + synapse.norm.bias - o_before
    spread = x @ (synapse.norm.scale.square()[:, None] * synapse.posterior.full_variance).T
    if recurrent:
        current = current + o_before @ lif.recurrent.posterior.mean.T
        spread = spread + o_before @ lif.recurrent.posterior.full_variance.T
    lag = torch.arange(40)[:, None] - torch.arange(40)[None, :]
    kernel = torch.where(lag >= 0, lif.decay**lag, 0.0)
    membrane = torch.einsum("ts,sbn->tbn", kernel, current)
    variance = torch.einsum("ts,sbn->tbn", kernel.square(), spread) + lif.base_variance

    seen = net(x, Forced({LAYER: o}, MEAN_FIELD)).observations[LAYER]
    torch.testing.assert_close(seen.gap + lif.threshold, membrane, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(seen.variance, variance, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("forced", [False, True], ids=["deciding", "forced"])
def test_base_noise_enters_the_decision_and_not_the_recurrence(forced):
    """Same spikes with and without base noise: κ² in the state is the same, at the decision it is σ_base² more."""
    x, o = history()
    fire = Forced({LAYER: o}, MEAN_FIELD) if forced else MEAN_FIELD
    quiet, noisy = (network("layer", True, base_std)(x, fire) for base_std in (0.0, 0.7))
    assert torch.equal(quiet.state.layers[LAYER].variance, noisy.state.layers[LAYER].variance)
    assert torch.equal(quiet.state.layers[LAYER].variance, quiet.observations[LAYER].variance[-1])
    difference = noisy.observations[LAYER].variance - quiet.observations[LAYER].variance
    torch.testing.assert_close(difference, torch.full_like(difference, 0.49))


def test_a_neuron_does_not_hear_itself():
    """One neuron that always fires, in a recurrent layer of two: only the other one gets its current and noise."""
    net = network("layer", True)
    x, o = torch.zeros(3, 1, INPUTS, dtype=torch.float64), torch.zeros(3, 1, NEURONS, dtype=torch.float64)
    o[:, :, 0] = 1.0
    with torch.no_grad():
        net.hidden[0].synapse.norm.bias.zero_()
    seen = net(x, Forced({LAYER: o}, MEAN_FIELD)).observations[LAYER]
    lif = net.hidden[0].neuron
    kappa = seen.variance - lif.base_variance
    torch.testing.assert_close(kappa[:, 0, 0], torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-16)
    assert (kappa[1:, 0, 1:] > 0).all()
    # its own membrane sees the reset alone: 0, −θ, −θ(1 + β)
    torch.testing.assert_close(
        seen.gap[:, 0, 0], torch.tensor([-1.0, -2.0, -2.8], dtype=torch.float64), rtol=0, atol=1e-7
    )
