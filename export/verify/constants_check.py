"""Every constant of a file against the formula of the training network, and by how much it may deviate.

The constants that a file must hold, from the training network by the formulas of the design.

    weight      a ⊙ m            bias      b                 a, b: scale and bias, or what batch norm amounts to
    gain        a² σ²            spread    a² σ² for each weight
    step_scale  a at each step   step_bias b at each step    step_gain a² at each step, and then gain and spread without

in double precision, each with the error that a file may have: half a step of its grid where it has one, and the
rounding of the few float32 operations that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor, nn

from axonnx.models import GaussianPosterior, LeakyReadout, LinearReadout, Network
from axonnx.models.neurons import Neurons
from axonnx.models.normalisation import BatchNorm, ChannelScale
from axonnx.models.synapses import Synapse
from axonnx.runtime.format.opset import OPS

UNIT = 2.0**-24  # largest relative error of one float32 operation
FEW = 8  # operations behind a constant at the most: a root, its inverse, products, an exponential


@dataclass(frozen=True)
class Expected:
    """A constant's value, what its rounding is relative to, and the weight whose grid it is on, if any."""

    value: Tensor
    size: Tensor
    grid_of: str | None = None

    def tolerance(self, grids: Mapping[str, int]) -> Tensor:
        """Return the largest error that is no fault."""
        half = 0.0 if self.grid_of is None else 2.0 ** -(grids[self.grid_of] + 1)
        return half + FEW * UNIT * self.size


class Folded(NamedTuple):
    """a, b and the size of the terms that b is a difference of; [channels], or [steps, channels]."""

    scale: Tensor
    bias: Tensor | None
    bias_size: Tensor


def fold(synapse: Synapse) -> Folded:
    """Return a = γ/√(v + ε) and b = β − μ a of batch norm, or a and b of a scale."""
    norm = synapse.norm
    if norm is None:
        one = torch.ones(len(synapse.posterior.raw_mean), dtype=torch.float64)
        return Folded(one, None, torch.zeros_like(one))
    if not isinstance(norm, BatchNorm):
        return Folded(norm.scale, norm.bias, norm.bias.abs())
    scale = norm.scale / torch.sqrt(norm.running_variance + norm.epsilon)
    shift = norm.running_mean * scale
    return Folded(scale, norm.bias - shift, norm.bias.abs() + shift.abs())


def through_time(synapse: Synapse) -> bool:
    """Whether scale and bias differ from step to step, so that they stay apart from the weights."""
    return synapse.norm is not None and synapse.norm.steps is not None


def over_rows(vector: Tensor, like: Tensor) -> Tensor:
    """[out] to broadcast over [out, …]."""
    return vector.reshape(-1, *(1,) * (like.dim() - 1))


@torch.no_grad()
def expected_constants(network: Network, prefix: str, stochastic: bool) -> dict[str, Expected]:
    """Every constant that training made, by its name in the file."""
    found: dict[str, Expected] = {}
    for name, module in network.named_modules():
        where = f"{prefix}{name}."
        if isinstance(module, Synapse):
            found |= _of_synapse(module, where, stochastic)
        elif isinstance(module, Neurons):
            found |= _of_neurons(module, where, stochastic)
        elif isinstance(module, LeakyReadout | LinearReadout):
            found |= _of_readout(module, where)
    return found


def _of_synapse(synapse: Synapse, where: str, stochastic: bool) -> dict[str, Expected]:
    mean, (scale, bias, size), weight = synapse.posterior.mean, fold(synapse), where + "weight"
    if through_time(synapse):
        assert bias is not None
        steps = {where + "step_scale": _plain(scale), where + "step_bias": Expected(bias, size)}
        if stochastic and synapse.posterior.log_std is not None:
            steps |= {where + "step_gain": _plain(scale * scale)}
            steps |= _variances(synapse.posterior, where, "", torch.ones_like(scale[0]))
        return {weight: _plain(mean, weight), **steps}
    found = {weight: _plain(mean * over_rows(scale, mean), weight)}
    if bias is not None:
        found[where + "bias"] = Expected(bias, size, weight)
    return found | (_variances(synapse.posterior, where, "", scale) if stochastic else {})


