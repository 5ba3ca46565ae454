"""A sequence in one pass, step by step, or in any chunks: the same bits, for every spiking network and variant.

Weights are multiples of 1/256 here. A matrix library adds in another order when a product has one row or many, which
changes the last bit of a sum that is rounded; on this grid no sum of weighted spikes is rounded, so that every bit
that differs would be ours.
"""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from axonnx.models import (
    LIF,
    MEAN_FIELD,
    VARIANTS,
    Fire,
    LIFSettings,
    Linear,
    Output,
    RecurrentSNN,
    Replay,
    Run,
    Sample,
    SpikingMLP,
    SpikingNetwork,
    SpikingResNet,
    State,
    variant,
)
from axonnx.models.neurons import LeakyReadout

STEPS, BATCH = 6, 2
ZERO = LIFSettings(reset="zero")
NETWORKS = {
    "mlp": lambda v: SpikingMLP(5, [7, 4], 3, v, steps=STEPS),
    "mlp-zero": lambda v: SpikingMLP(5, [7, 4], 3, v, ZERO, steps=STEPS),
    "mlp-delays": lambda v: SpikingMLP(5, [7, 4], 3, v, steps=STEPS, delays=[0, 1, 4]),
    "recurrent": lambda v: RecurrentSNN(5, (7, 4), 3, v, steps=STEPS),
    "resnet": lambda v: SpikingResNet(2, (3, 4), 1, 3, v, size=4, steps=STEPS),
    "resnet-conv": lambda v: SpikingResNet(2, (3, 4), 1, 3, v, size=4, shortcut="conv", steps=STEPS),
}


def network(kind: str, name: str) -> SpikingNetwork:
    """With weights on the grid, in evaluation mode (where batch norm does not learn from what it sees)."""
    torch.manual_seed(1)
    return on_grid(NETWORKS[kind](variant(name))).eval()


def on_grid(net: SpikingNetwork) -> SpikingNetwork:
    with torch.no_grad():
        for parameter in net.parameters():
            if parameter.dim() > 1 and parameter.numel() > 1:
                parameter.copy_(torch.round(parameter * 256) / 256)
    return net


def events(kind: str, steps: int = STEPS, batch: int = BATCH, active: float = 0.4) -> Tensor:
    torch.manual_seed(2)
    shape = (2, 4, 4) if kind.startswith("resnet") else (5,)
    return (torch.rand(steps, batch, *shape) < active).float()


def recorded_noise(net: SpikingNetwork, x: Tensor) -> Replay:
    """What ``Sample`` would draw for each layer of neurons, over the whole sequence."""
    seen = net(x).observations
    return Replay({name: torch.randn_like(observation.gap) for name, observation in seen.items()})


def in_chunks(net: SpikingNetwork, x: Tensor, fire: Fire, borders: list[int]) -> list[Output]:
    outputs, state = [], None
    for start, end in zip([0, *borders], [*borders, len(x)], strict=True):
        outputs.append(net(x[start:end], fire, state))
        state = outputs[-1].state
    return outputs


def assert_same_state(found: State, expected: State) -> None:
    assert found.step == expected.step
    assert found.layers.keys() == expected.layers.keys()
    for name, layer in expected.layers.items():
        for mine, theirs in zip(found.layers[name], layer, strict=True):
            assert (mine is None and theirs is None) or torch.equal(mine, theirs), name


@pytest.mark.parametrize("sampled", [False, True], ids=["mean-field", "replay"])
@pytest.mark.parametrize("name", sorted(set(VARIANTS) - {"bbnn"}))
@pytest.mark.parametrize("kind", NETWORKS)
@torch.no_grad()
def test_step_by_step_is_the_sequence_bit_for_bit(kind, name, sampled):
    net, x = network(kind, name), events(kind)
    fire = recorded_noise(net, x) if sampled else MEAN_FIELD
    whole, state = net(x, fire), None
    for t in range(STEPS):
        step = net.step(x[t], state, fire)
        state = step.state
        for layer, seen in whole.observations.items():
            assert torch.equal(step.observations[layer].spikes, seen.spikes[t]), (layer, t)
            assert torch.equal(step.observations[layer].gap, seen.gap[t]), (layer, t)
    assert torch.equal(step.logits, whole.logits)
    assert_same_state(state, whole.state)


