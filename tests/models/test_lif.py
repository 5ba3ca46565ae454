"""Spiking neurons and read-outs against traces worked out by hand."""

import math

import pytest
import torch
from torch import Tensor

from axonnx.models import LIF, MEAN_FIELD, Current, LeakyReadout, LIFSettings, Run, SpikingNetwork, Variant, variant
from axonnx.models.collapsing import hold
from axonnx.models.neurons import DEFAULT_DECAY, integrate
from axonnx.models.run import LIFState


class Neurons(SpikingNetwork):
    """One layer of neurons driven by currents of a given variance."""

    def __init__(self, settings: LIFSettings, variance: float | None = None) -> None:
        super().__init__()
        self.lif, self.variance = LIF(Variant(), settings), variance

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.lif(Current(x, None if self.variance is None else torch.full_like(x, self.variance)), run)


def drive(*values: float) -> Tensor:
    """Currents of one neuron, [T, 1, 1]."""
    return torch.tensor(values).view(-1, 1, 1)


def trace(settings: LIFSettings, *currents: float) -> tuple[list[float], list[float]]:
    """Spikes and membranes of one neuron."""
    net, state, membranes = Neurons(settings), None, []
    for x in drive(*currents):
        state = net.step(x, state).state
        membranes.append(state.layers["lif"].membrane.item())
    spikes = net(drive(*currents)).observations["lif"].spikes
    return spikes.flatten().tolist(), membranes


def test_subtractive_reset_by_hand():
    """β = ½, θ = 1: the spike of step t takes θ off at step t + 1, and what was above θ stays."""
    spikes, membranes = trace(LIFSettings(decay=0.5), 0.75, 0.75, 0.25, 0.0, 2.5, 0.0, 0.0)
    #            0.75  ½·0.75+0.75  ½·1.125+¼−1  ½·−0.1875   …+2.5    ½h−1     ½h (did not fire)
    assert membranes == [0.75, 1.125, -0.1875, -0.09375, 2.453125, 0.2265625, 0.11328125]
    assert spikes == [0, 1, 0, 0, 1, 0, 0]


def test_reset_to_zero_by_hand():
    """The spike of step t clears what the membrane carries to step t + 1, and nothing else."""
    spikes, membranes = trace(LIFSettings(decay=0.5, reset="zero"), 0.75, 0.75, 0.25, 0.0, 2.5, 0.0, 1.0)
    assert membranes == [0.75, 1.125, 0.25, 0.125, 2.5625, 0.0, 1.0]
    assert spikes == [0, 1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_a_tie_fires(reset):
    spikes, _ = trace(LIFSettings(decay=1.0, reset=reset), 0.5, 0.5, 0.0, 1.0)
    assert spikes == [0, 1, 0, 1]


@pytest.mark.parametrize(("reset", "expected"), [("subtract", [1.0, 1.25, 1.3125]), ("zero", [1.0, 1.25, 1.0])])
def test_variance_recurrence_by_hand(reset, expected):
    """κ² = ¼ κ² + 1; a spike (here at the second step) clears it only where it clears the membrane."""
    net = Neurons(LIFSettings(decay=0.5, base_std=0.5, reset=reset), variance=1.0)
    output = net(drive(0.0, 5.0, 0.0))
    assert (output.observations["lif"].variance - 0.25).flatten().tolist() == pytest.approx(expected, rel=1e-6)
    assert output.state.layers["lif"].variance.item() == pytest.approx(expected[-1], rel=1e-6)


def test_integrate_is_a_pure_function():
    state = LIFState(torch.tensor([0.4]), torch.tensor([0.2]), torch.tensor([1.0]))
    before = [value.clone() for value in state]
    integrate(Current(torch.tensor([0.3]), torch.tensor([0.1])), state, torch.tensor(0.9), torch.tensor(1.0))
    assert all(torch.equal(old, new) for old, new in zip(before, state, strict=True))


def test_no_input_at_all_gives_no_spike_and_a_zero_gradient():
    net = Neurons(LIFSettings(base_std=0.0), variance=0.0)
    x = torch.zeros(5, 2, 3, requires_grad=True)
    seen = net(x).observations["lif"]
    assert (seen.spikes == 0).all()
    assert (seen.variance == 0).all()
    seen.spikes.sum().backward()
    assert (x.grad == 0).all()


def test_readout_is_the_mean_of_a_leaky_membrane():
    """h = 1, 1.5, 0.75 with β = ½: means of the first t membranes 1, 1.25, 13/12."""
    readout = LeakyReadout(1, 1, decay=0.5)
    torch.nn.init.ones_(readout.weight)

    class Reader(SpikingNetwork):
        def __init__(self):
            super().__init__()
            self.readout = readout

        def compute(self, x, run):
            return self.readout(x, run)

    spikes = drive(1.0, 1.0, 0.0)
    net, state, running = Reader(), None, []
    for x in spikes:
        output = net.step(x, state)
        state = output.state
        running.append(output.logits.item())
    assert running == pytest.approx([1.0, 1.25, 13 / 12], rel=1e-6)
    assert net(spikes).logits.item() == running[-1]


def test_default_decay_is_a_time_constant_of_ten_steps():
    assert LIFSettings().decay == DEFAULT_DECAY == pytest.approx(math.exp(-0.1))


def test_learned_decay_starts_at_its_setting_and_gets_a_gradient():
    net = Neurons(LIFSettings(decay=0.7, learn_decay=True), variance=0.1)
    assert net.lif.decay.item() == pytest.approx(0.7)
    net(drive(0.5, 0.6, 0.7)).observations["lif"].spikes.sum().backward()
    assert net.lif.decay_logit.grad.abs() > 0


@pytest.mark.parametrize("name", ["sbnn", "fpv", "sg-nbn-1"])
def test_base_noise_is_learned_fixed_or_absent_like_the_posterior(name):
    lif = LIF(variant(name), LIFSettings(base_std=0.3))
    learned, stored = (set(dict(pairs)) for pairs in (lif.named_parameters(), lif.named_buffers()))
    assert ("log_base_std" in learned, "log_base_std" in stored) == {
        "sbnn": (True, False),
        "fpv": (False, True),
        "sg-nbn-1": (False, False),
    }[name]
    if name != "sg-nbn-1":
        assert lif.base_variance.item() == pytest.approx(0.09)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"decay": 1.2}, r"decay is 1.2; expected a number in \[0, 1\]"),
        ({"decay": -0.1}, r"decay is -0.1; expected"),
        ({"decay": 1.0, "learn_decay": True}, r"within \(0, 1\) to be learned"),
        ({"threshold": 0.0}, "threshold of a spiking neuron is 0.0; expected a positive number"),
        ({"base_std": -1.0}, "base_std is -1.0; expected zero or a positive number"),
        ({"time_constants": (3.0, 2.0)}, "time_constants are 3.0 to 2.0; expected two positive numbers, in order"),
        ({"time_constants": (1.0, 2.0)}, "set learn_decay = 'neuron'"),
        ({"reset": "soft"}, "reset is 'soft'; known are 'subtract' and 'zero'"),
    ],
)
def test_settings_refuse_what_makes_no_neuron(setting, message):
    with pytest.raises(ValueError, match=message):
        LIFSettings(**setting)


