"""Mean-field LIF neurons against snnTorch's Leaky and RLeaky (subtractive reset, its default one-step delay).

The two differ on a tie: snnTorch fires where h > θ, we fire where h ≥ θ. Elsewhere spikes and membranes are the same
bits, as long as additions happen in the same order.
"""

import pytest
import snntorch
import torch
from torch import Tensor

from axonnx.models import LIF, Current, LIFSettings, Run, SpikingNetwork, Variant
from axonnx.models.neurons import DEFAULT_DECAY

STEPS, BATCH, NEURONS = 1000, 3, 8
SEEDS = [0, 1, 2]


class Neurons(SpikingNetwork):
    """One layer of neurons driven by currents."""

    def __init__(self, settings: LIFSettings, recurrent: bool = False) -> None:
        super().__init__()
        self.lif = LIF(Variant(), settings, recurrent=NEURONS if recurrent else None)
        if recurrent:
            self.lif.recurrent.posterior.raw_mean.data *= 0.3  # lively, not locked

    def compute(self, x: Tensor, run: Run) -> Tensor:
        return self.lif(Current(x, torch.full_like(x, 0.01)), run)

    @torch.no_grad()
    def trace(self, currents: Tensor) -> tuple[Tensor, Tensor]:
        """Spikes and membranes of every step, [T, B, neurons]."""
        spikes, membranes, state = [], [], None
        for x in currents:
            output = self.step(x, state)
            state = output.state
            spikes.append(state.layers["lif"].spikes)
            membranes.append(state.layers["lif"].membrane)
        return torch.stack(spikes), torch.stack(membranes)


