"""A file run on samples for a report: how its decisions form, what each layer does at each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Chunk, Engine
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.names import MEMBRANE, SPIKES, under
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.operations import SynapseCounter
from axonnx.runtime.measure.samples import Chosen
from axonnx.runtime.measure.uncertainty import possible_by_step
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.streams.probabilities import mean_probabilities, mutual_information, softmax

BATCH = 16

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Tell = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Sample:
    """One sample in all detail."""

    number: int
    label: int | None
    frames: NDArray[np.integer]  # [T, C, H, W]
    probabilities: Doubles  # [T, classes]: the decision after each step; of a regression [T, values]
    spikes: Mapping[str, NDArray[np.bool_]]  # [T, neurons]
    membranes: Mapping[str, Floats]  # [T, neurons]
    truth: Floats | None = None  # [values], of a regression

    @property
    def winner(self) -> int:
        """The class decided for."""
        return int(self.probabilities[-1].argmax())


@dataclass(frozen=True, eq=False)
class Measured:
    """Decisions and activity over many samples, and some of them in detail.

    In the place of probabilities a regression has its values, and ``truth`` in the place of labels.
    """

    source: str
    probabilities: Doubles  # [N, T, classes], or [N, T, values]
    labels: Integers | None
    rates: Mapping[str, Doubles]  # [T] for each layer
    spikes: Mapping[str, float]  # for one inference
    operations: Mapping[str, float]
    shown: tuple[Sample, ...] = ()
    truth: Floats | None = None  # [N, values], of a regression
    possible: NDArray[np.bool_] | None = None  # [N, T, classes], if the file states sets of classes
    disagreement: Doubles | None = None  # [N], the mutual information of an ensemble's members at the end

    @property
    def right(self) -> NDArray[np.bool_] | None:
        """Which decisions are right [N]; None without labels."""
        return None if self.labels is None else np.asarray(self.final.argmax(1) == self.labels)

    @property
    def final(self) -> Doubles:
        """Class probabilities at the end [N, classes]."""
        last: Doubles = self.probabilities[:, -1]
        return last


def measure(engine: Engine, samples: Chosen, shown: int, seed: int = 0, tell: Tell = lambda line: None) -> Measured:
    """Run all samples; then ``shown`` of them again with traces. The noise of sample i is that of window i."""
    if not len(samples.frames):
        raise AxonnxError(f"{samples.source}: no samples to run")
    batches = _Batches(engine, samples, seed)
    probabilities, possible, disagreement, counts = [], [], [], _Counts()
    certainty = engine.program.contract.certainty
    for start in range(0, len(samples.frames), BATCH):
        numbers = range(start, min(start + BATCH, len(samples.frames)))
        synapses = SynapseCounter(engine.program, len(numbers))
        steps = [counts.add(step, synapses) for step in batches.through(numbers)]
        probabilities.append(np.stack([step.probabilities for step in steps], 1))
        if certainty is not None:
            logits = np.stack([step.logits for step in steps])
            possible.append(possible_by_step(logits, certainty.margins).swapaxes(0, 1))
        if engine.program.contract.collapse.members > 1:
            disagreement.append(mutual_information(softmax(steps[-1].logits)))
        tell(f"{numbers.stop} of {len(samples.frames)} samples run")
    decided = np.concatenate(probabilities)
    chosen = _chosen(engine.program.contract, decided[:, -1], samples, shown)
    sizes = {layer.name: layer.size for layer in engine.program.layers}
    return Measured(
        samples.source,
        decided,
        None if samples.values is not None else samples.labels,
        {name: np.array(per_step) / (len(decided) * sizes[name]) for name, per_step in counts.spikes.items()},
        {name: sum(per_step) / len(decided) for name, per_step in counts.spikes.items()},
        {name: total / len(decided) for name, total in counts.operations.items()},
        tuple(batches.in_detail(number) for number in chosen),
        samples.values,
        np.concatenate(possible) if possible else None,
        np.concatenate(disagreement) if disagreement else None,
    )


def _chosen(contract: Contract, final: Doubles, samples: Chosen, wanted: int) -> list[int]:
    """Choose samples to show: by class, or evenly from the smallest first value to the largest."""
    if contract.units is None:
        return choose(final.argmax(1), samples.labels, wanted)
    order = np.argsort(final[:, 0] if samples.values is None else samples.values[:, 0], kind="stable")
    places = np.linspace(0, len(order) - 1, min(wanted, len(order))).round().astype(np.int64)
    return sorted({int(number) for number in order[places]})


def choose(decided: Integers, labels: Integers | None, wanted: int) -> list[int]:
    """Choose samples to show: the first of each class, and the first one that was decided wrongly."""
    groups = decided if labels is None else labels
    firsts = [int(np.flatnonzero(groups == group)[0]) for group in np.unique(groups)]
    wrong = [] if labels is None else [int(number) for number in np.flatnonzero(decided != labels)]
    others = [number for number in range(len(decided)) if number not in firsts]
    ranked = list(dict.fromkeys([*firsts[: max(wanted - 1, 0)], *wrong[:1], *firsts, *others]))
    return sorted(ranked[:wanted])


class _Step(NamedTuple):
    """One time step of a batch: its input, its outcome, and the class probabilities so far [B, classes]."""

    number: int
    x: Floats
    chunk: Chunk
    logits: Floats  # [members, B, classes]
    probabilities: Doubles


class _Batches:
    """Runs batches of samples through an engine, a step at a time."""

    def __init__(self, engine: Engine, samples: Chosen, seed: int) -> None:
        self.engine, self.samples, self.seed = engine, samples, seed

    def through(self, numbers: Sequence[int]) -> Iterator[_Step]:
        """Yield every time step, with traces."""
        contract = self.engine.program.contract
        frames = self.samples.frames[list(numbers)]
        state = self.engine.initial_state(len(numbers))
        for step in range(frames.shape[1]):
            x = to_input(frames[:, step : step + 1].swapaxes(0, 1), contract.input)
            noise = draw_noise(self.engine.program, self.seed, numbers, step, 1)
            chunk = self.engine.advance(state, x, noise, trace=True)
            state = chunk.state
            logits = contract.logits_of(chunk.logits, step + 1)
            scale = 1.0 if contract.certainty is None else contract.certainty.scale
            real = contract.units is not None
            so_far = logits[0].astype(np.float64) if real else mean_probabilities(logits, scale)
            yield _Step(step, x, chunk, logits, so_far)

    def in_detail(self, number: int) -> Sample:
        """One sample with all its traces."""
        probabilities, traces = [], []
        for step in self.through([number]):
            probabilities.append(step.probabilities[0])
            traces.append({name: values[0, 0].ravel() for name, values in step.chunk.traces.items()})
        labels = self.samples.labels
        series = {name: np.stack([each[name] for each in traces]) for name in traces[0]}
        return Sample(
            number,
            None if labels is None or self.samples.values is not None else int(labels[number]),
            self.samples.frames[number],
            np.stack(probabilities),
            {layer: values > 0 for layer, values in under(SPIKES, series).items()},
            under(MEMBRANE, series),
            None if self.samples.values is None else self.samples.values[number],
        )


class _Counts:
    """Spikes of each layer at each step, and operations of each synapse, over all samples."""

    def __init__(self) -> None:
        self.spikes: dict[str, list[int]] = {}
        self.operations: Counter[str] = Counter()

    def add(self, step: _Step, synapses: SynapseCounter) -> _Step:
        """Count a step and return it."""
        for name, fired in under(SPIKES, step.chunk.traces).items():
            per_step = self.spikes.setdefault(name, [])
            per_step.extend([0] * (step.number + 1 - len(per_step)))
            per_step[step.number] += int(np.count_nonzero(fired))
        self.operations.update(synapses.count(step.x, step.chunk.traces)[1])
        return step
