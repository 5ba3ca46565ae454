"""A network in integers against the training network: constants, and a network of whole numbers made of the training's.

What a file may choose are the unit of each layer, the lift of each weight tensor and the scale of a leak. Everything
else follows from the training network: a weight is round(w / (unit · 2^lift)) · 2^lift within its width, a bias, a
threshold and a reset are round(b / unit), a leak is round((1 − β) 2ˢ). Here that is done again, plainly, and the layers
of the training network run with these numbers and the formulas of ``formulas``, in double precision, where all of it is
exact. Bits must be equal.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as nnf
from numpy.typing import NDArray
from torch import Tensor, nn

from axonnx.export.verify.collapse_check import references
from axonnx.export.verify.constants_check import FEW, UNIT, constants_of, fold, over_rows, round_weights
from axonnx.export.verify.formulas import FORMULAS
from axonnx.export.verify.structure import Findings, Subject
from axonnx.models import LeakyReadout, LinearReadout, Network
from axonnx.models.maths.current import Current
from axonnx.models.neurons import BinaryNeuron, Neurons
from axonnx.models.normalisation import ChannelScale
from axonnx.models.run import Observation, Run
from axonnx.models.synapses import Synapse
from axonnx.runtime.format.contract import SynapseContract
from axonnx.runtime.program.instructions import Conv, Linear, Program
from axonnx.runtime.program.instructions import Neurons as NeuronsInstruction

MOST = {"int8": 127, "int4": 7, "int2": 1}  # again, as the numbers of ``grids``
LEAK = ("lost", "scale", "round_above", "round_below", "least")
EXACT = 1e-9  # of a unit: two ways to the same double may differ in its last bits
BETTER = 0.9  # a step whose squared error is that much smaller should have been found


class Placed(NamedTuple):
    """The unit of a layer, and the certificate of a weight tensor that it hears."""

    unit: float
    stated: SynapseContract


def units_of(subject: Subject) -> dict[str, Placed]:
    """For each weight tensor that feeds neurons: the unit of those, by following the graph."""
    layers = {layer.name: layer.unit for layer in subject.contract.layers}
    stated = {synapse.weight: synapse for synapse in subject.contract.synapses}
    found = {}
    for node in subject.program.instructions:
        if isinstance(node, NeuronsInstruction) and (unit := layers.get(node.layer)) is not None:
            for weight in _heard(subject.program, node.operands["current"]):
                found[weight] = Placed(unit, stated[weight])
    return found


def _heard(program: Program, current: str) -> Iterator[str]:
    makers = [node for node in program.instructions if current in node.writes]
    for node in makers:
        if isinstance(node, Linear | Conv):
            yield node.weight
        else:
            sources = [node.operands["current"]] if isinstance(node, NeuronsInstruction) else node.reads
            for source in sources:
                yield from _heard(program, source)


@torch.no_grad()
def integer_members(subject: Subject, found: Findings | None = None) -> dict[str, Network]:
    """Return the training network of each member in whole numbers; ``found`` notes where the file differs."""
    trained, how = subject.trained, subject.contract.collapse
    held, placed = constants_of(subject.file.proto), units_of(subject)
    grids = {stated.weight: stated.grid for stated in subject.contract.synapses if stated.weight not in placed}
    units = {layer.name: layer.unit for layer in subject.contract.layers if layer.unit is not None}
    made = {}
    for prefix, member in references(trained.network, how, subject.thresholds).items():
        network = copy.deepcopy(member)
        writer = _Writer(network, prefix, held, placed, units, found or Findings())
        for name, module in list(network.named_modules()):
            writer.write(name, module)
        mine = {name.removeprefix(prefix): grid for name, grid in grids.items() if name.startswith(prefix)}
        round_last(network, mine)
        made[prefix] = network.float()  # whole numbers of this size are exact in the float32 of training
    return made


def round_last(network: Network, grids: Mapping[str, int]) -> None:
    """Put the weights of a last layer without neurons on a grid, as in every file."""
    for name, module in network.named_modules():
        if isinstance(module, LinearReadout) and f"{name}.weight" in grids:
            holder = nn.ModuleDict({"one": module})
            round_weights(holder, {"one.weight": grids[f"{name}.weight"]})  # type: ignore[arg-type]


class _Writer:
    """Writes whole numbers into a copy of the training network, and judges the file's beside them."""

    def __init__(
        self,
        network: Network,
        prefix: str,
        held: Mapping[str, NDArray[Any]],
        placed: Mapping[str, Placed],
        units: Mapping[str, float],
        found: Findings,
    ) -> None:
        self.network, self.prefix, self.held, self.placed = network, prefix, held, placed
        self.units, self.found = units, found

    def write(self, name: str, module: nn.Module) -> None:
        """One layer."""
        if isinstance(module, Synapse):
            self._synapse(name, module)
        elif isinstance(module, BinaryNeuron):
            threshold = torch.ceil(module.threshold / self.units[self.prefix + name] - EXACT)
            module.threshold = self._judged(name, "threshold", threshold)
        elif isinstance(module, Neurons):
            _replace(self.network, name, self._neurons(name, module))
        elif isinstance(module, LeakyReadout):
            _replace(self.network, name, self._readout(name, module))

    def _weight(self, name: str, value: Tensor) -> Tensor:
        """round(w / step) within the width, times 2^lift."""
        unit, stated = self.placed[self.prefix + name]
        lift, most = stated.lift or 0, MOST[stated.stored_as]
        step = unit * 2.0**lift
        levels = torch.clamp(torch.round(value / step), -most, most)
        error = float((levels * step - value).square().sum())
        for other in (0.5 * step, 2.0 * step, *(() if _power(step) else (0.8 * step, 1.25 * step))):
            tried = torch.clamp(torch.round(value / other), -most, most) * other
            if float((tried - value).square().sum()) < BETTER * error and "recurrent" not in name:
                self.found.fail(
                    f"{self.prefix}{name}: rounded to multiples of {step:.4g}; multiples of {other:.4g} are nearer to "
                    f"the training network's weights"
                )
        return self._judged(*_owner(name), levels * 2.0**lift, value / step, 2.0**lift)

    def _offset(self, name: str, weight: str, value: Tensor) -> Tensor:
        unit, stated = self.placed[self.prefix + weight]
        fraction = 2.0**stated.input_bits
        exact = value / (unit * fraction)
        return self._judged(*_owner(name), torch.round(exact) * fraction, exact, fraction)

    def _judged(
        self, layer: str, key: str, expected: Tensor, exact: Tensor | None = None, spacing: float = 1.0
    ) -> Tensor:
        """Return the file's numbers if they are the expected ones; float32 may tip a tie between two levels."""
        name = f"{self.prefix}{layer}.{key}"
        if name not in self.held:
            if bool(expected.any()):
                self.found.fail(f"constant {name!r} is missing from the file")
            return expected
        held = torch.from_numpy(np.array(self.held[name])).double()
        if held.shape != expected.shape:
            self.found.fail(f"constant {name!r} is {list(held.shape)}; expected {list(expected.shape)}")
            return expected
        wrong = held != expected
        if exact is not None:
            tie = (exact - exact.floor() - 0.5).abs() <= EXACT + 4 * FEW * UNIT * exact.abs()
            wrong &= ~(tie & ((held - expected).abs() <= spacing))
        if bool(wrong.any()):
            index = tuple(int(i) for i in wrong.nonzero()[0]) if wrong.dim() else ()
            self.found.fail(
                f"constant {name!r}{list(index)} is {float(held[index]):g}; the training network gives "
                f"{float(expected[index]):g} ({int(wrong.sum())} of {wrong.numel()} differ)"
            )
        return held

    def _synapse(self, name: str, synapse: Synapse) -> None:
        mean, (scale, bias, _) = synapse.posterior.raw_mean, fold(synapse)
        weight = f"{name}.weight"
        mean.copy_(self._weight(weight, synapse.posterior.mean * over_rows(scale, mean)))
        synapse.posterior.mask = None
        if bias is not None:
            plain = ChannelScale(len(mean)).double().requires_grad_(False)
            plain.bias.copy_(self._offset(f"{name}.bias", weight, bias))
            synapse.norm = plain

    def _leak(self, layer: str, decay: Tensor, of: str = "") -> dict[str, Tensor]:
        """Return the leak of the stated scale, rounded to the nearest as membranes are."""
        held = {key: self.held.get(f"{self.prefix}{layer}.{of}{key}") for key in LEAK}
        if held["scale"] is None:
            self.found.fail(f"layer {self.prefix}{layer}: constant '{of}scale' is missing from the file")
            return {of + key: torch.ones_like(decay) for key in LEAK}
        scale = torch.from_numpy(np.array(held["scale"])).double()
        exact = (1.0 - decay.float().double()) * scale
        half = torch.where(scale > 1, scale / 2, torch.zeros_like(scale))
        lost = torch.clamp(torch.round(exact), min=1.0).minimum(scale)
        expected = {"lost": lost, "scale": scale, "round_above": half, "round_below": half, "least": 0 * scale}
        if float(scale.min()) < 2**11 and not _power(float((1.0 - decay.float()).min())):
            self.found.fail(f"layer {self.prefix}{layer}: a leak in parts of {float(scale.min()):g} is coarse")
        return {of + key: self._judged(layer, of + key, value) for key, value in expected.items()}

    def _neurons(self, name: str, module: Neurons) -> nn.Module:
        unit, own = self.units[self.prefix + name], module.constants()
        threshold = self._judged(name, "threshold", torch.round(own["threshold"] / unit))
        resets = {key: torch.zeros_like(threshold) for key in ("zeroed", "taken", "late_zeroed", "late_taken")}
        *before, kind = module.operators(stochastic=False)
        if kind == "LIF":
            resets["late_taken"] = threshold
        elif kind == "LIFToZero":
            resets["zeroed"] = torch.ones_like(threshold)
        else:
            for key in resets:
                resets[key] = own[key] if key.endswith("zeroed") else torch.round(own[key] / unit)
        constants = {key: self._judged(name, key, value) for key, value in resets.items()}
        constants |= {"threshold": threshold, **self._leak(name, own["decay"])}
        if before:
            constants |= self._leak(name, own["synaptic_decay"], "synaptic_")
        weight = None
        if module.recurrent is not None:
            weight = self._weight(f"{name}.recurrent_weight", module.recurrent.posterior.mean)
        return PlainNeurons(bool(before), constants, weight)

    def _readout(self, name: str, module: LeakyReadout) -> nn.Module:
        weight = f"{name}.weight"
        unit = self.placed[self.prefix + weight].unit
        whole = self._weight(weight, module.weight)
        bias = self._offset(f"{name}.bias", weight, module.bias)
        constants = self._leak(name, module.decay)
        constants["unit"] = self._judged(name, "unit", torch.tensor(unit, dtype=torch.float64))
        if not _power(unit):
            self.found.fail(f"layer {self.prefix}{name}: its unit {unit:g} is no power of two")
        return PlainReadout(whole, bias, constants)


