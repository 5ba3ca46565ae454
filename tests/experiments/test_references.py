"""Unbiased gradients of small networks: exact enumeration is the truth, and the others agree with it."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from axonnx.models import BinaryMLP, Variant, variant
from experiments.measures.references import arm, exact_gradient, expected_loss, ram, reinforce

CHUNKS, CHUNK = 120, 250
Z_LIMIT = 4.5  # see tests/models/conftest.py
ESTIMATORS = {"reinforce": reinforce, "arm": arm, "ram": ram}


def network(hidden: list[int], granularity: str = "weight") -> BinaryMLP:
    """A network in float64 with stds near 0.7, so that no neuron is so certain that sampling never sees it change."""
    torch.manual_seed(4)
    net = BinaryMLP(3, hidden, 2, Variant(granularity=granularity)).double()
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if name.endswith("log_std"):
                parameter.fill_(math.log(0.7))
            parameter += 0.3 * torch.randn_like(parameter)
    return net


def one_input() -> Tensor:
    return torch.tensor([[0.7, -0.4, 1.2]], dtype=torch.float64)


def cross_entropy(logits: Tensor) -> Tensor:
    return -torch.log_softmax(logits, dim=1)[:, 0]


def naive_expected_loss(net: BinaryMLP, x: Tensor) -> float:
    """Σ_o p(o) L(o) by nested loops over layers and neurons, with the C library's erfc."""

    def beyond(layer: int, o: Tensor) -> float:
        if layer == len(net.hidden):
            return cross_entropy((net.readout.weight @ o + net.readout.bias)[None]).item()
        synapse = net.hidden[layer].synapse
        h = synapse.norm.scale * (synapse.posterior.mean @ o) + synapse.norm.bias
        variance = synapse.norm.scale**2 * (synapse.posterior.full_variance @ o**2)
        fires = [
            0.5 * math.erfc(-mean / math.sqrt(2 * spread)) if spread > 0 else float(mean >= 0)
            for mean, spread in zip(h.tolist(), variance.tolist(), strict=True)
        ]
        total = 0.0
        for pattern in itertools.product([0.0, 1.0], repeat=len(fires)):
            chance = math.prod(f if spike else 1 - f for f, spike in zip(fires, pattern, strict=True))
            total += chance * beyond(layer + 1, torch.tensor(pattern, dtype=o.dtype)) if chance > 0 else 0.0
        return total

    return beyond(0, x[0])


@pytest.mark.parametrize("hidden", [[3], [3, 3], [2, 3, 2]], ids=str)
def test_expected_loss_is_the_sum_over_all_patterns(hidden):
    net = network(hidden)
    with torch.no_grad():
        assert expected_loss(net, one_input(), cross_entropy).item() == pytest.approx(
            naive_expected_loss(net, one_input()), rel=1e-12
        )


@pytest.mark.parametrize("hidden", [[4], [3, 4], [4, 4, 4]], ids=str)
def test_exact_gradient_is_the_finite_difference_of_the_expected_loss(hidden):
    """Central differences of step 1e-5 for every single parameter, in float64."""
    net = network(hidden, "layer")
    exact = exact_gradient(net, one_input(), cross_entropy)
    step = 1e-5
    for name, parameter in net.named_parameters():
        flat = parameter.data.view(-1)
        for i in range(len(flat)):
            losses = []
            for sign in (1, -1):
                flat[i] += sign * step
                with torch.no_grad():
                    losses.append(expected_loss(net, one_input(), cross_entropy).item())
                flat[i] -= sign * step
            slope = (losses[0] - losses[1]) / (2 * step)
            assert exact[name].view(-1)[i].item() == pytest.approx(slope, rel=1e-6, abs=1e-9), name


@pytest.mark.parametrize("hidden", [[4], [4, 4, 4]], ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_statistical_unbiased_estimators_agree_with_enumeration(name, hidden):
    """120 chunk means of 250 samples each; |z| < 4.5 for every parameter of up to 12 neurons in 3 layers.

    z has 119 degrees of freedom, for which |t| > 4.5 has probability 1.6e-5: under 0.2 % for 122 parameters.
    A parameter whose gradient is exactly zero in every chunk must be exactly zero in the truth.
    """
    net, generator = network(hidden), torch.Generator().manual_seed(6)
    exact = exact_gradient(net, one_input(), cross_entropy)
    x = one_input().expand(CHUNK, 3)
    chunks = [ESTIMATORS[name](net, x, cross_entropy, generator) for _ in range(CHUNKS)]
    scores = []
    for parameter, truth in exact.items():
        estimates = torch.stack([chunk[parameter] for chunk in chunks])
        error, spread = estimates.mean(0) - truth, estimates.std(0) / math.sqrt(CHUNKS)
        constant = spread < 1e-15
        torch.testing.assert_close(error[constant], torch.zeros_like(error[constant]), rtol=0, atol=1e-12)
        scores.append((error / spread)[~constant])
    assert torch.cat(scores).abs().max() < Z_LIMIT


@pytest.mark.parametrize("name", ESTIMATORS)
def test_statistical_noiseless_neurons_have_no_gradient_in_any_reference(name):
    """A silent first layer leaves the second without noise; it then fires by the sign of its bias.

    20000 samples; |z| < 4.5 for every parameter.
    """
    net, generator = network([2, 3]), torch.Generator().manual_seed(6)
    with torch.no_grad():
        net.hidden[0].synapse.norm.bias -= 0.8  # often silent
        net.hidden[1].synapse.norm.bias.copy_(torch.tensor([0.3, -0.3, 0.05]))
    exact = exact_gradient(net, one_input(), cross_entropy)
    x = one_input().expand(200, 3)
    chunks = [ESTIMATORS[name](net, x, cross_entropy, generator) for _ in range(100)]
    scores = []
    for parameter, truth in exact.items():
        estimates = torch.stack([chunk[parameter] for chunk in chunks])
        error, spread = estimates.mean(0) - truth, estimates.std(0) / 10
        scores.append((error / spread)[spread > 1e-15])
    assert torch.cat(scores).abs().max() < Z_LIMIT


def test_estimates_repeat_with_the_generator():
    net, x = network([3, 3]), one_input().expand(5, 3)
    for estimate in ESTIMATORS.values():
        once, again = (estimate(net, x, cross_entropy, torch.Generator().manual_seed(1)) for _ in range(2))
        assert all(torch.equal(once[name], again[name]) for name in once)


def test_enumeration_says_what_it_cannot_do():
    with pytest.raises(ValueError, match="enumeration takes one input; x has a batch of 2"):
        exact_gradient(network([3]), one_input().expand(2, 3), cross_entropy)
    with pytest.raises(ValueError, match=r"17 neurons have 2\^17 patterns; at most 16"):
        exact_gradient(network([9, 8]), one_input(), cross_entropy)
    without_posterior = BinaryMLP(3, [2], 2, variant("sg-nbn-1")).double()
    with pytest.raises(ValueError, match="without a posterior has no firing probabilities"):
        exact_gradient(without_posterior, one_input(), cross_entropy)