def _of_neurons(neuron: Neurons, where: str, stochastic: bool) -> dict[str, Expected]:
    """Return the constants of its operators; those that the layer holds as they are must be the file's own."""
    found, constants, held = {}, neuron.constants(), dict(neuron.named_buffers(recurse=False, remove_duplicate=False))
    for name in (name for op in neuron.operators(stochastic) for name in OPS[op].parameters):
        exact = Expected(constants[name].float().double(), torch.zeros_like(constants[name]))
        found[where + name] = exact if name in held else _plain(constants[name])
    if neuron.recurrent is not None:
        posterior, weight = neuron.recurrent.posterior, where + "recurrent_weight"
        found[weight] = _plain(posterior.mean, weight)
        if stochastic:
            found |= _variances(posterior, where, "recurrent_", torch.ones(()))
    return found


def _of_readout(readout: LeakyReadout | LinearReadout, where: str) -> dict[str, Expected]:
    weight = where + "weight"
    found = {weight: _plain(readout.weight, weight), where + "bias": _plain(readout.bias, weight)}
    if isinstance(readout, LeakyReadout):
        found[where + "decay"] = _plain(readout.decay)
    return found


def _variances(posterior: GaussianPosterior, where: str, kind: str, scale: Tensor) -> dict[str, Expected]:
    """a² σ²: a number for each channel where all weights of a neuron share σ, for each weight elsewhere."""
    if posterior.log_std is None:
        return {}
    variance = torch.exp(posterior.log_std) ** 2
    if posterior.granularity == "weight":
        squares = variance * over_rows(scale, posterior.raw_mean) ** 2
        name = f"{where}{kind}spread"
        return {name: _plain(squares if posterior.mask is None else squares * posterior.mask, name)}
    gain = variance.flatten() * scale**2
    return {f"{where}{kind}gain": _plain(gain.reshape(-1, *(1,) * (posterior.raw_mean.dim() - 2)))}


def _plain(value: Tensor, grid_of: str | None = None) -> Expected:
    value = value.detach().double()
    return Expected(value, value.abs(), grid_of)


Doubles = NDArray[np.float64]
MOST_FAULTS = 8  # that are told one by one


@dataclass
class Deviation:
    """What was compared, by how much of its bound it deviates at the most, and what is beyond it."""

    constants: int = 0
    membranes: int = 0
    spikes: int = 0
    spikes_differing: int = 0  # all of them within the bound of their threshold
    logits: int = 0
    largest: float = 0.0  # |deviation| / bound, of membranes and logits
    faults: list[str] = field(default_factory=list)

    def fault(self, line: str) -> None:
        """Note what is beyond its bound."""
        self.faults.append(line)

    def judge(self, what: str, found: NDArray[Any], expected: Doubles, allowed: Doubles, at: Place) -> None:
        """Every number within its bound, or a fault that names the first beyond it."""
        deviation, allowed = np.abs(found.astype(np.float64) - expected), np.broadcast_to(allowed, expected.shape)
        bad = ~(deviation <= allowed)  # a NaN is beyond every bound
        if at.counts:
            share = np.divide(deviation, allowed, out=np.zeros_like(deviation), where=allowed > 0)
            self.largest = max(self.largest, float(share[~bad].max(initial=0.0)))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            self.fault(
                f"{what}{at.of(index)} is {float(found[index]):.7g}, the training network gives "
                f"{float(expected[index]):.7g}; rounding allows {float(allowed[index]):.2g} "
                f"({int(bad.sum()):,} of {bad.size:,} beyond it)"
            )

    def lines(self) -> list[str]:
        """Return what is beyond its bound; if nothing is, what was compared and how near to its bound it came."""
        if self.faults:
            shown = self.faults[:MOST_FAULTS]
            more = len(self.faults) - len(shown)
            return [*shown, *([f"… and {more} more"] if more else [])]
        return [
            f"{self.constants:,} constants are within half a step of their grid from the training network's",
            f"{self.membranes:,} membranes and {self.logits:,} logits: the largest deviation is {self.largest:.2f} of "
            f"what rounding to the grid allows",
            f"{self.spikes_differing:,} of {self.spikes:,} spikes differ, each with its membrane that close to its "
            f"threshold",
        ]


@dataclass(frozen=True)
class Place:
    """What the axes of an array stand for: [(T,) B, …] from sample ``offset`` on, or none of that (``counts`` off)."""

    time: int = 0
    offset: int = 0
    counts: bool = True

    def of(self, index: tuple[int, ...]) -> str:
        """Time step, neuron and sample of an index."""
        if not self.counts:
            return str(list(index))
        step = f", time step {index[0]}" if self.time else ""
        return f"{step}, neuron {list(index[self.time + 1 :])}, sample {self.offset + index[self.time]}"


