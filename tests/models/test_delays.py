"""Delay lines: what a synapse behind one hears, from rest and from any state, of neurons and of maps."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from axonnx.models import DelayLine, LeakyReadout, Linear, Run, SpikingMLP, SpikingNetwork, variant
from axonnx.models.maths.firing import MEAN_FIELD


class Line(SpikingNetwork):
    """A delay line alone."""

    def __init__(self, delays: list[int]) -> None:
        super().__init__()
        self.delay = DelayLine(delays)

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.delay(x, run)


def test_every_delay_stands_beside_the_others():
    x = torch.arange(1.0, 6.0).reshape(5, 1, 1).repeat(1, 1, 2) * torch.tensor([1.0, 10.0])  # [T = 5, B = 1, N = 2]
    out = Line([0, 1, 3])(x).logits[:, 0]
    assert out.tolist() == [
        [1, 10, 0, 0, 0, 0],
        [2, 20, 1, 10, 0, 0],
        [3, 30, 2, 20, 0, 0],
        [4, 40, 3, 30, 1, 10],
        [5, 50, 4, 40, 2, 20],
    ]


@pytest.mark.parametrize("shape", [(7,), (3, 2, 4)], ids=["neurons", "maps"])
@pytest.mark.parametrize("delays", [[1], [0, 2], [3, 4]], ids=str)
def test_step_by_step_and_in_chunks_are_the_sequence(delays, shape):
    torch.manual_seed(0)
    net, x = Line(delays), (torch.rand(9, 2, *shape) < 0.5).float()
    whole = net(x)
    assert whole.logits.shape == (9, 2, len(delays) * shape[0], *shape[1:])
    state, steps = None, []
    for now in x:
        output = net.step(now, state)
        steps.append(output.logits)
        state = output.state
    assert torch.equal(torch.stack(steps), whole.logits)
    assert torch.equal(state.layers["delay"].delayed, whole.state.layers["delay"].delayed)
    first = net(x[:2])
    rest = net(x[2:], MEAN_FIELD, first.state)
    assert torch.equal(torch.cat([first.logits, rest.logits]), whole.logits)


@torch.no_grad()
def test_a_layer_hears_each_delay_with_weights_of_its_own():
    """I[t] = Σ_k W_k x[t − d_k] + b, and Var I[t] = σ² Σ_k Σ_j x_j[t − d_k]², from loops over time."""
    torch.manual_seed(1)
    delays, inputs, outputs = [0, 2, 3], 4, 5
    net = SpikingMLP(inputs, [outputs], 3, variant("sbnn"), delays=delays).double()
    net.keeps_currents = True
    x = (torch.rand(8, 2, inputs) < 0.5).double()
    synapse = net.hidden[0].synapse
    weight, bias, scale = (part.numpy() for part in synapse.constants())
    deviation = synapse.posterior.std.numpy().reshape(-1) * scale
    expected, spread = np.zeros((8, 2, outputs)) + bias, np.zeros((8, 2, outputs))
    for t in range(8):
        for number, delay in enumerate(delays):
            if t >= delay:
                heard = x[t - delay].numpy()
                expected[t] += heard @ weight[:, number * inputs : (number + 1) * inputs].T
                spread[t] += (heard**2).sum(1, keepdims=True) * deviation**2
    current = net(x).currents["hidden.0.neuron"]
    np.testing.assert_allclose(current.mean.numpy(), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(current.variance.numpy(), spread, rtol=1e-12, atol=1e-12)


def test_the_first_layer_or_all_of_them():
    first, every = (SpikingMLP(4, [5, 6], 3, delays=[0, 3], delayed=which) for which in ("first", "all"))
    shapes = [[layer.synapse.posterior.raw_mean.shape[1] for layer in net.hidden] for net in (first, every)]
    assert shapes == [[8, 5], [8, 10]]


@pytest.mark.parametrize("delays", [[], [0], [-1, 2], [2, 1], [1, 1], [0, 1.5]], ids=str)
def test_other_delays_are_refused(delays):
    with pytest.raises(ValueError, match=r"delays are .*; expected whole time steps in ascending order, each once"):
        DelayLine(delays)


def test_currents_are_not_delayed():
    class Wrong(SpikingNetwork):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.delay, self.readout = Linear(4, 4), DelayLine([1]), LeakyReadout(4, 2)

        def compute(self, x: Tensor, run: Run) -> Tensor:
            return self.readout(self.delay(self.up(x, run), run), run)

    with pytest.raises((ValueError, TypeError), match="delay"):
        Wrong()(torch.zeros(2, 1, 4))


def test_a_delay_line_has_nothing_to_learn():
    assert not list(nn.Module.parameters(DelayLine([0, 2])))
