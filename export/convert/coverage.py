"""What a proof has seen of each layer: spikes, silence, ties; and the inputs that are searched until it has seen them.

Random input may leave deep layers silent, and equal silence proves nothing. So input is searched: events of growing
density, then steps along the gradient of the membranes of layers that never fired. Input rarely reaches a tie, so
currents at and beside the threshold are put into the biases of a copy, of the source and of ours alike.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from axonnx.export.convert.plan import SYNAPSES, Plan
from axonnx.export.convert.source import Seen, Source
from axonnx.models import Network
from axonnx.models.described import INPUT
from axonnx.runtime.format.contract import InputContract

DENSITIES = (0.05, 0.2, 0.5, 0.9, 1.0)
ASCENTS = 8  # steps along a gradient
PROBE_STEPS = 12
SHARES = (0.5, 1.5, 3.0, -1.0)  # of the threshold: currents that are not beside it
LAYERS = "layers."  # what names of layers begin with in our network


@dataclass(frozen=True)
class Reached:
    """What one layer did in a proof.

    Attributes:
        layer: Its name.
        fired: Number of spikes.
        silent: How often a neuron did not fire in a step.
        ties: Membranes at their threshold, or at the float32 below it, on input.
        crafted_ties: The same, on currents that were put into biases.
    """

    layer: str
    fired: int
    silent: int
    ties: int
    crafted_ties: int

    @property
    def lacking(self) -> str:
        """What was searched for and not reached."""
        never = {"fired": self.fired, "stayed silent": self.silent}
        return " and ".join(f"never {what}" for what, number in never.items() if not number)

    def __str__(self) -> str:
        ties = f"{self.ties:,} ties on input, {self.crafted_ties:,} on crafted currents"
        text = f"{self.layer}: {self.fired:,} spikes, {self.silent:,} times silent, {ties}"
        return f"{text}: NOT PROVED, it {self.lacking}" if self.lacking else text


def reached(seen: Seen, ties: Mapping[str, int], crafted: Mapping[str, int]) -> tuple[Reached, ...]:
    """Return what each layer of the source did."""
    fired = {name: int(spikes.sum()) for name, spikes in seen.spikes.items()}
    return tuple(
        Reached(name, fired[name], spikes.numel() - fired[name], ties[name], crafted.get(name, 0))
        for name, spikes in seen.spikes.items()
    )


def count_ties(network: Network, gaps: Mapping[str, Tensor]) -> dict[str, int]:
    """Count the membranes that are their threshold, or the float32 below it: that of neurons that fire above θ only."""
    found = {}
    for name, gap in gaps.items():
        level = threshold_of(network, name)
        below = torch.nextafter(level, torch.tensor(-torch.inf)) - level
        found[name] = int(((gap == 0) | (gap == below)).sum())
    return found


def threshold_of(network: Network, name: str) -> Tensor:
    """Return the threshold of a layer."""
    level = network.get_submodule(LAYERS + name).threshold
    assert isinstance(level, Tensor)
    return level


def searched(source: Source, network: Network, x: Tensor, arriving: InputContract) -> Tensor:
    """Return ``x`` [T, B, …] with further samples for layers that never fire, or never stay silent, on it."""
    lacking = _lacking(source.observe(x))
    for candidate in _candidates(network, x, arriving, lacking):
        now = _lacking(source.observe(candidate))
        if lacking - now:
            x = torch.cat([x, candidate], 1)
            lacking &= now
    return x


def _lacking(seen: Seen) -> set[tuple[str, bool]]:
    """Return (layer, whether a spike is missing) for what no sample shows."""
    found = ((name, fires) for name in seen.spikes for fires in (True, False))
    return {(name, fires) for name, fires in found if not bool((seen.spikes[name].bool() == fires).any())}


def _candidates(
    network: Network, x: Tensor, arriving: InputContract, lacking: set[tuple[str, bool]]
) -> Iterator[Tensor]:
    """Yield inputs of two samples for as long as something is lacking."""
    random = torch.Generator().manual_seed(0)
    low, high = -arriving.centre * arriving.unit, arriving.x_max
    shape = (1 if arriving.repeated else len(x), 2, *x.shape[2:])

    def timed(chosen: Tensor) -> Tensor:
        return torch.where(chosen, high, low).expand(len(x), *chosen.shape[1:]).contiguous()

    for density in (0.0, *DENSITIES):
        if lacking:
            yield timed(torch.rand(shape, generator=random) < density)
    last = timed(torch.rand(shape, generator=random) < 0.5)
    for _ in range(ASCENTS):
        if not lacking:
            return
        slope = _slope(network, last, lacking)
        last = timed(slope.sum(0, keepdim=True) > 0 if arriving.repeated else slope > 0)
        yield last


def _slope(network: Network, x: Tensor, lacking: set[tuple[str, bool]]) -> Tensor:
    """Return the direction of the input that raises membranes which must fire and lowers those which must not."""
    x = x.clone().requires_grad_()
    seen = network(x).observations
    goal = sum((1.0 if fires else -1.0) * seen[LAYERS + name].gap.mean() for name, fires in lacking)
    assert isinstance(goal, Tensor)
    (slope,) = torch.autograd.grad(goal, x, allow_unused=True)
    return torch.zeros_like(x) if slope is None else slope


@dataclass(frozen=True)
class Crafted:
    """A copy of the source and one of ours without weights, whose biases are currents at and beside the threshold.

    ``exact`` names the layers whose first step has no rounding, so that even a tie must be equal.
    """

    source: Source
    network: Network
    exact: tuple[str, ...]

    @property
    def x(self) -> Tensor:
        """Input that does nothing."""
        return torch.zeros(self.source.repeats or PROBE_STEPS, 1, *self.source.plan.shapes[INPUT])


@torch.no_grad()
def crafted(source: Source, network: Network) -> Iterator[Crafted]:
    """Yield as many copies as are needed for each layer to hear every current."""
    plan = source.plan
    fed = {layer.name: _synapse_before(plan, layer.name) for layer in plan.layers if layer.kind == "neurons"}
    before = {name: synapse for name, synapse in fed.items() if synapse is not None and name not in plan.made}
    least = min((int(plan.layer(synapse).options["outputs"]) for synapse in before.values()), default=0)
    for first in range(0, 4 + len(SHARES), max(least, 1)) if before else ():
        ours, weights = copy.deepcopy(network), _without_weights(plan)
        for name, synapse in before.items():
            bias = weights[f"{synapse}.bias"]
            bias.copy_(_currents(threshold_of(network, name).expand(plan.shapes[name]), len(bias), first))
        held = ours.state_dict()
        for layer in plan.layers:
            if layer.kind in SYNAPSES:
                held[f"{LAYERS}{layer.name}.posterior.raw_mean"].zero_()
                held[f"{LAYERS}{layer.name}.norm.bias"].copy_(weights[f"{layer.name}.bias"])
        exact = tuple(name for name, synapse in before.items() if name in plan.exact and synapse not in plan.gains)
        yield Crafted(source.with_weights(weights), ours, exact)


def _without_weights(plan: Plan) -> dict[str, Tensor]:
    """Return zeros for the weights and biases of all synapses, and recurrent weights as they are."""
    found = {}
    for layer in plan.layers:
        key = f"{LAYERS}{layer.name}."
        if layer.kind in SYNAPSES:
            found[f"{layer.name}.weight"] = torch.zeros_like(plan.tensors[f"{key}posterior.raw_mean"])
            found[f"{layer.name}.bias"] = torch.zeros_like(plan.tensors[f"{key}norm.bias"])
        elif layer.options.get("recurrent"):
            found[f"{layer.name}.recurrent_weight"] = plan.tensors[f"{key}recurrent.posterior.raw_mean"].clone()
    return found


def _synapse_before(plan: Plan, name: str) -> str | None:
    """Return the synapse whose current a layer of neurons hears, if there is one."""
    for heard in plan.layer(name).of:
        if heard == INPUT or plan.layer(heard).kind == "neurons":
            continue
        found = heard if plan.layer(heard).kind in SYNAPSES else _synapse_before(plan, heard)
        if found is not None:
            return found
    return None


def _currents(threshold: Tensor, outputs: int, first: int) -> Tensor:
    """Return a current for each output: the threshold, its neighbours, the one below these, and shares of it."""
    flat = threshold.flatten()
    level = flat.reshape(outputs, -1)[:, 0] if flat.numel() % outputs == 0 else flat[:1].expand(outputs)
    down, up = torch.tensor(-torch.inf), torch.tensor(torch.inf)
    below = torch.nextafter(level, down)
    beside = [level, below, torch.nextafter(below, down), torch.nextafter(level, up)]
    table = torch.stack([*beside, *(level * share for share in SHARES)])
    numbers = torch.arange(outputs)
    return table[(numbers + first) % len(table), numbers]