@pytest.mark.parametrize("kind", NETWORKS)
@given(borders=st.sets(st.integers(1, STEPS - 1)), sampled=st.booleans(), batch=st.sampled_from([1, 3]))
@settings(deadline=None, derandomize=True, max_examples=10)
def test_any_chunks_are_the_sequence_bit_for_bit(kind, borders, sampled, batch):
    with torch.no_grad():
        net, x = network(kind, "sbnn"), events(kind, batch=batch)
        fire = recorded_noise(net, x) if sampled else MEAN_FIELD
        whole, parts = net(x, fire), in_chunks(net, x, fire, sorted(borders))
        for layer, seen in whole.observations.items():
            assert torch.equal(torch.cat([part.observations[layer].spikes for part in parts]), seen.spikes)
            assert torch.equal(torch.cat([part.observations[layer].variance for part in parts]), seen.variance)
        assert torch.equal(parts[-1].logits, whole.logits)
        assert_same_state(parts[-1].state, whole.state)


@pytest.mark.parametrize("active", [0.0, 1.0], ids=["silent", "all-active"])
@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize("kind", NETWORKS)
def test_one_step_one_sample_no_input_and_all_inputs(kind, steps, active):
    """The corners of shape and activity run forward and backward with finite gradients."""
    net, x = network(kind, "sbnn"), events(kind, steps, batch=1, active=active)
    for fire in (MEAN_FIELD, Sample(torch.Generator().manual_seed(3))):
        output = net(x, fire)
        assert output.logits.shape == (1, 3)
        (output.logits.square().sum() + net.regulariser(output)).backward()
        for name, parameter in net.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.isfinite().all(), name


class Feedback(SpikingNetwork):
    """The first layer hears the second, one step later: a loop that only runs step by step."""

    layerwise = False

    def __init__(self) -> None:
        super().__init__()
        self.forth, self.back = Linear(5, 6), Linear(4, 6)
        self.first, self.between, self.second = LIF(), Linear(6, 4), LIF()
        self.readout = LeakyReadout(4, 3)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        before = run.state_of(self.second)
        heard = torch.zeros(len(x), 4) if before is None else before.spikes
        spikes = self.second(self.between(self.first(self.forth(x, run) + self.back(heard, run), run), run), run)
        return self.readout(spikes, run)


def test_a_network_with_feedback_runs_step_by_step():
    torch.manual_seed(1)
    net, x = on_grid(Feedback()), events("mlp")
    fire = Replay({"first": torch.randn(STEPS, BATCH, 6), "second": torch.randn(STEPS, BATCH, 4)})
    whole, state = net(x, fire), None
    for t in range(STEPS):
        step = net.step(x[t], state, fire)
        state = step.state
        assert torch.equal(whole.observations["second"].spikes[t], step.observations["second"].spikes)
    assert torch.equal(whole.logits, step.logits)
    assert whole.observations["first"].spikes.shape == (STEPS, BATCH, 6)
    assert_same_state(state, whole.state)
    (whole.logits.square().sum() + net.regulariser(whole)).backward()
    assert net.back.posterior.raw_mean.grad.abs().max() > 0


def test_a_detached_state_carries_no_graph():
    net, x = network("recurrent", "sbnn"), events("recurrent")
    state = net(x[:3]).state
    assert any(value.requires_grad for layer in state.layers.values() for value in layer)
    assert not any(value.requires_grad for layer in state.detach().layers.values() for value in layer)
    assert_same_state(state.detach(), state)


@pytest.mark.parametrize("shape", [(0, 2, 5), (2, 5)], ids=["no-steps", "no-time"])
def test_a_sequence_has_time_and_batch(shape):
    with pytest.raises(ValueError, match=r"events have shape .*; expected \[T, B, …\] with at least one time step"):
        network("mlp", "sbnn")(torch.zeros(shape))