class PlainNeurons(nn.Module):
    """A layer of whole numbers that follows the formulas, one time step after the other from rest."""

    def __init__(self, filtered: bool, constants: Mapping[str, Tensor], recurrent: Tensor | None) -> None:
        super().__init__()
        self.filtered, self.constants, self.recurrent = filtered, constants, recurrent
        self.threshold = constants["threshold"]

    def forward(self, current: Current, run: Run) -> Tensor:
        """Spikes of all time steps."""
        currents = current.mean.double()
        state = {key: torch.zeros_like(currents[0]) for key in ("membrane", "spikes", "synaptic")}
        gaps, spikes = [], []
        for arriving in currents:
            if self.recurrent is not None:
                arriving = arriving + nnf.linear(state["spikes"], self.recurrent)
            if self.filtered:
                (state["synaptic"],) = self._formula("IntegerCurrent", state, arriving)
                arriving = state["synaptic"]
            state["membrane"], state["spikes"] = self._formula("IntegerLIF", state, arriving)
            gaps.append(state["membrane"] - self.threshold)
            spikes.append(state["spikes"])
        run.observe(self, Observation(torch.stack(gaps).float(), None, torch.stack(spikes).float()))
        return run.observations[run.name(self)].spikes

    def _formula(self, op: str, state: Mapping[str, Tensor], arriving: Tensor) -> Iterator[Tensor]:
        values = SimpleNamespace(current=arriving, **state, **self.constants)
        return (part.double() for part in FORMULAS[op](values))


class PlainReadout(nn.Module):
    """A read-out of whole numbers that follows the formulas; its mean over time is one division in float32."""

    def __init__(self, weight: Tensor, bias: Tensor, constants: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.weight, self.bias, self.constants = weight, bias, constants

    def forward(self, spikes: Tensor, _run: Run) -> Tensor:
        """Logits after the last time step."""
        membrane = total = torch.zeros(1, dtype=torch.float64)
        for arriving in nnf.linear(spikes.double(), self.weight, self.bias):
            values = SimpleNamespace(current=arriving, membrane=membrane, total=total, **self.constants)
            membrane, total = (part.double() for part in FORMULAS["IntegerSum"](values))
        return total.float() / len(spikes)


def _owner(name: str) -> tuple[str, str]:
    layer, _, key = name.rpartition(".")
    return layer, key


def _power(value: float) -> bool:
    return math.frexp(value)[0] == 0.5


def _replace(network: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(network.get_submodule(parent), last, module)
