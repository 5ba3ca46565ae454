"""The file against the training network: its constants, its grids, and every layer's membranes and spikes.

Bits cannot be equal here, for the file's weights are rounded to its grid. So the demand is a bound that is derived: a
constant is within half a step of its grid, a membrane within what such weights allow (``bounds``), and a spike is the
training network's own wherever the membrane is farther than that from its threshold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from torch import Tensor

from axonnx.export.verify.bounds import Bounding, Bounds
from axonnx.export.verify.expected import Expected, expected_constants
from axonnx.export.verify.forced_file import ForcedFile, Seen
from axonnx.export.verify.grids import coarsest, probe
from axonnx.export.verify.reference import references
from axonnx.models import LIF, MEAN_FIELD, BinaryNeuron, Network, Replay
from axonnx.models.network import Output
from axonnx.runtime.contract import InputContract
from axonnx.runtime.model_file import ModelFile

Floats = NDArray[np.float32]
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
    largest: float = 0.0  # |deviation| / bound
    faults: list[str] = field(default_factory=list)

    def fault(self, line: str) -> None:
        """Note what is beyond its bound."""
        self.faults.append(line)

    def lines(self) -> list[str]:
        """For the table."""
        shown = self.faults[:MOST_FAULTS]
        more = len(self.faults) - len(shown)
        told = [*shown, *([f"… and {more} more"] if more else [])]
        return [
            *told,
            f"{self.constants:,} constants, {self.membranes:,} membranes and {self.logits:,} logits compared with the "
            f"training network; the largest deviation is {self.largest:.2f} of what rounding to the grid allows",
            f"{self.spikes_differing:,} of {self.spikes:,} spikes differ, each with its membrane that close to its "
            f"threshold",
        ]


class CollapseCheck:
    """One file against one training network."""

    def __init__(
        self, file: ModelFile, network: Network, arriving: InputContract, thresholds: Mapping[str, Tensor]
    ) -> None:
        self.file, self.arriving, how = file, arriving, file.contract.collapse
        self.stochastic = how.mode == "stochastic"
        self.members = references(network, how, thresholds)
        self.grids = {entry.weight: entry.grid for entry in file.contract.synapses}
        self.expected = {
            prefix: expected_constants(member, prefix, self.stochastic) for prefix, member in self.members.items()
        }
        self.found = Deviation()
        self._bounding: dict[str, Bounding] = {}
        self._forced: ForcedFile | None = None

    def constants(self) -> None:
        """Every constant of the file against its formula."""
        held = constants_of(self.file.proto)
        for expected in self.expected.values():
            for name, entry in expected.items():
                if name in held:
                    self._constant(name, entry, held[name])
                elif bool(entry.value.any()):
                    self.found.fault(f"constant {name!r} is missing from the file")
        known = {name for expected in self.expected.values() for name in expected}
        own = {p + name: value for p, member in self.members.items() for name, value in member.named_buffers()}
        for name in sorted(held.keys() - known):
            self._other_constant(name, held[name], own.get(name))

    def running(self, x: Tensor, noise: Mapping[str, Floats], offset: int) -> None:
        """Every layer on one batch, fed with the training network's own spikes; sample numbers begin at ``offset``."""
        outputs = {prefix: self._reference(prefix, x, noise) for prefix in self.members}
        if self._forced is None:
            self._forced = ForcedFile(self.file)
            self._prepare(outputs)
        spikes = {
            prefix + name: layer.spikes.float().numpy()
            for prefix, output in outputs.items()
            for name, layer in output.observations.items()
        }
        seen = self._forced.run(x.numpy(), spikes, noise)
        for number, (prefix, output) in enumerate(outputs.items()):
            bounds = self._bounding[prefix].of(x.double(), output)
            for name in output.observations:
                self._layer(prefix, name, output, bounds, seen, noise, offset)
            self._within("logits", f"{prefix}read-out", output.logits, seen.logits[number], bounds.logits, offset, 0)
            self.found.logits += output.logits.numel()

    def _reference(self, prefix: str, x: Tensor, noise: Mapping[str, Floats]) -> Output:
        drawn = {name.removeprefix("noise/"): torch.from_numpy(value).double() for name, value in noise.items()}
        with torch.no_grad():
            output: Output = self.members[prefix](x.double(), Replay(drawn) if self.stochastic else MEAN_FIELD)
        return output

    def _prepare(self, outputs: Mapping[str, Output]) -> None:
        for prefix, member in self.members.items():
            mine = {name.removeprefix(prefix): grid for name, grid in self.grids.items() if name.startswith(prefix)}
            self._bounding[prefix] = Bounding(member, mine)
            seen = probe(member, self.arriving, outputs[prefix])
            stored = self.file.contract.collapse.weights
            for weight, entry in self.expected[prefix].items():
                if entry.grid_of != weight or weight not in self.grids:
                    continue
                least = coarsest(self.expected[prefix], seen, stored, weight, prefix)
                if self.grids[weight] < least:
                    self.found.fault(
                        f"the grid of {weight!r} is 2^-{self.grids[weight]}; 2^-{least} keeps its sums exact as well, "
                        f"so {least - self.grids[weight]} bits of every weight were thrown away"
                    )

    def _constant(self, name: str, entry: Expected, found: NDArray[Any]) -> None:
        value = entry.value.numpy()
        self.found.constants += found.size
        if value.shape != found.shape:
            self.found.fault(
                f"constant {name!r} is {list(found.shape)}; the training network gives {list(value.shape)}"
            )
            return
        grids = {**self.grids} if entry.grid_of in self.grids else {**self.grids, str(entry.grid_of): 0}
        if entry.grid_of is not None and entry.grid_of not in self.grids:
            self.found.fault(f"constant {name!r} has no certificate of its grid")
        deviation, allowed = np.abs(found.astype(np.float64) - value), entry.tolerance(grids).numpy()
        self._judge(f"constant {name!r}", deviation, np.broadcast_to(allowed, value.shape), found, value)

    def _other_constant(self, name: str, found: NDArray[Any], own: Tensor | None) -> None:
        """What training did not make: a user's own buffer, ones that sum up, or numbers of the graph itself."""
        if own is not None:
            if not np.array_equal(own.float().numpy(), found):
                self.found.fault(f"constant {name!r} is not the buffer of that name in the training network")
        elif name.endswith(".ones") or not np.issubdtype(found.dtype, np.floating):
            if name.endswith(".ones") and not np.isin(found, (0.0, 1.0)).all():
                self.found.fault(f"constant {name!r} holds other numbers than zeros and ones")
        elif found.size > 1 or name.rpartition(".")[2] in ("weight", "bias", "threshold", "decay"):
            self.found.fault(f"constant {name!r} is in the file; the training network has no such number")

    def _layer(
        self,
        prefix: str,
        name: str,
        output: Output,
        bounds: Bounds,
        seen: Seen,
        noise: Mapping[str, Floats],
        offset: int,
    ) -> None:
        layer, neuron, time = output.observations[name], self.members[prefix].get_submodule(name), self._time
        assert isinstance(neuron, LIF | BinaryNeuron)
        bound, full = bounds.membranes[name], prefix + name
        self._within("membrane", full, layer.gap + neuron.threshold, seen.membranes[full], bound, offset, time)
        self.found.membranes += layer.gap.numel()
        near = bound.expand_as(layer.gap) >= layer.gap.abs()
        if self.stochastic:
            spread, base = bounds.variances[name], getattr(neuron, "base_variance", None)
            assert layer.variance is not None
            alone = layer.variance if base is None else layer.variance - base
            found = np.broadcast_to(seen.variances[full], alone.shape)
            self._within("variance", full, alone, found, spread + 1e-12, offset, time)
            drawn = torch.from_numpy(noise[f"noise/{full}"]).double()
            near = _undecided(layer.gap, layer.variance, drawn, bound, spread)
        different = torch.from_numpy(seen.decided[full]).double() != layer.spikes
        self.found.spikes += different.numel()
        self.found.spikes_differing += int(different.sum())
        wrong = different & ~near
        if bool(wrong.any()):
            where = _place(np.argwhere(wrong.numpy())[0], time, offset)
            self.found.fault(
                f"layer {full!r}{where}: the file {'fires' if not bool(layer.spikes[wrong][0]) else 'is silent'} and "
                f"the training network does not agree, with its membrane {float(layer.gap[wrong][0]):.4g} from the "
                f"threshold ({int(wrong.sum())} such spikes)"
            )

    @property
    def _time(self) -> int:
        return 1 if self.file.contract.kind == "spiking" else 0

    def _within(
        self, what: str, layer: str, value: Tensor, found: Floats, bound: Tensor, offset: int, time: int
    ) -> None:
        expected, allowed = value.numpy(), np.broadcast_to(bound.numpy(), value.shape)
        deviation = np.abs(found.astype(np.float64) - expected)
        self._judge(f"layer {layer!r}: {what}", deviation, allowed, found, expected, (time, offset))

    def _judge(
        self,
        what: str,
        deviation: Doubles,
        allowed: Doubles,
        found: NDArray[Any],
        expected: Doubles,
        at: tuple[int, int] | None = None,
    ) -> None:
        bad = ~(deviation <= allowed)  # a NaN is beyond every bound
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(deviation / allowed, nan=0.0, posinf=0.0)
        self.found.largest = max(self.found.largest, float(share[~bad].max(initial=0.0)))
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            where = f"{list(index)}" if at is None else _place(index, *at)
            self.found.fault(
                f"{what}{where} is {float(found[index]):.7g}, the training network gives {float(expected[index]):.7g}; "
                f"rounding allows {float(allowed[index]):.2g} ({int(bad.sum()):,} of {bad.size:,} beyond it)"
            )


