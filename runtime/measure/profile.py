"""Measure the cost of running a file: spikes, operations, memory, time and energy.

Definitions follow NeuroBench where it has one. An *effective operation* is one weight used by one non-zero input: an
accumulate if the input is a spike, a multiply-accumulate if it is graded. *Activation sparsity* is the share of zeros
among all outputs of all neurons over all time steps. All figures are means per inference.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Chunk, Engine
from axonnx.runtime.measure.energy import Hardware
from axonnx.runtime.measure.metrics import expected_calibration_error, wilson_interval
from axonnx.runtime.measure.profile_result import EarlyExit, Energy, LayerCost, ProfileResult, SynapseCost, Totals
from axonnx.runtime.program.instructions import Conv, Linear, Program
from axonnx.runtime.program.layer_noise import stream_noise
from axonnx.runtime.streams.probabilities import exit_steps, mean_probabilities

Floats = NDArray[np.float32]
STOPS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass
class Counts:
    """Running sums over samples. The sums of several processes are added in the order of the samples."""

    samples: int = 0
    steps: int = 0  # of one sample
    events: int = 0
    spikes: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    over_time: dict[str, list[int]] = field(default_factory=dict)  # spikes of a layer in each step
    seconds: list[float] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    exits: dict[str, list[int]] = field(default_factory=dict)  # by certainty: correct decisions, steps

    def add(self, other: Counts) -> None:
        """Add the counts of the following samples."""
        assert self.steps in (0, other.steps)
        self.steps = other.steps
        self.samples += other.samples
        self.events += other.events
        self.spikes.update(other.spikes)
        self.operations.update(other.operations)
        self.seconds += other.seconds
        self.confidences += other.confidences
        self.right += other.right
        for mine, more in ((self.over_time, other.over_time), (self.exits, other.exits)):
            for name, values in more.items():
                mine[name] = [a + b for a, b in zip(mine.get(name, [0] * len(values)), values, strict=True)]


def profile(
    engine: Engine, batches: Iterable[tuple[Floats, NDArray[np.int64]]], hardware: Hardware, seed: int = 0
) -> ProfileResult:
    """Run labelled input through an engine and return its costs.

    Args:
        engine: An engine that counts operations (native or numpy).
        batches: Pairs of input [T, B, …] (or [B, …]) and labels [B].
        hardware: Energy of each operation.
        seed: Seed of the noise of a stochastic network.

    Raises:
        AxonnxError: If there are no samples, or the engine does not count operations.
    """
    return figures_of(engine.program, engine.name, count(engine, batches, seed), hardware)


def count(
    engine: Engine, batches: Iterable[tuple[Floats, NDArray[np.int64]]], seed: int = 0, number: int = 0
) -> Counts:
    """Run and count; ``number`` is the number of the first sample, which selects the noise of a stochastic file."""
    counts = Counts()
    for x, labels in batches:
        _add(engine, counts, x, labels, seed, number)
    return counts


def _add(engine: Engine, counts: Counts, x: Floats, labels: NDArray[np.int64], seed: int, number: int) -> None:
    program = engine.program
    timed = x if program.contract.kind == "spiking" else x[None]
    batch = timed.shape[1]
    noise = _noise(program, seed, number + counts.samples, batch, len(timed))
    state, chunks = engine.initial_state(batch), []
    for t in range(len(timed)):
        began = time.perf_counter()
        chunk = engine.advance(state, timed[t : t + 1], {name: value[t : t + 1] for name, value in noise.items()})
        counts.seconds.append((time.perf_counter() - began) / batch)
        state = chunk.state
        chunks.append(chunk)
    _count(counts, program, chunks, timed, labels)


def _noise(program: Program, seed: int, first: int, batch: int, steps: int) -> dict[str, Floats]:
    """Draw the noise [T, B, …] of every noisy layer; it depends only on the seed and the sample's number."""
    if not program.noises:
        return {}
    draw = stream_noise(program, seed)
    drawn = [draw(sample, 0, steps) for sample in range(first, first + batch)]
    return {name: np.concatenate([each[name] for each in drawn], 1) for name in program.noises}


def _count(counts: Counts, program: Program, chunks: list[Chunk], x: Floats, labels: NDArray[np.int64]) -> None:
    spiking = program.contract.kind == "spiking"
    running = [chunk.logits / np.float32(t + 1 if spiking else 1) for t, chunk in enumerate(chunks)]
    probabilities = np.stack([mean_probabilities(logits) for logits in running])  # [T, B, classes]
    found = Counts(
        samples=len(labels),
        steps=len(chunks),
        events=int((x != 0).sum()),
        confidences=probabilities[-1].max(-1).tolist(),
        right=(probabilities[-1].argmax(-1) == labels).tolist(),
        exits={f"{stop:g}": _exits(probabilities, labels, stop) for stop in STOPS},
    )
    for t, chunk in enumerate(chunks):
        if chunk.activity is None:
            raise AxonnxError("this engine does not count operations; use the engine native or numpy")
        for name, spikes in chunk.activity.spikes.items():
            found.spikes[name] += int(spikes.sum())
            found.over_time.setdefault(name, [0] * len(chunks))[t] += int(spikes.sum())
        for name, done in chunk.activity.operations.items():
            found.operations[name] += int(done.sum())
    counts.add(found)