@pytest.mark.parametrize("shape", [(3,), (3, 1, 1)], ids=["dense", "conv"])
@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_each_neuron_or_channel_has_the_decay_it_learned(shape, reset):
    """A layer with three decays is three layers with one each."""
    places = (3, 2, 2)[: len(shape)]
    lif = LIF(Variant(), LIFSettings(learn_decay="neuron", reset=reset), shape=shape)
    assert lif.decay_logit.shape == shape
    with torch.no_grad():
        lif.decay_logit.copy_(torch.tensor([-1.0, 0.5, 3.0]).reshape(shape))
    mean, variance = torch.randn(9, 2, *places), torch.rand(9, 2, *places)
    together = lif(Current(mean, variance), Run(lif, MEAN_FIELD, sequence=True))
    for number, logit in enumerate((-1.0, 0.5, 3.0)):
        decay = torch.sigmoid(torch.tensor(logit)).item()
        alone = LIF(Variant(), LIFSettings(decay=decay, reset=reset))
        part = Current(mean[:, :, number : number + 1], variance[:, :, number : number + 1])
        assert torch.equal(together[:, :, number : number + 1], alone(part, Run(alone, MEAN_FIELD, sequence=True)))


@pytest.mark.parametrize("reset", ["subtract", "zero"])
def test_each_neuron_has_the_threshold_it_learned(reset):
    """A layer with three thresholds is three layers with one each."""
    lif = LIF(Variant(), LIFSettings(learn_threshold="neuron", reset=reset), shape=(3,))
    assert lif.threshold.tolist() == [1.0, 1.0, 1.0]
    with torch.no_grad():
        lif.threshold.copy_(torch.tensor([0.5, 1.0, 2.0]))
    mean, variance = 0.5 + torch.randn(9, 2, 3), torch.rand(9, 2, 3)
    together = lif(Current(mean, variance), Run(lif, MEAN_FIELD, sequence=True))
    for number, threshold in enumerate((0.5, 1.0, 2.0)):
        alone = LIF(Variant(), LIFSettings(threshold=threshold, reset=reset))
        part = Current(mean[..., number : number + 1], variance[..., number : number + 1])
        assert torch.equal(together[..., number : number + 1], alone(part, Run(alone, MEAN_FIELD, sequence=True)))


def test_learned_decays_begin_at_time_constants_spread_evenly_in_their_logarithm():
    torch.manual_seed(0)
    lif = LIF(Variant(), LIFSettings(learn_decay="neuron", time_constants=(1.0, 16.0)), shape=(4000,))
    octaves = torch.log2(-1.0 / torch.log(lif.decay.detach()))
    assert octaves.min() >= -1e-4
    assert octaves.max() <= 4 + 1e-4
    assert torch.histc(octaves, 4, 0, 4).sub(1000).abs().max() < 120


def test_a_learned_threshold_can_be_held():
    lif = LIF(Variant(), LIFSettings(learn_threshold=True))
    assert "threshold" in dict(lif.named_parameters())
    hold(lif, threshold=torch.tensor(0.25))
    assert lif.threshold.item() == 0.25
    assert "threshold" not in dict(lif.named_parameters())


def test_decays_of_neurons_need_their_number():
    with pytest.raises(ValueError, match=r"give shape=\(n,\), or \(channels, 1, 1\)"):
        LIF(Variant(), LIFSettings(learn_decay="neuron"))
    assert LIF(Variant(), LIFSettings(learn_decay="neuron"), recurrent=4).decay.shape == (4,)
