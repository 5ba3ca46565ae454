"""The source and what it became, side by side on the same input: every spike, every output, every decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from axonnx.export.convert.source import Seen, Source
from axonnx.models import MEAN_FIELD, Current, Forced, Network
from axonnx.models.general import DirectReadout
from axonnx.runtime.format.names import MEMBRANE, SPIKES
from axonnx.runtime.measure.comparison import Comparison, Difference
from axonnx.runtime.model import load

UNIT = 2.0**-24  # largest relative error of one float32 operation
FEW = 16  # operations of a step in which a source may round where we do not
ORDER, GRID = "a sum in another order", "weights rounded to the grid"
LAYERS = "layers."  # what names of layers begin with in our network


@dataclass(frozen=True)
class Compared:
    """Two networks on the same samples."""

    what: str
    samples: int
    spikes: int
    spikes_differing: int
    decisions_differing: int
    max_output_difference: float
    fired: int
    differences: tuple[Difference, ...]

    @property
    def first(self) -> Difference | None:
        """The first spike that differs."""
        return self.differences[0] if self.differences else None

    @property
    def equal(self) -> bool:
        """Whether every spike and every decision is the same, and something fired at all."""
        return self.spikes_differing == self.decisions_differing == 0 and self.spikes > 0

    @property
    def explained(self) -> bool:
        """Whether all is equal, or differs first by a rounding."""
        return self.equal or (self.first is not None and self.first.reason.startswith("rounding"))

    def lines(self) -> list[str]:
        """For people."""
        same = self.spikes - self.spikes_differing
        share = 100.0 * same / max(self.spikes, 1)
        text = (
            f"{self.what}: {same:,} of {self.spikes:,} spikes equal ({share:.4f} %; {self.fired:,} fired), "
            f"{self.samples - self.decisions_differing} of {self.samples} decisions; outputs within "
            f"{self.max_output_difference:.3g}"
        )
        return [text] if self.first is None else [text, f"  first: {_told(self.first)}"]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "differences": [each.model_dump(mode="json") for each in self.differences]}


def _told(first: Difference) -> str:
    place = f"layer {first.layer!r}, step {first.step}, sample {first.sample}, neuron {list(first.neuron)}"
    fired = "the source fires" if first.expected else "the source is silent"
    ours = "ours fires" if first.found else "ours is silent"
    return f"{place}: {fired}, {ours}, {first.distance:.3g} from the threshold: {first.reason}"


@dataclass(frozen=True)
class Proof:
    """``imported``: source and our network, with the source's weights. ``file``: source and file, whose weights are on
    its grid. ``same_weights``: the file, and the source with the file's weights in it.
    """

    imported: Compared
    file: Compared
    same_weights: Compared
    unexplained: int  # spikes of our layers, fed with the source's own, that no rounding makes the source's

    @property
    def equal(self) -> bool:
        """Whether the source with the file's weights fires as the file does, or differs by rounding alone."""
        return self.unexplained == 0 and self.imported.explained and self.same_weights.explained

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        each = {name: getattr(self, name).as_dict() for name in ("imported", "file", "same_weights")}
        return {**each, "unexplained": self.unexplained}

    def lines(self) -> list[str]:
        """For people."""
        found = [*self.imported.lines(), *self.file.lines(), *self.same_weights.lines()]
        if self.imported.spikes_differing:
            found.append(
                f"layer by layer, on the source's own spikes: {self.unexplained:,} differ by more than rounding"
            )
        return found


@dataclass(frozen=True)
class Ours:
    """One of our networks on a batch: spikes and gaps h − θ by the plan's names, and what is read out."""

    spikes: Mapping[str, Tensor]
    gaps: Mapping[str, Tensor]
    outputs: Tensor


@torch.no_grad()
def of_network(network: Network, x: Tensor) -> Ours:
    """Our network in torch."""
    read: list[Tensor] = []
    readout = next(module for module in network.modules() if isinstance(module, DirectReadout))

    def keep(_module: object, given: tuple[object, ...]) -> None:
        arrived = given[0]
        read.append(arrived.mean if isinstance(arrived, Current) else cast(Tensor, arrived))

    handle = readout.register_forward_pre_hook(keep)
    try:
        output = network(x)
    finally:
        handle.remove()
    seen = {name.removeprefix(LAYERS): found for name, found in output.observations.items()}
    return Ours({n: s.spikes for n, s in seen.items()}, {n: s.gap for n, s in seen.items()}, read[0])


