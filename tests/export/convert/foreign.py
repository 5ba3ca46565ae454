"""Networks as users of other libraries write them, with weights that make their neurons fire often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

ROW, MAPS, LINE = (1, 1, 20), (2, 8, 8), (3, 1, 16)
CLASSES = 5


@dataclass(frozen=True)
class Case:
    """A library, the shape of an input, a network, and whether its arithmetic is ours to the last bit."""

    library: str
    shape: tuple[int, int, int]
    make: Callable[[], nn.Module]
    exact: bool = True
    times: float = 2.5  # weights, so that neurons fire


CASES: dict[str, Case] = {}


def case(
    library: str, shape: tuple[int, int, int], exact: bool = True, times: float = 2.5
) -> Callable[..., Callable[[], nn.Module]]:
    def keep(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        CASES[f"{library}-{make.__name__}"] = Case(library, shape, make, exact, times)
        return make

    return keep


def made(name: str) -> tuple[nn.Module, tuple[int, int, int]]:
    """The network of a case, its weights on a coarse grid, where sums in any order are the same and ties many."""
    chosen = CASES[name]
    pytest.importorskip(chosen.library, reason=f"{chosen.library} is not installed; see CONTRIBUTING.md")
    torch.manual_seed(3)
    network = chosen.make()
    for module in network.modules():
        for part in ("weight", "bias", "input_weights", "recurrent_weights", "V"):
            value = getattr(module, part, None)
            if isinstance(value, nn.Parameter) and value.numel() > 1 and not isinstance(module, nn.BatchNorm2d):
                value.data = torch.round((value.data * chosen.times + (0.1 if value.dim() > 1 else 0.0)) * 16) / 16
    return network, chosen.shape


def sequential(*layers: nn.Module) -> nn.Sequential:
    return nn.Sequential(*layers)


class Looped(nn.Module):
    """As snnTorch's tutorials have it: states by hand, a loop over time, spikes and membranes of all steps."""

    def __init__(self, first: nn.Module, second: nn.Module, hidden: int = 16) -> None:
        super().__init__()
        self.fc1, self.lif1 = nn.Linear(20, hidden), first
        self.fc2, self.lif2 = nn.Linear(hidden, CLASSES), second

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        states = [list(_reset(layer)) for layer in (self.lif1, self.lif2)]
        spikes, membranes = [], []
        for step in range(x.shape[0]):
            hidden, *states[0] = self.lif1(self.fc1(x[step]), *states[0])
            states[0] = [hidden, *states[0]] if self._recurrent(self.lif1) else states[0]
            out, *states[1] = self.lif2(self.fc2(hidden), *states[1])
            states[1] = [out, *states[1]] if self._recurrent(self.lif2) else states[1]
            spikes.append(out)
            membranes.append(states[1][-1])
        return torch.stack(spikes), torch.stack(membranes)

    @staticmethod
    def _recurrent(layer: nn.Module) -> bool:
        return type(layer).__name__.startswith("R")


def _reset(layer: nn.Module) -> tuple[Tensor, ...]:
    states = layer.reset_mem()
    return states if isinstance(states, tuple) else (states,)