def currents(seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random currents that keep neurons around their threshold, with silent stretches."""
    generator = torch.Generator().manual_seed(seed)
    drawn = 0.12 + 0.4 * torch.randn(STEPS, BATCH, NEURONS, generator=generator, dtype=dtype)
    drawn[200:260] = 0.0
    return drawn


def on_grid(values: Tensor, step: float = 1 / 16) -> Tensor:
    return torch.round(values / step) * step


def assert_lively(spikes: Tensor) -> None:
    """The comparison is about something: every neuron fires often, and none always."""
    rates = spikes.mean((0, 1))
    assert (rates > 0.02).all()
    assert (rates < 0.98).all()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("decay", "threshold"), [(DEFAULT_DECAY, 1.0), (0.5, 0.7)])
def test_leaky_bit_for_bit(seed, decay, threshold):
    drive = currents(seed)
    net = Neurons(LIFSettings(threshold=threshold, decay=decay))
    leaky = snntorch.Leaky(beta=decay, threshold=threshold, reset_mechanism="subtract")
    spikes, membranes = net.trace(drive)
    mem = torch.zeros(BATCH, NEURONS)
    for t in range(STEPS):
        spk, mem = leaky(drive[t], mem)
        assert torch.equal(spikes[t], spk), f"step {t}"
        assert torch.equal(membranes[t], mem), f"step {t}"
    assert_lively(spikes)

    whole = net(drive).observations["lif"]
    assert torch.equal(whole.spikes, spikes)
    assert torch.equal(whole.gap, membranes - threshold)


@pytest.mark.parametrize("seed", SEEDS)
def test_leaky_with_a_recurrent_linear_layer_bit_for_bit(seed):
    """Leaky driven by I + R·o[t−1]: the order of additions in which we sum, for the default decay.

    R is on a grid, so that R·o is exact in any order: ours is ascending, a matrix library's is its own.
    """
    drive = currents(seed)
    net = Neurons(LIFSettings(), recurrent=True)
    with torch.no_grad():
        net.lif.recurrent.posterior.raw_mean.mul_(256).round_().div_(256)
    recurrent = torch.nn.Linear(NEURONS, NEURONS, bias=False)
    recurrent.weight.data = net.lif.recurrent.posterior.mean.detach()
    leaky = snntorch.Leaky(beta=DEFAULT_DECAY, threshold=1.0)
    spikes, membranes = net.trace(drive)
    spk = mem = torch.zeros(BATCH, NEURONS)
    for t in range(STEPS):
        with torch.no_grad():
            spk, mem = leaky(recurrent(spk) + drive[t], mem)
        assert torch.equal(spikes[t], spk), f"step {t}"
        assert torch.equal(membranes[t], mem), f"step {t}"
    assert_lively(spikes)


def rleaky_of(net: Neurons, beta: float, threshold: float, dtype: torch.dtype) -> snntorch.RLeaky:
    """RLeaky with the same recurrent weights (zero diagonal) and no recurrent bias."""
    rleaky = snntorch.RLeaky(beta=beta, threshold=threshold, all_to_all=True, linear_features=NEURONS).to(dtype)
    rleaky.recurrent.weight.data = net.lif.recurrent.posterior.mean.detach().clone()
    rleaky.recurrent.bias.data.zero_()
    assert (rleaky.recurrent.weight.diagonal() == 0).all()
    return rleaky


@pytest.mark.parametrize("seed", SEEDS)
def test_rleaky_bit_for_bit_where_every_sum_is_exact(seed):
    """RLeaky adds (β·h + I) + R·o, we add β·h + (I + R·o): the same bits only where no sum is rounded.

    So currents and weights are multiples of 1/16 and β is 1. θ = 1 + 2⁻¹⁶ keeps all sums exact (membranes under 256
    in 24 bits) and makes a tie impossible before the 4096th reset of a neuron.
    """
    torch.manual_seed(seed)
    threshold = 1.0 + 2.0**-16
    net = Neurons(LIFSettings(threshold=threshold, decay=1.0), recurrent=True)
    net.lif.recurrent.posterior.raw_mean.data = on_grid(net.lif.recurrent.posterior.raw_mean.data)
    rleaky = rleaky_of(net, 1.0, threshold, torch.float32)
    drive = on_grid(currents(seed))
    spikes, membranes = net.trace(drive)
    spk = mem = torch.zeros(BATCH, NEURONS)
    for t in range(STEPS):
        with torch.no_grad():
            spk, mem = rleaky(drive[t], spk, mem)
        assert torch.equal(spikes[t], spk), f"step {t}"
        assert torch.equal(membranes[t], mem), f"step {t}"
    assert membranes.abs().max() < 256
    assert_lively(spikes)


@pytest.mark.parametrize("seed", SEEDS)
def test_rleaky_with_the_default_decay_to_rounding(seed):
    """In float64 the other order of additions leaves membranes within 1e-13, and spikes the same."""
    torch.manual_seed(seed)
    net = Neurons(LIFSettings(), recurrent=True).double()
    rleaky = rleaky_of(net, net.lif.decay.item(), 1.0, torch.float64)
    rleaky.beta = net.lif.decay
    drive = currents(seed, torch.float64)
    spikes, membranes = net.trace(drive)
    spk = mem = torch.zeros(BATCH, NEURONS, dtype=torch.float64)
    for t in range(STEPS):
        with torch.no_grad():
            spk, mem = rleaky(drive[t], spk.double(), mem)
        assert torch.equal(spikes[t], spk.double()), f"step {t}"
        torch.testing.assert_close(membranes[t], mem, rtol=0, atol=1e-13)
    assert_lively(spikes)


def test_on_a_tie_we_fire_and_snntorch_does_not():
    """Half a threshold each step, no leak: h is θ exactly at the second step. Ours: h ≥ θ. snnTorch: h > θ."""
    drive = torch.full((4, 1, NEURONS), 0.5)
    spikes, membranes = Neurons(LIFSettings(decay=1.0)).trace(drive)
    assert spikes[:, 0, 0].tolist() == [0, 1, 0, 1]
    assert membranes[:, 0, 0].tolist() == [0.5, 1.0, 0.5, 1.0]

    leaky, mem, theirs = snntorch.Leaky(beta=1.0), torch.zeros(1, NEURONS), []
    for x in drive:
        spk, mem = leaky(x, mem)
        theirs.append((spk[0, 0].item(), mem[0, 0].item()))
    assert theirs == [(0, 0.5), (0, 1.0), (1, 1.5), (0, 1.0)]
