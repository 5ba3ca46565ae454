"""Decisions, recorded noise, forced spikes, and what the ledger of a pass refuses."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from axonnx.models import (
    MEAN_FIELD,
    BinaryMLP,
    BinaryNetwork,
    BinaryNeuron,
    DenseLayer,
    Forced,
    Linear,
    LinearReadout,
    Replay,
    Sample,
    SpikingMLP,
    Variant,
)
from axonnx.models.maths.firing import decide, heaviside

FIRST, SECOND = "hidden.0.neuron", "hidden.1.neuron"


def test_a_tie_fires():
    assert heaviside(torch.tensor([-1e-30, -0.0, 0.0, 1e-30])).tolist() == [0, 1, 1, 1]


@given(gap=st.floats(-50, 50), std=st.floats(0.01, 20), noise=st.floats(-6, 6))
@settings(deadline=None, derandomize=True)
def test_deciding_on_squares_is_deciding_on_the_noisy_membrane(gap, std, noise):
    """H(gap + κ ε), but where rounding could decide: |gap + κ ε| under 1e-9 of its terms."""
    noisy = gap + std * noise
    spike = decide(*(torch.tensor([value], dtype=torch.float64) for value in (gap, std * std, noise)))
    if abs(noisy) > 1e-9 * (abs(gap) + std):
        assert spike.item() == float(noisy >= 0)


def test_without_noise_the_sign_decides():
    gap = torch.tensor([-2.0, -1e-3, 0.0, 1e-3, 2.0])
    for variance, noise in [
        (None, None),
        (torch.ones(5), None),
        (None, torch.ones(5)),
        (torch.zeros(5), -torch.ones(5)),
    ]:
        assert decide(gap, variance, noise).tolist() == [0, 0, 1, 1, 1]


def test_sample_repeats_with_its_generator_and_differs_between_layers():
    like = torch.zeros(4, 3, dtype=torch.float64)
    fire, again = (Sample(torch.Generator().manual_seed(5)) for _ in range(2))
    first, second = fire.noise("a", like, 0), fire.noise("b", like, 0)
    assert first.dtype == torch.float64
    assert not torch.equal(first, second)
    assert torch.equal(first, again.noise("a", like, 0))


def test_replayed_noise_is_the_sampled_pass_again():
    """In float64, where torch's passes draw an array of noise for each layer."""
    net, x = BinaryMLP(4, [5, 3], 2).double(), torch.rand(6, 4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(7)
    sizes = {FIRST: (6, 5), SECOND: (6, 3)}
    noises = {name: torch.randn(size, generator=generator, dtype=x.dtype) for name, size in sizes.items()}
    sampled, replayed = net(x, Sample(torch.Generator().manual_seed(7))), net(x, Replay(noises))
    for name in (FIRST, SECOND):
        assert torch.equal(sampled.observations[name].spikes, replayed.observations[name].spikes)
    assert torch.equal(sampled.logits, replayed.logits)


def test_replay_says_which_layer_and_which_shape():
    net, x = SpikingMLP(4, [5], 2), torch.rand(6, 2, 4)
    with pytest.raises(ValueError, match=r"no noise for layer 'hidden.0.neuron'; given are \['other'\]"):
        net(x, Replay({"other": torch.randn(6, 2, 5)}))
    for shape in [(6, 2, 4), (5, 2, 5), (6, 3, 5), (2, 5)]:
        with pytest.raises(ValueError, match=r"noise of layer 'hidden.0.neuron': recorded .*, needed \[6, 2, 5\]"):
            net(x, Replay({FIRST: torch.randn(shape)}))


def test_replay_ends_with_its_recording():
    """A chunk as long as the recording but later in time is not the recording again."""
    net, x = SpikingMLP(4, [5], 2), torch.rand(6, 2, 4)
    fire = Replay({FIRST: torch.randn(6, 2, 5)})
    state = net(x, fire).state
    with pytest.raises(ValueError, match=r"recorded \[6, 2, 5\], needed \[6, 2, 5\] from step 6 on"):
        net(x, fire, state)
    with pytest.raises(ValueError, match=r"recorded \[6, 2, 5\], needed \[2, 5\] from step 6 on"):
        net.step(x[0], state, fire)


def test_forced_spikes_are_given_whatever_the_membrane_says():
    net, x = BinaryMLP(4, [5, 3], 2), torch.rand(6, 4)
    spikes = (torch.rand(6, 5) < 0.5).float()
    noise = torch.randn(6, 3)
    output = net(x, Forced({FIRST: spikes}, Replay({SECOND: noise})))
    assert torch.equal(output.observations[FIRST].spikes, spikes)
    seen = output.observations[SECOND]
    assert torch.equal(seen.spikes, decide(seen.gap, seen.variance, noise))
    with pytest.raises(ValueError, match=r"spikes of layer 'hidden.0.neuron': recorded \[6, 4\], needed \[6, 5\]"):
        net(x, Forced({FIRST: spikes[:, :4]}, MEAN_FIELD))


def test_forced_spikes_nest():
    net, x = BinaryMLP(4, [5, 3], 2), torch.rand(6, 4)
    first, second = torch.ones(6, 5), torch.zeros(6, 3)
    output = net(x, Forced({FIRST: first}, Forced({SECOND: second}, MEAN_FIELD)))
    assert torch.equal(output.observations[FIRST].spikes, first)
    assert torch.equal(output.observations[SECOND].spikes, second)


class Wired(BinaryNetwork):
    """Layers called as ``order`` says, by attribute name."""

    def __init__(self, order: list[str]) -> None:
        super().__init__()
        self.a = DenseLayer(4, 4, Variant(), BinaryNeuron())
        self.readout = LinearReadout(4, 2)
        self.order = order
        self.hidden_from_torch = [DenseLayer(4, 4, Variant(), BinaryNeuron())]  # a list registers nothing

    def compute(self, x, run):
        for name in self.order:
            x = (self.a if name == "a" else self.hidden_from_torch[0])(x, run)
        return self.readout(x, run)


def test_a_layer_runs_once_in_a_pass():
    with pytest.raises(ValueError, match=r"layer 'a.neuron' ran twice in one pass; .*: use two layers"):
        Wired(["a", "a"])(torch.rand(2, 4))


def test_a_layer_belongs_to_the_network_that_runs():
    with pytest.raises(ValueError, match="Linear is not part of the network that runs: assign it"):
        Wired(["a", "foreign"])(torch.rand(2, 4))


def test_observations_are_named_like_the_layers_and_give_firing_rates():
    output = BinaryMLP(4, [5, 3], 2)(torch.rand(6, 4))
    assert list(output.observations) == [FIRST, SECOND]
    for name, rate in output.firing_rates().items():
        assert rate == output.observations[name].spikes.mean()
        assert not rate.requires_grad


def test_a_binary_neuron_has_a_threshold():
    neuron = BinaryNeuron(threshold=0.5)

    class One(BinaryNetwork):
        def __init__(self):
            super().__init__()
            self.synapse, self.neuron = Linear(1, 1, Variant(normalisation="none")), neuron
            torch.nn.init.ones_(self.synapse.posterior.raw_mean)

        def compute(self, x, run):
            return self.neuron(self.synapse(x, run), run)

    assert One()(torch.tensor([[0.25], [0.5], [0.75]])).logits.flatten().tolist() == [0, 1, 1]