AS_IT_IS = Place(counts=False)


def check_constants(
    proto: onnx.ModelProto,
    expected: Mapping[str, Expected],
    buffers: Mapping[str, Tensor],
    grids: Mapping[str, int],
    found: Deviation,
) -> None:
    """All of ``expected`` are there, and nothing else is but ``buffers`` of the user's own and the graph's numbers."""
    held = constants_of(proto)
    for name, entry in expected.items():
        if name in held:
            _constant(name, entry, held[name], grids, found)
        elif bool(entry.value.any()):
            found.fault(f"constant {name!r} is missing from the file")
    for name in sorted(held.keys() - expected.keys()):
        _other(name, held[name], buffers.get(name), found)


def constants_of(proto: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """Every constant of a file's graphs by name; weights kept as integers as the numbers they stand for."""
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    found = {tensor.name: numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}
    for name in [name for name in found if name.endswith(("/int8", "/int16"))]:
        weight = name.rpartition("/")[0]
        found[weight] = found.pop(name).astype(np.float64) * found.pop(f"{weight}/step")
    return found


def _constant(name: str, entry: Expected, held: NDArray[Any], grids: Mapping[str, int], found: Deviation) -> None:
    value = entry.value.numpy()
    found.constants += held.size
    if value.shape != held.shape:
        found.fault(f"constant {name!r} is {list(held.shape)}; the training network gives {list(value.shape)}")
    elif entry.grid_of is not None and entry.grid_of not in grids:
        found.fault(f"constant {name!r} has no certificate of its grid")
    else:
        found.judge(f"constant {name!r}", held, value, entry.tolerance(grids).numpy(), AS_IT_IS)


def _written_in_the_graph(name: str, held: NDArray[Any]) -> bool:
    """Whether this is a number of the graph itself: without a layer's name, or called by its value, as number/0.25."""
    return held.size == 1 and ("." not in name or name == f"number/{held.item()!r}")


def _other(name: str, held: NDArray[Any], own: Tensor | None, found: Deviation) -> None:
    """Check what training did not make: a user's own buffer, ones that sum up, or numbers of the graph itself."""
    if own is not None:
        if not np.array_equal(own.float().numpy(), held):
            found.fault(f"constant {name!r} is not the buffer of that name in the training network")
    elif name.endswith(".ones"):
        if not np.isin(held, (0.0, 1.0)).all():
            found.fault(f"constant {name!r} holds other numbers than zeros and ones")
    elif np.issubdtype(held.dtype, np.floating) and not _written_in_the_graph(name, held):
        found.fault(f"constant {name!r} is in the file; the training network has no such number")


def round_weights(network: Network, grids: Mapping[str, int]) -> None:
    """w ← round(w · 2^s) · 2^−s of every weight and bias, scale and bias folded in."""

    def rounded(value: Tensor, weight: str) -> Tensor:
        return torch.round(value * 2.0 ** grids[weight]) * 2.0 ** -grids[weight]

    for name, module in network.named_modules():
        if isinstance(module, Synapse):
            _round_synapse(module, f"{name}.weight", rounded)
        elif isinstance(module, Neurons) and module.recurrent is not None:
            mean = module.recurrent.posterior.raw_mean
            mean.copy_(rounded(mean, f"{name}.recurrent_weight"))
        elif isinstance(module, LeakyReadout | LinearReadout):
            module.weight.copy_(rounded(module.weight, f"{name}.weight"))
            module.bias.copy_(rounded(module.bias, f"{name}.weight"))


def _round_synapse(synapse: Synapse, weight: str, rounded: Callable[[Tensor, str], Tensor]) -> None:
    mean = synapse.posterior.raw_mean
    if through_time(synapse):
        mean.copy_(rounded(mean, weight))
        return
    scale, bias, _ = fold(synapse)
    mean.copy_(rounded(mean * over_rows(scale, mean), weight))
    if bias is not None:
        plain = ChannelScale(len(mean)).double().requires_grad_(False)
        plain.bias.copy_(rounded(bias, weight))
        synapse.norm = plain
    if synapse.posterior.log_std is not None:
        log_std = synapse.posterior.log_std.expand_as(mean) + torch.log(over_rows(scale, mean).abs())
        synapse.posterior.granularity = "weight"
        synapse.posterior.log_std = nn.Parameter(log_std, requires_grad=False)