class Stepping(nn.Module):
    """One step of time: ``forward(x, mem1, mem2)``."""

    def __init__(self) -> None:
        super().__init__()
        import snntorch

        self.fc1, self.lif1 = nn.Linear(20, 16), snntorch.Leaky(beta=0.8)
        self.fc2, self.lif2 = nn.Linear(16, CLASSES), snntorch.Leaky(beta=0.8, reset_mechanism="zero")

    def forward(self, x: Tensor, mem1: Tensor, mem2: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        spikes, mem1 = self.lif1(self.fc1(x), mem1)
        spikes, mem2 = self.lif2(self.fc2(spikes), mem2)
        return spikes, mem1, mem2


@case("snntorch", ROW)
def leaky() -> nn.Module:
    import snntorch

    return Looped(snntorch.Leaky(beta=0.9, threshold=0.5), snntorch.Leaky(beta=torch.rand(CLASSES), threshold=1.25))


@case("snntorch", ROW)
def leaky_to_zero() -> nn.Module:
    import snntorch

    both = {"reset_mechanism": "zero", "threshold": 0.75}
    return Looped(snntorch.Leaky(beta=0.5, **both), snntorch.Leaky(beta=0.75, reset_delay=False, **both))


@case("snntorch", ROW)
def step_with_states() -> nn.Module:
    return Stepping()


@case("snntorch", ROW)
def synaptic() -> nn.Module:
    import snntorch

    zero = snntorch.Synaptic(alpha=0.5, beta=0.75, reset_mechanism="zero")
    return Looped(snntorch.Synaptic(alpha=0.75, beta=0.5), zero)


@case("snntorch", ROW, exact=False, times=1.0)
def recurrent_leaky() -> nn.Module:
    import snntorch

    return Looped(
        snntorch.RLeaky(beta=0.9, linear_features=16, threshold=4.0),
        snntorch.RLeaky(beta=0.8, all_to_all=False, V=0.25, threshold=3.0),
    )


@case("snntorch", ROW, exact=False)
def recurrent_synaptic() -> nn.Module:
    import snntorch

    own = snntorch.RSynaptic(alpha=0.5, beta=0.8, all_to_all=False, V=torch.rand(CLASSES), reset_mechanism="zero")
    return Looped(snntorch.RSynaptic(alpha=0.6, beta=0.9, linear_features=16), own)


@case("snntorch", MAPS)
def convolutional() -> nn.Module:
    import snntorch

    hidden = {"beta": 0.75, "init_hidden": True}
    return sequential(
        nn.Conv2d(2, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        snntorch.Leaky(**hidden),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=2),
        snntorch.Leaky(**hidden),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(6 * 4, CLASSES),
        snntorch.Leaky(**hidden, output=True),
    )


class Tutorial(nn.Module):
    """snnTorch's convolutional network: the maximum of a convolution's currents, then neurons; maps leave a rest."""

    def __init__(self) -> None:
        super().__init__()
        import snntorch

        self.conv1, self.lif1 = nn.Conv2d(2, 6, 4, padding=1), snntorch.Leaky(beta=0.5)
        self.conv2, self.lif2 = nn.Conv2d(6, 4, 2), snntorch.Leaky(beta=0.75)
        self.fc1, self.lif3 = nn.Linear(4, CLASSES), snntorch.Leaky(beta=0.5)

    def forward(self, x: Tensor) -> Tensor:
        mem1, mem2, mem3 = self.lif1.reset_mem(), self.lif2.reset_mem(), self.lif3.reset_mem()
        spikes = []
        for step in range(x.shape[0]):
            spk1, mem1 = self.lif1(nn.functional.max_pool2d(self.conv1(x[step]), 2), mem1)
            spk2, mem2 = self.lif2(nn.functional.max_pool2d(self.conv2(spk1), 2), mem2)
            spk3, mem3 = self.lif3(self.fc1(spk2.flatten(1)), mem3)
            spikes.append(spk3)
        return torch.stack(spikes)


@case("snntorch", MAPS)
def maxima_of_currents() -> nn.Module:
    return Tutorial()


@case("snntorch", MAPS, exact=False)
def means_over_thirds() -> nn.Module:
    import snntorch

    hidden = {"beta": 0.75, "init_hidden": True}
    return sequential(
        nn.Conv2d(2, 6, 3),
        snntorch.Leaky(**hidden),
        nn.AvgPool2d((3, 2)),
        nn.Flatten(),
        nn.Linear(6 * 2 * 3, CLASSES),
        snntorch.Leaky(**hidden),
    )


@case("snntorch", LINE)
def along_a_line() -> nn.Module:
    import snntorch

    hidden = {"beta": 0.75, "init_hidden": True}
    return sequential(
        nn.Conv1d(3, 6, 3, padding=2, dilation=2),
        snntorch.Leaky(**hidden),
        nn.Flatten(),
        nn.Linear(6 * 16, CLASSES),
        snntorch.Leaky(**hidden),
    )


@case("snntorch", ROW)
def membranes_read_out() -> nn.Module:
    import snntorch

    class Read(Looped):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x)[1]

    return Read(snntorch.Leaky(beta=0.9), snntorch.Leaky(beta=0.8, reset_mechanism="none"))


@case("spikingjelly", ROW)
def integrate_and_fire() -> nn.Module:
    from spikingjelly.activation_based import neuron

    return sequential(
        nn.Linear(20, 16), neuron.IFNode(), nn.Linear(16, CLASSES), neuron.IFNode(v_threshold=1.5, v_reset=None)
    )


