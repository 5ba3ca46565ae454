"""The source and what it became, side by side on the same input: every spike, every output, every decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from axonnx.export.convert.coverage import LAYERS, Reached, count_ties, crafted, reached, searched, threshold_of
from axonnx.export.convert.source import Seen, Source
from axonnx.models import MEAN_FIELD, Current, Forced, Network
from axonnx.models.general import DirectReadout
from axonnx.runtime.format.contract import InputContract
from axonnx.runtime.format.names import MEMBRANE, SPIKES, TOTAL
from axonnx.runtime.measure.comparison import Comparison, Difference
from axonnx.runtime.model import load

UNIT = 2.0**-24  # largest relative error of one float32 operation
FEW = 16  # operations of a step in which a source may round where we do not
ORDER, GRID = "a sum in another order", "weights rounded to the grid"
FAULT = "no rounding explains this; the layers differ"


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
        return self.spikes_differing == self.decisions_differing == 0 and self.fired > 0

    @property
    def explained(self) -> bool:
        """Whether all is equal, or differs first by a rounding."""
        if self.first is None:
            return self.decisions_differing == 0
        return self.first.reason.startswith("rounding")

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
    """Every comparison of an import with its source.

    Attributes:
        imported: Source and our network, with the source's weights.
        file: Source and file, whose weights are on its grid.
        same_weights: The file, and the source with the file's weights in it.
        crafted: Source and our network without weights, on currents at and beside the thresholds.
        unexplained: Spikes that no rounding explains, of layers fed with the source's own and on crafted currents.
        reached: What each layer did.
        recorded: Recorded spikes and our network, if there are any.
        proves: What equality proves, if not that of the network itself.
    """

    imported: Compared
    file: Compared
    same_weights: Compared
    crafted: Compared | None
    unexplained: int
    reached: tuple[Reached, ...]
    recorded: Compared | None = None
    proves: str = ""

    @property
    def comparisons(self) -> dict[str, Compared]:
        """Every comparison by its name."""
        names = ("imported", "file", "same_weights", "crafted", "recorded")
        return {name: found for name in names if (found := getattr(self, name)) is not None}

    @property
    def verdict(self) -> str:
        """Return "different", "not proved", "equal but for rounding", "equal", or equal to what."""
        judged = [found for name, found in self.comparisons.items() if name != "file"]
        if self.unexplained or any(not found.explained for found in judged):
            return "different"
        if any(layer.lacking for layer in self.reached) or any(not found.fired for found in judged):
            return "not proved"
        same = f"equal to {self.proves}" if self.proves else "equal"
        return same if all(found.equal for found in judged) else f"{same} but for rounding"

    @property
    def equal(self) -> bool:
        """Whether the source with the file's weights fires as the file does, or differs by rounding alone."""
        return self.verdict.startswith("equal")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        each = {name: found.as_dict() for name, found in self.comparisons.items()}
        layers = [vars(layer) for layer in self.reached]
        return {"verdict": self.verdict, **each, "unexplained": self.unexplained, "reached": layers}

    def lines(self) -> list[str]:
        """For people."""
        found = [line for each in self.comparisons.values() for line in each.lines()]
        if self.imported.spikes_differing or self.unexplained:
            found.append(f"layer by layer, on equal input: {self.unexplained:,} spikes differ by more than rounding")
        return [*found, "what the samples reach:", *(f"  {layer}" for layer in self.reached)]


@dataclass(frozen=True)
class Ours:
    """One of our networks on a batch: spikes and gaps h − θ by the plan's names, what is read out, and its logits."""

    spikes: Mapping[str, Tensor]
    gaps: Mapping[str, Tensor]
    outputs: Tensor
    logits: Tensor
    rule: str | None = None


def readout_of(network: Network) -> DirectReadout:
    """Return the read-out of an imported network."""
    return next(module for module in network.modules() if isinstance(module, DirectReadout))


@torch.no_grad()
def of_network(network: Network, x: Tensor) -> Ours:
    """Our network in torch."""
    read: list[Tensor] = []

    def keep(_module: object, given: tuple[object, ...]) -> None:
        arrived = given[0]
        read.append(arrived.mean if isinstance(arrived, Current) else cast(Tensor, arrived))

    handle = readout_of(network).register_forward_pre_hook(keep)
    try:
        output = network(x)
    finally:
        handle.remove()
    seen = {name.removeprefix(LAYERS): found for name, found in output.observations.items()}
    return Ours(
        {n: s.spikes for n, s in seen.items()},
        {n: s.gap for n, s in seen.items()},
        read[0],
        output.logits,
        readout_of(network).rule,
    )


