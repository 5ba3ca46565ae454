"""Bias of the straight-through estimators: their expected gradient against the gradient of the expected loss.

Both are sums over all spike patterns, so that nothing here is random: E[ĝ] = Σ_o p(o) ĝ(o), each pattern o made
by noise of the right sign that no membrane can resist.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from axonnx.models import BinaryMLP, BinaryNetwork, Replay
from axonnx.models.maths.estimators import StraightThrough, make_estimator
from experiments.measures.gradients import FixedNoise
from experiments.measures.references import exact_gradient, log_probability

SCALES = [1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16]
Gradients = dict[str, Tensor]


def expected_estimate(net: BinaryNetwork, x: Tensor, loss: Callable[[Tensor], Tensor]) -> tuple[Gradients, float]:
    """Σ_o p(o) ĝ(o) for every parameter, and E[(h/σ)²], mean over the neurons."""
    sizes = {name: seen.spikes.shape[1] for name, seen in net(x).observations.items()}
    neurons = sum(sizes.values())
    patterns = ((torch.arange(2**neurons)[:, None] >> torch.arange(neurons)) & 1).double()
    wanted = dict(zip(sizes, patterns.split(list(sizes.values()), dim=1), strict=True))
    output = net(x.expand(len(patterns), -1), Replay({name: 1e6 * (2 * o - 1) for name, o in wanted.items()}))
    # A noiseless neuron heeds no noise: a pattern that it cannot give has probability zero.
    given = [(output.observations[name].spikes == o).all(1) for name, o in wanted.items()]
    p = torch.where(torch.stack(given).all(0), log_probability(output).exp(), 0.0).detach()
    torch.testing.assert_close(p.sum(), torch.tensor(1.0, dtype=torch.float64))
    named = dict(net.named_parameters())
    gradients = torch.autograd.grad((p * loss(output.logits)).sum(), list(named.values()))
    squares = torch.cat(
        [seen.gap.square() / seen.variance.clamp(min=1e-20) for seen in output.observations.values()], 1
    )
    return dict(zip(named, gradients, strict=True)), (p @ squares).mean().item()


def relative_bias(net: BinaryNetwork, loss: Callable[[Tensor], Tensor], layer: str = "") -> tuple[float, float]:
    """‖E[ĝ] − g‖ / ‖g‖ over the parameters of ``layer``, and E[(h/σ)²]."""
    x = torch.tensor([[0.7, -0.4, 1.2]], dtype=torch.float64)
    exact = exact_gradient(net, x, loss)
    estimate, square = expected_estimate(net, x, loss)
    names = [name for name in exact if name.startswith(layer)]
    bias = math.sqrt(sum((estimate[name] - exact[name]).square().sum().item() for name in names))
    return bias / math.sqrt(sum(exact[name].square().sum().item() for name in names)), square


def linear(logits: Tensor) -> Tensor:
    return logits[:, 0] - 0.7 * logits[:, 1]


def quadratic(logits: Tensor) -> Tensor:
    return (logits[:, 0] - 0.3) ** 2 + 2.0 * logits[:, 0] * logits[:, 1]


def test_st_is_exact_for_one_layer_and_a_loss_linear_in_its_spikes():
    net = FixedNoise([3, 6], StraightThrough(), scale=1.0, seed=4)
    assert relative_bias(net, linear)[0] < 1e-13
    assert relative_bias(net, quadratic)[0] > 1e-3


def test_the_trapezoid_rule_is_exact_for_one_layer_and_a_quadratic_loss():
    net = FixedNoise([3, 6], make_estimator("iwst", p=0.5), scale=1.0, seed=4)
    assert relative_bias(net, linear)[0] < 1e-13
    assert relative_bias(net, quadratic)[0] < 1e-13


@pytest.mark.parametrize("seed", [4, 5, 6, 7])
def test_bias_of_st_falls_with_the_squared_signal_to_noise_ratio(seed, measured):
    """Corollary 1 on 12 neurons in 3 layers with fixed noise and a loss linear in the last layer's spikes.

    Means halve four times. The first layer's gradient has passed two layers of linearised decisions. Its relative
    bias falls each time, in the end like E[(h/σ)²], by 3 to 5 (4 in the limit), and in all by more than 15.
    """
    first, everywhere = [], []
    for scale in SCALES:
        net = FixedNoise([3, 4, 4, 4], StraightThrough(), scale, seed)
        bias, square = relative_bias(net, linear, "layers.0")
        first.append(bias)
        everywhere.append(relative_bias(net, linear)[0])
        measured(f"scale {scale:g}, E[(h/σ)²] {square:.2g}: relative bias, first layer", bias)
    assert all(later < earlier for earlier, later in pairwise(first))
    assert all(later < earlier for earlier, later in pairwise(everywhere))
    assert 3 < first[-2] / first[-1] < 5
    assert first[0] / first[-1] > 15


def test_bias_that_is_left_falls_with_the_number_of_inputs(measured):
    """In a Bayesian layer κ itself depends on the spikes that arrive, which Corollary 1 does not cover.

    With means at 1/16 the bias left in the first layer is that of κ(o), and of the silent pattern that leaves the
    next layer without noise. It falls as one spike changes κ less: by more than 5 from 2 to 10 neurons.
    """
    biases = []
    for width in (2, 6, 10):
        torch.manual_seed(4)
        net = BinaryMLP(3, [width, 3], 2).double()
        for layer in net.hidden:
            torch.nn.init.normal_(layer.synapse.posterior.raw_mean, std=1 / 16)
            torch.nn.init.zeros_(layer.synapse.posterior.log_std)
        biases.append(relative_bias(net, linear, "hidden.0")[0])
        measured(f"{width} neurons: relative bias, first layer", biases[-1])
    assert biases[0] > biases[1] > biases[2]
    assert biases[2] < biases[0] / 5
