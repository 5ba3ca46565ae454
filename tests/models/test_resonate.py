"""Resonate-and-fire neurons: what they answer to, that they can be trained, and that their noise has exact moments."""

import math

import pytest
import torch
from torch import Tensor

from axonnx.models import (
    MEAN_FIELD,
    Current,
    LeakyReadout,
    Linear,
    ResonateAndFire,
    Run,
    Sample,
    SpikingNetwork,
    State,
)
from axonnx.models.checking import check_network

PERIODS = (6, 8, 10, 12, 16, 20)


def pulses(period: int, steps: int = 200, size: float = 0.5) -> Tensor:
    """A pulse every so many steps, [T, 1, 1]."""
    x = torch.zeros(steps, 1, 1)
    x[::period] = size
    return x


def run_layer(layer: ResonateAndFire, mean: Tensor, variance: Tensor | None = None) -> Run:
    run = Run(layer, Sample(torch.Generator().manual_seed(0)) if variance is not None else MEAN_FIELD, sequence=True)
    layer(Current(mean, variance), run)
    return run


def test_neurons_answer_to_pulses_at_their_own_frequency_and_to_no_other():
    own = torch.tensor([8.0, 10.0, 16.0])
    layer = ResonateAndFire(1 / own, decay=torch.exp(-0.5 / own))  # the same share is left after one period of each
    fired = {}
    for period in PERIODS:
        spikes = run_layer(layer, pulses(period).expand(-1, 1, 3)).observations[""].spikes
        fired[period] = (spikes.sum((0, 1)) > 0).tolist()
    assert fired == {period: [period == each for each in own.tolist()] for period in PERIODS}


def test_a_single_pulse_rings_on_at_the_frequency_and_decays():
    layer = ResonateAndFire(0.1, decay=0.9, threshold=10.0)
    x = torch.zeros(40, 1, 1)
    x[0] = 1.0
    membrane = run_layer(layer, x).observations[""].gap.flatten() + 10.0
    expected = torch.tensor([0.9**t * math.sin(2 * math.pi * 0.1 * t) for t in range(40)])
    assert torch.allclose(membrane, expected, atol=1e-6)


def test_a_spike_takes_the_threshold_from_the_membrane_at_the_next_step():
    layer = ResonateAndFire(0.25, decay=1.0)  # a quarter turn: x' = −y + I, y' = x − θ o
    run = run_layer(layer, torch.tensor([2.0, 0.0, 0.0, 0.0]).reshape(4, 1, 1))
    seen = run.observations[""]
    assert torch.allclose(seen.gap.flatten() + 1.0, torch.tensor([0.0, 2.0, -1.0, -2.0]), atol=1e-6)
    assert seen.spikes.flatten().tolist() == [0.0, 1.0, 0.0, 0.0]


def test_step_by_step_is_the_whole_sequence():
    layer = ResonateAndFire(torch.tensor([0.1, 0.2, 0.05]), recurrent=3)
    x = torch.randn(20, 4, 3, generator=torch.Generator().manual_seed(1))
    whole = run_layer(layer, x)
    state, spikes = None, []
    for now in x:
        run = Run(layer, MEAN_FIELD, state)
        spikes.append(layer(Current(now), run))
        state = State(0, dict(run.after))
    assert torch.equal(torch.stack(spikes), whole.observations[""].spikes)
    assert whole.observations[""].spikes.any()
    assert all(torch.equal(a, b) for a, b in zip(run.after[""], whole.after[""], strict=True) if a is not None)


def test_the_variance_of_the_membrane_is_that_of_many_noisy_currents():
    torch.manual_seed(0)
    layer, samples, steps = ResonateAndFire(0.07, decay=0.9, threshold=1e9), 40_000, 12
    variance = torch.rand(steps, 1, 1) + 0.5
    told = run_layer(layer, torch.zeros(steps, 1, 1), variance).observations[""].variance
    drawn = torch.randn(steps, samples, 1) * variance.sqrt()
    membranes = run_layer(layer.double(), drawn.double()).observations[""].gap
    # A variance over n samples has the relative standard error √(2/n); the first one is zero in both.
    assert torch.allclose(
        membranes.var(1).flatten().float(), told.flatten(), rtol=5 * math.sqrt(2 / samples), atol=1e-9
    )
    assert told[0].item() == 0.0
    assert told[1:].min() > 0.0


class Tuned(SpikingNetwork):
    """Two resonators, read out."""

    def __init__(self, **options: object) -> None:
        super().__init__()
        self.into = Linear(1, 8)
        self.neurons = ResonateAndFire(torch.linspace(0.06, 0.2, 8), learn_frequency=True, learn_decay=True, **options)
        self.readout = LeakyReadout(8, 2)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.readout(self.neurons(self.into(x, run), run), run)


def test_frequencies_and_decays_are_learned_in_a_plain_loop():
    """Two classes that differ in nothing but the rhythm of their pulses."""
    torch.manual_seed(0)
    network = Tuned()
    check_network(network, (1,), 2)
    x = torch.cat([pulses(period, 60, 1.0) for period in (10, 7)], 1).repeat(1, 8, 1)
    labels = torch.tensor([0, 1]).repeat(8)
    before = {name: value.detach().clone() for name, value in network.neurons.named_parameters()}
    optimiser, losses = torch.optim.Adam(network.parameters(), 0.02), []
    for _ in range(40):
        output = network(x, Sample())
        loss = torch.nn.functional.cross_entropy(output.logits, labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert sorted(before) == ["level_logit", "share_logit"]
    assert all(not torch.equal(before[name], value) for name, value in network.neurons.named_parameters())
    assert (network.neurons.frequency > 0).all()
    assert (network.neurons.frequency < 0.5).all()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"frequency": 0.5}, r"frequency is 0.5; expected oscillations in a time step, within \(0, ½\)"),
        ({"frequency": torch.tensor([0.25, 0.0])}, r"frequency is \[0.25, 0.0\]"),
        ({"frequency": 0.1, "decay": 1.5}, r"decay is 1.5; expected numbers in \(0, 1\]"),
        ({"frequency": 0.1, "decay": 1.0, "learn_decay": True}, r"decay is 1.0; .* below 1 to be learned"),
        ({"frequency": 0.1, "threshold": 0.0}, r"threshold of a spiking neuron is 0.0; expected a positive number"),
    ],
)
def test_constants_out_of_their_range_are_refused(options, told):
    with pytest.raises(ValueError, match=told):
        ResonateAndFire(**options)
