"""Exact at every rate: from layers that never fire to layers that fire in every step, on ties, and for 200 steps."""

import numpy as np
import pytest
import torch

from axonnx.export.collapsed import CollapseSettings
from axonnx.models import LIFSettings, Network, RecurrentSNN, SpikingMLP
from axonnx.runtime.format.contract import InputContract

from .running import Comparison, Exported, export
from .small_networks import counts

ARRIVING = InputContract(name="events", shape=(30,), steps=200, largest=3)
KINDS = ("spikes", "membranes", "logits")


@torch.no_grad()
def driven(gain: float, positive: bool, **settings) -> Network:
    """A recurrent network whose weights are scaled, and all of one sign where it shall saturate."""
    torch.manual_seed(4)
    network = RecurrentSNN(30, [20, 20], 5, settings=LIFSettings(**settings))
    for name, parameter in network.named_parameters():
        if name.endswith("raw_mean"):
            parameter.copy_(gain * (parameter.abs() if positive else parameter))
    return network


def compare(exported: Exported, x: torch.Tensor) -> dict[str, float]:
    """Compare, and tell each layer's firing rate."""
    noises = exported.noises(x)
    expected = exported.on_torch(x, noises)
    comparison = Comparison()
    comparison.add(expected, exported.on_onnxruntime(x, noises))
    comparison.hold(KINDS)
    return {name: float(value.mean()) for name, value in expected.items() if "spikes/" in name}


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_rates_from_silence_to_saturation(reset):
    seen = []
    for gain, positive, share in [(1.0, False, 0.0), (0.3, False, 0.1), (1.0, False, 0.3), (3.0, True, 1.0)]:
        x = counts(ARRIVING, 7, 200, share) if share < 1 else torch.full((200, 7, 30), 3.0)
        seen.append(list(compare(export(driven(gain, positive, reset=reset), ARRIVING), x).values()))
    assert seen[0] == [0.0, 0.0]
    assert 0.0 < seen[2][0] < 0.7
    assert seen[3] == [1.0, 1.0]


def test_silence_after_a_burst_decays_to_subnormal_numbers():
    """β = ½ for 200 steps: membranes pass 2^−126, below which some engines flush to zero."""
    exported = export(driven(1.0, False, decay=0.5, threshold=50.0), ARRIVING)
    x = counts(ARRIVING, 3, 200)
    x[10:] = 0
    compare(exported, x)
    membranes = exported.on_torch(x, {})["trace/membrane/hidden.0.neuron"]
    tiny = np.finfo(np.float32).tiny
    assert ((membranes != 0) & (np.abs(membranes) < tiny)).any()


@pytest.mark.parametrize("mode", ["mfa", "stochastic"])
def test_a_membrane_on_its_threshold_fires(mode):
    """Weights of ½ and counts of 2: every membrane is a whole number, and ties are the rule."""
    network = SpikingMLP(30, [20], 5, settings=LIFSettings(decay=1.0, threshold=4.0))
    with torch.no_grad():
        network.hidden[0].synapse.posterior.raw_mean.fill_(0.5)
    exported = export(network, ARRIVING, CollapseSettings(mode))
    x = torch.zeros(40, 2, 30)
    x[:, :, :2] = 1.0  # one a step: four steps to the threshold, exactly
    noises = {name: torch.zeros_like(noise) for name, noise in exported.noises(x).items()}
    expected, found = exported.on_torch(x, noises), exported.on_onnxruntime(x, noises)
    comparison = Comparison()
    comparison.add(expected, found)
    comparison.hold(KINDS)
    membrane, spikes = found["trace/membrane/hidden.0.neuron"], found["trace/spikes/hidden.0.neuron"]
    assert (membrane == 4.0).any()
    assert (spikes[membrane == 4.0] == 1.0).all()
    assert spikes[:, 0, 0].tolist() == [float(t % 4 == 3) for t in range(40)]


@pytest.mark.parametrize("steps", [3, 7, 11, 49, 101, 199])
def test_means_over_odd_numbers_of_steps_are_the_same_division(steps):
    exported = export_once()
    x = counts(ARRIVING, 7, steps)
    assert np.array_equal(exported.on_torch(x, {})["logits"], exported.on_onnxruntime(x, {})["logits"])


_made: list[Exported] = []


def export_once() -> Exported:
    if not _made:
        _made.append(export(driven(1.0, False), ARRIVING))
    return _made[0]


def test_counts_whose_squares_fill_float32_keep_their_variance():
    """300 squares of up to 255² exceed 2^24; they are summed in shares that do not, and each is exact."""
    torch.manual_seed(0)
    arriving = InputContract(name="events", shape=(300,), steps=20, largest=255)
    exported = export(RecurrentSNN(300, [12], 5), arriving, CollapseSettings("stochastic"))
    synapse = exported.collapsed.network.hidden[0].synapse
    assert synapse.ones.shape[0] == 2
    assert torch.equal(synapse.ones.sum(0), torch.ones(300))
    for x in (counts(arriving, 7, 20), torch.full((20, 3, 300), 255.0)):
        compare(exported, x)
    current = synapse(torch.full((1, 300), 255.0), None)
    assert torch.equal(current.variance[0], 300 * 255.0**2 * synapse.gain)