def constants_of(proto: onnx.ModelProto) -> dict[str, NDArray[Any]]:
    """Every constant of a file's graphs by name; weights kept as integers as the numbers they stand for."""
    graphs = [proto.graph, *(a.g for node in proto.graph.node for a in node.attribute if a.HasField("g"))]
    found = {tensor.name: numpy_helper.to_array(tensor) for graph in graphs for tensor in graph.initializer}
    for name in [name for name in found if name.endswith(("/int8", "/int16"))]:
        weight = name.rpartition("/")[0]
        found[weight] = found.pop(name).astype(np.float64) * found.pop(f"{weight}/step")
    return found


def _undecided(gap: Tensor, variance: Tensor, noise: Tensor, bound: Tensor, spread: Tensor) -> Tensor:
    """Where κ²·(ε|ε|) ≥ −(gap|gap|) may go either way, for errors of the gap and of κ² within their bounds."""
    push, needed = variance * noise * noise.abs(), -gap * gap.abs()
    error = 2.0 * gap.abs() * bound + bound**2 + spread * noise**2 + 2.0**-20 * (push.abs() + needed.abs())
    return (push - needed).abs() <= error


def _place(index: Any, time: int, offset: int) -> str:
    """Time step, neuron and sample of an index [(T,) B, …]."""
    numbers = [int(i) for i in index]
    step = f", time step {numbers[0]}" if time else ""
    return f"{step}, neuron {numbers[time + 1 :]}, sample {offset + numbers[time]}"