def of_file(path: str, x: Tensor, network: Network) -> Ours:
    """Return the file, in the engine that runs it; what is read out is found from its read-out's membrane."""
    engine, readout = load(path).engine, readout_of(network)
    (membrane,) = (name.replace(TOTAL, MEMBRANE, 1) for name in engine.program.totals)
    state, held = engine.initial_state(x.shape[1]), [torch.zeros(())]
    spikes: dict[str, list[Tensor]] = {}
    membranes: dict[str, list[Tensor]] = {}
    for step in x.numpy():
        chunk = engine.advance(state, step[None], {}, trace=True)
        state = chunk.state
        held.append(torch.from_numpy(np.array(state.arrays[membrane])))
        for kind, book in ((SPIKES, spikes), (MEMBRANE, membranes)):
            for name, value in chunk.traces.items():
                if name.startswith(kind):
                    book.setdefault(name.removeprefix(kind + LAYERS), []).append(torch.from_numpy(np.array(value[0])))
    gaps = {name: torch.stack(value) - threshold_of(network, name) for name, value in membranes.items()}
    logits = torch.from_numpy(engine.program.contract.logits_of(chunk.logits, len(x))[0])
    read = [now - readout.decay * before for before, now in pairwise(held)]
    fired = {name: torch.stack(value) for name, value in spikes.items()}
    return Ours(fired, gaps, torch.stack(read) / readout.scale, logits, readout.rule)


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
    decided = [side.numpy().argmax(-1) for side in (source.over_time(ours.rule), ours.logits)]
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


def prove(
    source: Source,
    network: Network,
    path: str,
    weights: Mapping[str, Tensor],
    x: Tensor,
    arriving: InputContract,
    recorded: tuple[Tensor, Seen] | None = None,
) -> Proof:
    """Make all comparisons on ``x`` [T, B, C, H, W] and on what is searched beside it.

    Args:
        source: What was imported.
        network: Our network with the source's weights.
        path: The file.
        weights: The weights of the file.
        x: Samples as the network is fed them.
        arriving: What the file admits.
        recorded: Input and spikes that were recorded elsewhere.
    """
    x = searched(source, network, x, arriving)
    seen, ours, file = source.observe(x), of_network(network, x), of_file(path, x, network)
    probe, odd, ties = _crafted(source, network)
    witness = None
    if recorded is not None:
        witness = compare("recorded spikes and import", recorded[1], of_network(network, recorded[0]), FAULT)
        odd += unexplained(network, recorded[1], recorded[0])
    return Proof(
        compare("source and import, the same weights", seen, ours, FAULT),
        compare("source and file, weights rounded to its grid", seen, file, GRID, GRID),
        compare("source with the file's weights, and the file", source.with_weights(weights).observe(x), file, FAULT),
        probe,
        unexplained(network, seen, x) + odd,
        reached(seen, count_ties(network, ours.gaps), ties),
        witness,
        source.proves,
    )


def _crafted(source: Source, network: Network) -> tuple[Compared | None, int, dict[str, int]]:
    """Return the comparison on crafted currents, how many spikes no rounding explains, and the ties of each layer."""
    theirs, ours, odd, exact = [], [], 0, set()
    for probe in crafted(source, network):
        exact |= set(probe.exact)
        theirs.append(probe.source.observe(probe.x))
        ours.append(of_network(probe.network, probe.x))
        for name in probe.exact:
            odd += int((theirs[-1].spikes[name][0] != ours[-1].spikes[name][0]).sum())
    if not theirs:
        return None, 0, {}
    seen = Seen(_joined([each.spikes for each in theirs]), torch.cat([each.outputs for each in theirs], 1))
    mine = Ours(
        _joined([each.spikes for each in ours]),
        _joined([each.gaps for each in ours]),
        torch.cat([each.outputs for each in ours], 1),
        torch.cat([each.logits for each in ours], 0),
    )
    first = {name: gap[:1] for name, gap in mine.gaps.items()}
    found = compare("on currents at and beside the thresholds", seen, mine, FAULT)
    told = tuple(
        each.model_copy(update={"reason": "this step rounds nothing; the tie differs, or the threshold"})
        if each.step == 0 and each.layer in exact
        else each
        for each in found.differences
    )
    return (
        replace(found, decisions_differing=0, differences=told),
        odd,
        count_ties(network, first),
    )  # without weights none is made


def _joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the samples of all parts, side by side."""
    return {name: torch.cat([part[name] for part in parts], 1) for name in parts[0]}