def _exits(probabilities: NDArray[np.float64], labels: NDArray[np.int64], stop: float) -> list[int]:
    """Return the correct decisions and the steps of all samples, deciding at the first sure step or the last one."""
    when = exit_steps(probabilities, stop)
    chosen = probabilities[when, np.arange(len(labels))].argmax(-1)
    return [int((chosen == labels).sum()), int((when + 1).sum())]


def figures_of(program: Program, engine: str, counts: Counts, hardware: Hardware) -> ProfileResult:
    """Compute the figures from the counts of all samples."""
    if not counts.samples:
        raise AxonnxError("the data has no samples; expected at least one")
    steps = counts.steps
    neurons = sum(layer.size for layer in program.layers)
    synapses = tuple(_synapse(program, i, counts, steps) for i in program.instructions if isinstance(i, Linear | Conv))
    updates = steps * neurons if program.contract.kind == "spiking" else 0
    totals = _totals(program, synapses, counts, updates, steps * neurons)
    costs = hardware.cost_nj(totals.accumulates, totals.multiply_accumulates, updates)
    dense = hardware.cost_nj(0, totals.dense_operations, updates)
    right = np.array(counts.right)
    return ProfileResult(
        model=program.name,
        samples=counts.samples,
        engine=engine,
        collapse=program.contract.collapse.mode,
        layers=tuple(_layer(layer.name, layer.size, counts, steps) for layer in program.layers),
        synapses=synapses,
        totals=totals,
        energy=Energy(hardware=hardware, parts=costs, total_nj=costs.total, dense_nj=dense.total),
        latency_ms_per_step=1e3 * statistics.median(counts.seconds),
        accuracy=float(right.mean()),
        accuracy_interval=wilson_interval(int(right.sum()), len(right)),
        ece=expected_calibration_error(np.array(counts.confidences), right),
        early_exit=_early_exits(counts) if steps > 1 else (),
    )


def _layer(name: str, neurons: int, counts: Counts, steps: int) -> LayerCost:
    return LayerCost(
        name=name,
        neurons=neurons,
        rate=counts.spikes[name] / (counts.samples * neurons * steps),
        spikes_per_inference=counts.spikes[name] / counts.samples,
        rate_over_time=tuple((np.array(counts.over_time[name], np.float32) / (counts.samples * neurons)).tolist()),
    )


def _synapse(program: Program, synapse: Linear | Conv, counts: Counts, steps: int) -> SynapseCost:
    weight = program.constants[synapse.weight]
    done = counts.operations.get(synapse.name, 0.0) / counts.samples
    values = program.buffers[synapse.reads[0]].values
    graded = values.largest > 1 or values.bits > 0  # a product with 0 or ±1 is not counted as a multiplication
    outputs = program.buffers[synapse.writes[0]].size
    return SynapseCost(
        name=synapse.weight.removesuffix(".weight"),
        weights=int(weight.size),
        connection_sparsity=float((weight == 0).mean()),
        accumulates=0.0 if graded else done,
        multiply_accumulates=done if graded else 0.0,
        dense_operations=steps * outputs * int(np.prod(weight.shape[1:])),
    )


def _totals(program: Program, synapses: Sequence[SynapseCost], counts: Counts, updates: int, outputs: int) -> Totals:
    zeros = sum(entry.weights * entry.connection_sparsity for entry in synapses)
    return Totals(
        events_in=counts.events / counts.samples,
        accumulates=sum(entry.accumulates for entry in synapses),
        multiply_accumulates=sum(entry.multiply_accumulates for entry in synapses),
        dense_operations=sum(entry.dense_operations for entry in synapses),
        membrane_updates=updates,
        footprint_bytes=sum(value.nbytes for value in program.constants.values()),
        activation_sparsity=(counts.samples * outputs - sum(counts.spikes.values())) / (counts.samples * outputs),
        connection_sparsity=zeros / sum(entry.weights for entry in synapses),
    )


def _early_exits(counts: Counts) -> tuple[EarlyExit, ...]:
    return tuple(_exit(float(stop), right, steps, counts.samples) for stop, (right, steps) in counts.exits.items())


def early_exits(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[EarlyExit, ...]:
    """Return accuracy and steps of early decisions at several certainties; probabilities are [T, N, classes]."""
    return tuple(early_exit(probabilities, labels, stop) for stop in STOPS)


def early_exit(probabilities: NDArray[np.float64], labels: NDArray[np.int64], stop: float) -> EarlyExit:
    """Decide at the first step that is sure enough, or at the last step; probabilities are [T, N, classes]."""
    right, steps = _exits(probabilities, labels, stop)
    return _exit(stop, right, steps, len(labels))


def _exit(stop: float, right: int, steps: int, samples: int) -> EarlyExit:
    return EarlyExit(stop_at=stop, accuracy=right / samples, mean_steps=steps / samples)
