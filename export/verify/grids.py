"""How fine each grid of a file must be, found from the training network alone.

A grid of 2^−s keeps sums exact where (Σ_j |w_ij| x_max + |b_i|) · 2^(s + bits) < 2²⁴. Rounding can add half a step for
each weight, so every s with

    (Σ_j |w_ij| x_max + |b_i|) · 2^(s + bits) + ½ (n x_max + 1) · 2^bits < 2²⁴

is exact for certain; a file whose grid is coarser than the finest such s threw bits away. x_max and bits are found by
probing: all neurons firing at once with the largest input, and random spikes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from axonnx.export.verify.constants_check import Expected, through_time
from axonnx.models import MEAN_FIELD, Forced, LeakyReadout, LinearReadout, Network, SpikingNetwork
from axonnx.models.delays import DelayLine
from axonnx.models.network import Output
from axonnx.models.neurons import Neurons
from axonnx.models.synapses import Synapse
from axonnx.runtime.format.contract import InputContract

# The collapse has both numbers too, in runtime/format/values.py and export/graph/grid.py. They stand here again, and
# so do the formulas below, on purpose: what verifies shares nothing with what it verifies.
UNITS = 2.0**24
FINEST = 30
INTEGERS = {"float32": math.inf, "int16": 2.0**15 - 1, "int8": 2.0**7 - 1}
PROBES = 8
STEPS = 2  # a layer may hear what another did one step before


@dataclass
class Reached:
    """The largest |x| that reaches a synapse, and the bits behind its point."""

    largest: float = 0.0
    bits: int = 0

    def see(self, x: Tensor) -> None:
        """Count these values in."""
        self.largest = max(self.largest, float(x.abs().max()))
        while self.bits < 24 and not torch.equal(scaled := x * 2.0**self.bits, scaled.round()):
            self.bits += 1


@dataclass
class Probe:
    """What reached every synapse of a network, and which synapse a recurrent layer hears directly."""

    reached: dict[str, Reached] = field(default_factory=dict)
    feeds: dict[str, str] = field(default_factory=dict)  # layer of neurons -> its synapse


@torch.no_grad()
def probe(network: Network, arriving: InputContract, output: Output) -> Probe:
    """Run ``network`` on its largest and on random input with forced spikes, of the shapes seen in ``output``."""
    found, made = Probe(), {}  # type: ignore[var-annotated]
    handles = [handle for name, module in network.named_modules() for handle in _watch(name, module, found, made)]
    time = 1 if isinstance(network, SpikingNetwork) else 0
    delays = sum(module.longest for module in network.modules() if isinstance(module, DelayLine))
    shape = (*(STEPS + delays,) * time, PROBES, *arriving.shape)
    random = torch.Generator().manual_seed(0)
    largest = torch.full(shape, float(arriving.largest)).double()
    anything = torch.randint(-arriving.largest, arriving.largest + 1, shape, generator=random).double()
    for x, fires in ((largest, 1.0), (-largest, 1.0), (anything, 0.5)):
        spikes = {
            name: (torch.rand((*shape[: time + 1], *seen.spikes.shape[time + 1 :]), generator=random) < fires).double()
            for name, seen in output.observations.items()
        }
        network(x * 2.0**-arriving.shift, Forced(spikes, MEAN_FIELD))
    for handle in handles:
        handle.remove()
    return found


def coarsest(expected: Mapping[str, Expected], seen: Probe, stored: str, weight: str, prefix: str = "") -> int:
    """Return the coarsest s that a file may have for ``weight``."""
    group = _added_together(weight, seen, prefix, expected)
    parts = [(expected[name], _reached(name, seen, prefix)) for name in group]
    bits = max(reached.bits for _, reached in parts)
    total = torch.stack([_largest_sums(name, expected, _reached(name, seen, prefix)).max() for name in group]).sum()
    inputs = sum(entry.value[0].numel() * reached.largest + 1 for entry, reached in parts)
    room = UNITS - 0.5 * inputs * 2.0**bits
    s = FINEST if not float(total) else _floor_log2(room / (float(total) * 2.0**bits))
    if stored != "float32" and weight.endswith("weight"):
        most = max(float(entry.value.abs().max()) for entry, _ in parts)
        s = min(s, _floor_log2((INTEGERS[stored] - 0.5) / most) if most else FINEST)
    return min(s, FINEST)


def _floor_log2(value: float) -> int:
    """Return the largest s with 2^s < value."""
    return math.ceil(math.log2(value)) - 1 if value > 0 else -math.inf  # type: ignore[return-value]


def _largest_sums(weight: str, expected: Mapping[str, Expected], reached: Reached) -> Tensor:
    sums = expected[weight].value.abs().flatten(1).sum(1) * reached.largest
    bias = expected.get(weight.removesuffix("weight") + "bias")
    return sums + bias.value.abs() if bias is not None and bias.grid_of == weight else sums


def _reached(weight: str, seen: Probe, prefix: str) -> Reached:
    """Spikes reach recurrent weights; squares of what reaches the weights reach their variances."""
    layer, _, kind = weight.removeprefix(prefix).rpartition(".")
    if kind.startswith("recurrent"):
        return Reached(1.0, 0)
    found = seen.reached[layer]
    return Reached(found.largest**2, 2 * found.bits) if kind == "spread" else found


def _added_together(weight: str, seen: Probe, prefix: str, expected: Mapping[str, Expected]) -> list[str]:
    """Return the weights that share an accumulator and a grid: a recurrent sum and that of the synapse before it."""
    kind = weight.rpartition(".")[2]
    if kind not in ("weight", "recurrent_weight", "spread", "recurrent_spread"):
        return [weight]
    end = "spread" if kind.endswith("spread") else "weight"
    for neuron, synapse in seen.feeds.items():
        both = [f"{prefix}{synapse}.{end}", f"{prefix}{neuron}.recurrent_{end}"]
        if weight in both:
            return [name for name in both if name in expected]
    return [weight]


def _watch(name: str, module: nn.Module, found: Probe, made: dict[int, str]) -> list[torch.utils.hooks.RemovableHandle]:
    def arrives(_module: nn.Module, given: tuple[Tensor, object]) -> None:
        found.reached.setdefault(name, Reached()).see(given[0])

    def leaves(_module: nn.Module, _given: object, current: object) -> None:
        made[id(current)] = name

    def feeds(_module: nn.Module, given: tuple[object, object]) -> None:
        if id(given[0]) in made:
            found.feeds[name] = made[id(given[0])]

    if isinstance(module, Synapse):
        watched = [module.register_forward_pre_hook(arrives)]
        return watched if through_time(module) else [*watched, module.register_forward_hook(leaves)]
    if isinstance(module, LeakyReadout | LinearReadout):
        return [module.register_forward_pre_hook(arrives)]
    if isinstance(module, Neurons) and module.recurrent is not None:
        return [module.register_forward_pre_hook(feeds)]
    return []