def of_file(path: str, x: Tensor, network: Network) -> Ours:
    """The file, in the engine that runs it; what is read out is found from its running total."""
    engine = load(path).engine
    state, totals = engine.initial_state(x.shape[1]), []
    spikes: dict[str, list[Tensor]] = {}
    membranes: dict[str, list[Tensor]] = {}
    for step in x.numpy():
        chunk = engine.advance(state, step[None], {}, trace=True)
        state = chunk.state
        totals.append(torch.from_numpy(np.array(chunk.logits[0])))
        for kind, book in ((SPIKES, spikes), (MEMBRANE, membranes)):
            for name, value in chunk.traces.items():
                if name.startswith(kind):
                    book.setdefault(name.removeprefix(kind + LAYERS), []).append(torch.from_numpy(np.array(value[0])))
    thresholds = {name: network.get_submodule(LAYERS + name).threshold for name in spikes}
    gaps = {name: torch.stack(value) - thresholds[name] for name, value in membranes.items()}  # type: ignore[operator]
    outputs = torch.stack(totals).diff(dim=0, prepend=torch.zeros(1, *totals[0].shape))
    return Ours({name: torch.stack(value) for name, value in spikes.items()}, gaps, outputs)


def compare(what: str, source: Seen, ours: Ours, why: str, small: str = ORDER) -> Compared:
    """Every spike of every layer; ``why`` is told of a divergence that rounding cannot explain, ``small`` of others."""

    def margins(layer: str, index: tuple[int, ...]) -> dict[str, float | str]:
        step, sample, *_ = index
        gap, distance = ours.gaps[layer][:, sample], abs(float(ours.gaps[layer][index]))
        allowed = (step + 1) * FEW * UNIT * (1.0 + float(gap[: step + 1].abs().max()))
        return {
            "distance": distance,
            "reason": why if distance > allowed else f"rounding: {'a tie' if distance == 0.0 else small}",
        }

    spikes, both = Comparison(what, margins=margins), (source.spikes, ours.spikes)
    expected, found = ({SPIKES + name: each[name].numpy() for name in source.spikes} for each in both)
    spikes.add(expected, found)
    decided = [side.outputs.double().mean(0).numpy().argmax(-1) for side in (source, ours)]
    return Compared(
        what,
        samples=source.outputs.shape[1],
        spikes=spikes.numbers,
        spikes_differing=spikes.differing,
        decisions_differing=int((decided[0] != decided[1]).sum()),
        max_output_difference=float((source.outputs - ours.outputs).abs().max()),
        fired=int(sum(float(part.sum()) for part in source.spikes.values())),
        differences=tuple(spikes.differences),
    )


@torch.no_grad()
def unexplained(network: Network, source: Seen, x: Tensor) -> int:
    """How many spikes differ by more than rounding where every layer hears, and is reset by, the source's own spikes.

    So no difference can come from another one before it, and each is judged by itself.
    """
    forced = {LAYERS + name: spikes for name, spikes in source.spikes.items()}
    seen, count = network(x, Forced(forced, MEAN_FIELD)).observations, 0
    for name, spikes in forced.items():
        gap = seen[name].gap
        steps = torch.arange(1, len(gap) + 1).reshape(-1, *(1,) * (gap.dim() - 1))
        allowed = steps * FEW * UNIT * (1.0 + gap.abs().cummax(0).values)
        count += int((((gap >= 0) != spikes.bool()) & (gap.abs() > allowed)).sum())
    return count


def prove(source: Source, network: Network, path: str, weights: Mapping[str, Tensor], x: Tensor) -> Proof:
    """All three comparisons on ``x`` [T, B, C, H, W]."""
    seen, file = source.observe(x), of_file(path, x, network)
    fault = "no rounding explains this; the layers differ"
    return Proof(
        compare("source and import, the same weights", seen, of_network(network, x), fault),
        compare("source and file, weights rounded to its grid", seen, file, GRID, GRID),
        compare("source with the file's weights, and the file", source.with_weights(weights).observe(x), file, fault),
        unexplained(network, seen, x),
    )
