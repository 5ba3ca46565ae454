"""With fixed variance, mean-field forward, no KL and width σ√n a Bayesian layer is the surrogate-gradient baseline.

n is the number of active inputs, the same for every sample, so that κ = σ√n is one number. Forward passes agree bit
for bit, gradients up to the rounding of 1/κ. The one gradient that differs is that of the channel scale a: here
κ = a σ√n grows with it, in the baseline the width does not. For the same reason the agreement is layer by layer: to
the layer before, a Bayesian layer also says how its spikes change κ.
"""

import math

import pytest
import torch
from torch import Tensor

from axonnx.models import BinaryMLP, LIFSettings, Network, SpikingMLP, SurrogateGradient, Variant

INPUTS, ACTIVE, BATCH, STEPS = 12, 5, 16, 9


def active_inputs(*shape: int) -> Tensor:
    """Spikes [… , INPUTS], ACTIVE of them in every row."""
    return torch.zeros(*shape, INPUTS).scatter_(-1, torch.rand(*shape, INPUTS).topk(ACTIVE).indices, 1.0)


def pair(normalisation: str, spiking: bool, dtype: torch.dtype = torch.float32) -> tuple[Network, Network]:
    """The Bayesian network and its baseline, with the same weights."""
    common = {"fire": "mean_field", "kl": False, "normalisation": normalisation}
    bayesian = build(Variant(spread="fixed", **common), spiking, dtype)
    width = torch.sqrt(bayesian.hidden[0].synapse.posterior.variance * ACTIVE).item()
    return bayesian, build(Variant(spread="none", estimator=SurrogateGradient(width), **common), spiking, dtype)


def build(variant: Variant, spiking: bool, dtype: torch.dtype) -> Network:
    torch.manual_seed(8)
    if not spiking:
        return BinaryMLP(INPUTS, [7], 3, variant).to(dtype)
    memoryless = LIFSettings(decay=0.0, base_std=0.0)  # so that n is that of one step
    return SpikingMLP(INPUTS, [7], 3, variant, memoryless).to(dtype)


def gradients(net: Network, x: Tensor, target: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    logits = net(x).logits
    torch.nn.functional.cross_entropy(logits, target).backward()
    return logits, {name: parameter.grad for name, parameter in net.named_parameters()}


@pytest.mark.parametrize("normalisation", ["none", "scale"])
@pytest.mark.parametrize("spiking", [False, True], ids=["binary", "spiking"])
def test_forward_and_gradients_are_those_of_the_baseline(normalisation, spiking):
    bayesian, baseline = pair(normalisation, spiking)
    x, target = active_inputs(*((STEPS, BATCH) if spiking else (BATCH,))), torch.randint(3, (BATCH,))
    logits, found = gradients(bayesian, x, target)
    expected_logits, expected = gradients(baseline, x, target)
    assert torch.equal(logits, expected_logits)
    assert found.keys() == expected.keys()
    assert found["hidden.0.synapse.posterior.raw_mean"].abs().max() > 1e-4
    for name in found.keys() - {"hidden.0.synapse.norm.scale"}:
        scale = expected[name].abs().max().item()
        torch.testing.assert_close(found[name], expected[name], rtol=0, atol=1e-6 * scale, msg=name)


def test_the_scale_alone_also_feels_the_noise_it_scales():
    """The difference of the two gradients of a is ∂L/∂κ² · ∂(a²σ²n)/∂a, in float64 to 1e-12."""
    bayesian, baseline = pair("scale", spiking=False, dtype=torch.float64)
    x, target = active_inputs(BATCH).double(), torch.randint(3, (BATCH,))
    name = "hidden.0.synapse.norm.scale"
    difference = gradients(bayesian, x, target)[1][name] - gradients(baseline, x, target)[1][name]

    output = bayesian(x)
    seen = output.observations["hidden.0.neuron"]
    loss = torch.nn.functional.cross_entropy(output.logits, target)
    by_spikes = torch.autograd.grad(loss, seen.spikes)[0]
    z = seen.gap / seen.variance.sqrt()
    by_variance = -z * torch.exp(-z * z / 2) / math.sqrt(2 * math.pi) / (2 * seen.variance)
    expected = (by_spikes * by_variance * 2 * seen.variance).sum(0)
    torch.testing.assert_close(difference, expected, rtol=1e-12, atol=1e-15)
    assert expected.abs().max() > 1e-4


def test_another_number_of_active_inputs_is_another_width():
    """Where n differs the baseline's one width is wrong for some: the surrogate has to widen like √n."""
    bayesian, baseline = pair("none", spiking=False)
    x, target = active_inputs(BATCH), torch.randint(3, (BATCH,))
    x[0] = 1.0
    _, found = gradients(bayesian, x, target)
    _, expected = gradients(baseline, x, target)
    assert not torch.allclose(
        found["hidden.0.synapse.posterior.raw_mean"], expected["hidden.0.synapse.posterior.raw_mean"]
    )