@case("spikingjelly", ROW, times=12.0)
def leaky_by_halves() -> nn.Module:
    from spikingjelly.activation_based import neuron

    return sequential(nn.Linear(20, 16), neuron.LIFNode(tau=2.0), nn.Linear(16, CLASSES), neuron.LIFNode(tau=4.0))


@case("spikingjelly", ROW, exact=False, times=5.0)
def leaky_to_a_value() -> nn.Module:
    from spikingjelly.activation_based import neuron

    first = neuron.LIFNode(tau=3.0, decay_input=False, v_reset=-0.25)
    return sequential(nn.Linear(20, 16), first, nn.Linear(16, CLASSES), neuron.ParametricLIFNode(init_tau=3.0))


@case("spikingjelly", MAPS, exact=False, times=5.0)
def many_steps() -> nn.Module:
    from spikingjelly.activation_based import functional, layer, neuron

    network = sequential(
        layer.Conv2d(2, 6, 3, padding=1, bias=False),
        layer.BatchNorm2d(6),
        neuron.ParametricLIFNode(init_tau=2.5),
        layer.AvgPool2d(2),
        layer.SeqToANNContainer(nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)),
        neuron.LIFNode(tau=2.0, v_reset=None),
        layer.MaxPool2d(2),
        layer.Flatten(),
        layer.Linear(24, CLASSES),
        neuron.IFNode(),
    )
    functional.set_step_mode(network, "m")
    return network


class Mean(nn.Module):
    """The mean rate over time, as SpikingJelly's examples have it."""

    def __init__(self) -> None:
        super().__init__()
        from spikingjelly.activation_based import neuron

        self.layers = nn.Sequential(nn.Linear(20, 16), neuron.LIFNode(), nn.Linear(16, CLASSES), neuron.LIFNode())

    def forward(self, x: Tensor) -> Tensor:
        rates = 0.0
        for step in x:
            rates = rates + self.layers(step)
        return rates / len(x)


@case("spikingjelly", ROW, times=8.0)
def rates() -> nn.Module:
    return Mean()


@case("norse", ROW, exact=False, times=8.0)
def box_cells() -> nn.Module:
    import norse.torch as norse

    faster = norse.LIFBoxParameters(tau_mem_inv=torch.tensor(250.0))
    return norse.SequentialState(
        nn.Linear(20, 16), norse.LIFBoxCell(p=faster), nn.Linear(16, CLASSES), norse.LIFBoxCell(p=faster)
    )


@case("norse", ROW, exact=False)
def cells_with_currents() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.25), v_reset=torch.tensor(-0.125), tau_mem_inv=torch.tensor(200.0))
    return norse.SequentialState(nn.Linear(20, 16), norse.LIFCell(p), nn.Linear(16, CLASSES), norse.LIFCell(p))


@case("norse", ROW, exact=False)
def integrator_read_out() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.5))
    return norse.SequentialState(nn.Linear(20, 16), norse.LIFCell(p), nn.Linear(16, CLASSES), norse.LICell())


@case("norse", ROW, exact=False)
def integrator_between_weights() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.5))
    return norse.SequentialState(
        nn.Linear(20, 16), norse.LIFCell(p), nn.Linear(16, 12), norse.LICell(), nn.Linear(12, CLASSES),
        norse.LIFCell(p),
    )  # fmt: skip


@case("norse", ROW, exact=False)
def recurrent_cells() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.5))
    return norse.SequentialState(norse.LIFRecurrentCell(20, 16, p), nn.Linear(16, CLASSES), norse.LICell())


@case("norse", MAPS, exact=False)
def layers_in_time() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFParameters(v_th=torch.tensor(0.5))
    return norse.SequentialState(
        norse.Lift(nn.Conv2d(2, 4, 3)), norse.LIF(p), nn.Flatten(2), nn.Linear(4 * 36, CLASSES), norse.LI()
    )


@case("norse", MAPS, exact=False)
def lifted() -> nn.Module:
    import norse.torch as norse

    p = norse.LIFBoxParameters(tau_mem_inv=torch.tensor(500.0), v_th=torch.tensor(0.5))
    inner = norse.SequentialState(
        nn.Conv2d(2, 6, 3, padding=1),
        norse.LIFBoxCell(p),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(96, CLASSES),
        norse.LIFBoxCell(p),
    )
    return norse.Lift(inner)
