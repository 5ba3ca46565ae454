"""Measure the cost of running a file: spikes, operations, memory, time and energy.

Definitions follow NeuroBench where it has one. An *effective operation* is one weight, other than zero, that meets a
non-zero input: an accumulate if the input is a spike, a multiply-accumulate if it is graded. *Activation sparsity* is
the share of zeros among all outputs of all neurons over all time steps. All figures are means per inference.

Memory traffic counts what an event-driven processor moves, without any reuse: a row of weights for each active input
(zeros too, because rows are stored whole), biases and states in every step, and addresses of spikes and input cells,
written once and read by each synapse. The dense network that it is compared with reads each weight once for a pass.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.interface import Chunk, Engine
from axonnx.runtime.measure.energy import WIDTHS, EnergyParts, Hardware, Width
from axonnx.runtime.measure.metrics import ValueMetrics, expected_calibration_error, value_metrics, wilson_interval
from axonnx.runtime.measure.operations import SynapseCounter, synapses_of
from axonnx.runtime.measure.profile_result import (
    DenseEnergy,
    EarlyExit,
    Energy,
    LayerCost,
    ProfileResult,
    SynapseCost,
    Totals,
)
from axonnx.runtime.program.instructions import Conv, Linear, Neurons, Program
from axonnx.runtime.program.layer_noise import draw_noise
from axonnx.runtime.streams.probabilities import exit_steps, mean_probabilities

Floats = NDArray[np.float32]
STOPS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


@dataclass
class Counts:
    """Running sums over samples. The sums of several processes are added in the order of the samples."""

    samples: int = 0
    steps: int = 0  # of one sample
    events: int = 0
    cells: int = 0  # of the input that are not zero
    spikes: Counter[str] = field(default_factory=Counter)
    active: Counter[str] = field(default_factory=Counter)  # inputs of each synapse that are not zero
    operations: Counter[str] = field(default_factory=Counter)
    weights_read: Counter[str] = field(default_factory=Counter)
    over_time: dict[str, list[int]] = field(default_factory=dict)  # spikes of a layer in each step
    seconds: list[float] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    right: list[bool] = field(default_factory=list)
    exits: dict[str, list[int]] = field(default_factory=dict)  # by certainty: correct decisions, steps
    found: list[list[float]] = field(default_factory=list)  # the real values of a regression …
    labels: list[int] = field(default_factory=list)  # … and the rows of the table with the true ones

    def add(self, other: Counts) -> None:
        """Add the counts of the following samples."""
        assert self.steps in (0, other.steps)
        self.steps = other.steps
        self.samples += other.samples
        self.events += other.events
        self.cells += other.cells
        self.spikes.update(other.spikes)
        self.active.update(other.active)
        self.operations.update(other.operations)
        self.weights_read.update(other.weights_read)
        self.seconds += other.seconds
        self.confidences += other.confidences
        self.right += other.right
        self.found += other.found
        self.labels += other.labels
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
    first = number + counts.samples
    noise = draw_noise(program, seed, range(first, first + batch), 0, len(timed))
    state, chunks, synapses = engine.initial_state(batch), [], SynapseCounter(program, batch)
    for t in range(len(timed)):
        given = timed[t : t + 1], {name: value[t : t + 1] for name, value in noise.items()}
        began = time.perf_counter()
        chunk = engine.advance(state, *given)
        counts.seconds.append((time.perf_counter() - began) / batch)
        active, operations = synapses.count(given[0], engine.advance(state, *given, trace=True).traces)
        counts.active.update(active)
        counts.operations.update(operations)
        state = chunk.state
        chunks.append(chunk)
    _count(counts, program, chunks, timed, labels)


def _count(counts: Counts, program: Program, chunks: list[Chunk], x: Floats, labels: NDArray[np.int64]) -> None:
    running = [program.contract.logits_of(chunk.logits, t + 1) for t, chunk in enumerate(chunks)]
    found = Counts(samples=len(labels), steps=len(chunks), events=_events(program, x), cells=int(np.count_nonzero(x)))
    if program.contract.units is not None:
        found.found, found.labels = running[-1][0].astype(np.float64).tolist(), labels.tolist()
    else:
        probabilities = np.stack([mean_probabilities(logits) for logits in running])  # [T, B, classes]
        found.confidences = probabilities[-1].max(-1).tolist()
        found.right = (probabilities[-1].argmax(-1) == labels).tolist()
        found.exits = {f"{stop:g}": _exits(probabilities, labels, stop) for stop in STOPS}
    for t, chunk in enumerate(chunks):
        if chunk.activity is None:
            raise AxonnxError("this engine does not count operations; use the engine native or numpy")
        for name, spikes in chunk.activity.spikes.items():
            found.spikes[name] += int(spikes.sum())
            found.over_time.setdefault(name, [0] * len(chunks))[t] += int(spikes.sum())
        for name, done in chunk.activity.operations.items():
            found.weights_read[name] += int(done.sum())
    counts.add(found)


def _events(program: Program, x: Floats) -> int:
    """Return the number of events in an input of counts; an image has as many as it has values other than zero."""
    contract = program.contract.input
    counted = contract.shift == contract.centre == 0 and contract.steps is not None and not contract.repeated
    return int(x.sum(dtype=np.float64)) if counted else int(np.count_nonzero(x))


def _exits(probabilities: NDArray[np.float64], labels: NDArray[np.int64], stop: float) -> list[int]:
    """Return the correct decisions and the steps of all samples, deciding at the first sure step or the last one."""
    when = exit_steps(probabilities, stop)
    chosen = probabilities[when, np.arange(len(labels))].argmax(-1)
    return [int((chosen == labels).sum()), int((when + 1).sum())]


def figures_of(
    program: Program, engine: str, counts: Counts, hardware: Hardware, truth: Floats | None = None
) -> ProfileResult:
    """Compute the figures from the counts of all samples; ``truth`` has the real values [labels, values]."""
    if not counts.samples:
        raise AxonnxError("the data has no samples; expected at least one")
    steps = counts.steps
    follows = SynapseCounter(program, 1).follows_spikes
    synapses = tuple(_synapse(program, i, counts, follows(i)) for i in synapses_of(program))
    layers = tuple(_layer(layer.name, layer.size, counts, steps) for layer in program.layers)
    totals = _totals(program, synapses, counts, steps * sum(layer.size for layer in program.layers))
    exits = tuple(_exit(float(stop), hits, taken, counts.samples) for stop, (hits, taken) in counts.exits.items())
    return ProfileResult(
        model=program.name,
        samples=counts.samples,
        engine=engine,
        collapse=program.contract.collapse.mode,
        layers=layers,
        synapses=synapses,
        totals=totals,
        energy=estimate(hardware, totals, layers, synapses, steps),
        latency_ms_per_step=1e3 * statistics.median(counts.seconds),
        early_exit=exits if steps > 1 else (),
        **_quality(program, counts, truth),
    )


def _quality(program: Program, counts: Counts, truth: Floats | None) -> dict[str, Any]:
    """Return the accuracy and calibration of the decisions, or the errors of real values."""
    contract = program.contract
    if contract.units is not None:
        if truth is None:
            raise AxonnxError(f"{program.name}: the data has no real values; the network gives {contract.classes}")
        errors: ValueMetrics = value_metrics(np.array(counts.found), truth[counts.labels])
        return {"values": contract.classes, "units": contract.units, "errors": errors}
    right = np.array(counts.right)
    return {
        "accuracy": float(right.mean()),
        "accuracy_interval": wilson_interval(int(right.sum()), len(right)),
        "ece": expected_calibration_error(np.array(counts.confidences), right),
    }


def _layer(name: str, neurons: int, counts: Counts, steps: int) -> LayerCost:
    return LayerCost(
        name=name,
        neurons=neurons,
        rate=counts.spikes[name] / (counts.samples * neurons * steps),
        spikes_per_inference=counts.spikes[name] / counts.samples,
        rate_over_time=tuple((np.array(counts.over_time[name], np.float32) / (counts.samples * neurons)).tolist()),
    )


def _synapse(program: Program, synapse: Linear | Conv, counts: Counts, follows_spikes: bool) -> SynapseCost:
    weight = program.constants[synapse.weight]
    done = counts.operations[synapse.name] / counts.samples
    entering = program.buffers[synapse.reads[0]]
    graded = entering.values.largest > 1 or entering.values.bits > 0  # a product with 0 or ±1 is no multiplication
    levels = entering.values.largest * 2.0**entering.values.bits + 1
    outputs = program.buffers[synapse.writes[0]].size
    return SynapseCost(
        name=synapse.weight.removesuffix(".weight"),
        weights=int(weight.size),
        stored_as=widths_of(program)[synapse.weight],
        connection_sparsity=float((weight == 0).mean()),
        accumulates=0.0 if graded else done,
        multiply_accumulates=done if graded else 0.0,
        dense_operations=counts.steps * outputs * int(np.prod(weight.shape[1:])),
        weights_read=counts.weights_read[synapse.name] / counts.samples,
        inputs=entering.size,
        active_inputs=counts.active[synapse.name] / counts.samples,
        input_bits=address_bits(entering.size) + (math.ceil(math.log2(levels)) if graded else 0),
        follows_spikes=follows_spikes,
    )


def widths_of(program: Program) -> dict[str, Width]:
    """Return how the file stores each tensor of weights."""
    return {stated.weight: stated.stored_as for stated in program.contract.synapses}


def constant_bytes(program: Program) -> int:
    """Return the bytes of all constants as the file stores them."""
    widths = widths_of(program)
    return sum(value.size * WIDTHS[widths.get(name, "float32")] for name, value in program.constants.items())


def state_bytes(program: Program) -> int:
    """Return the bytes of the state of one sample: a bit for each spike, and float32 for everything else."""
    buffers = [program.buffers[name] for name in program.states]
    return sum(-(-buffer.size // 8) if buffer.values.kind == "spikes" else 4 * buffer.size for buffer in buffers)


def _totals(program: Program, synapses: Sequence[SynapseCost], counts: Counts, outputs: int) -> Totals:
    zeros = sum(entry.weights * entry.connection_sparsity for entry in synapses)
    neurons = sum(program.buffers[i.writes[0]].size for i in program.instructions if isinstance(i, Neurons))
    return Totals(
        events_in=counts.events / counts.samples,
        active_inputs=counts.cells / counts.samples,
        accumulates=sum(entry.accumulates for entry in synapses),
        multiply_accumulates=sum(entry.multiply_accumulates for entry in synapses),
        dense_operations=sum(entry.dense_operations for entry in synapses),
        membrane_updates=counts.steps * neurons if program.contract.kind == "spiking" else 0,
        footprint_bytes=constant_bytes(program),
        state_bytes=state_bytes(program),
        biases=sum(program.buffers[i.writes[0]].size for i in synapses_of(program) if i.bias),
        activation_sparsity=(counts.samples * outputs - sum(counts.spikes.values())) / (counts.samples * outputs),
        connection_sparsity=zeros / sum(entry.weights for entry in synapses),
    )


def early_exits(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> tuple[EarlyExit, ...]:
    """Return accuracy and steps of early decisions at several certainties; probabilities are [T, N, classes]."""
    return tuple(early_exit(probabilities, labels, stop) for stop in STOPS)


def early_exit(probabilities: NDArray[np.float64], labels: NDArray[np.int64], stop: float) -> EarlyExit:
    """Decide at the first step that is sure enough, or at the last step; probabilities are [T, N, classes]."""
    right, steps = _exits(probabilities, labels, stop)
    return _exit(stop, right, steps, len(labels))


def _exit(stop: float, right: int, steps: int, samples: int) -> EarlyExit:
    return EarlyExit(stop_at=stop, accuracy=right / samples, mean_steps=steps / samples)


NJ = 1e-3  # of a pJ
BIAS_BYTES = 4  # float32 in every file


def address_bits(size: int) -> int:
    """Return the width of the address of one of ``size`` elements."""
    return max(1, math.ceil(math.log2(size)))


def estimate(
    hardware: Hardware, totals: Totals, layers: Sequence[LayerCost], synapses: Sequence[SynapseCost], steps: int
) -> Energy:
    """Return the energy of one inference of ``steps`` time steps.

    The first dense network computes every time step. The second one computes a single pass with activations of
    ⌈log2(steps + 1)⌉ bits, which hold as much as the number of spikes of a neuron (arXiv 2409.08290).
    """
    byte = hardware.byte(totals.footprint_bytes + totals.state_bytes)
    always = EnergyParts(
        membrane_updates=NJ * hardware.membrane_update_pj * totals.membrane_updates,
        weights=NJ * byte * BIAS_BYTES * totals.biases * steps,
        states=NJ * byte * 2 * totals.state_bytes * steps,  # read and written
    )
    by_spikes = EnergyParts(
        spikes=NJ * byte * sum(each.spikes_per_inference * address_bits(each.neurons) / 8 for each in layers)
    )
    for synapse in synapses:
        if synapse.follows_spikes:
            by_spikes += _synapse_energy(hardware, byte, synapse)
        else:
            always += _synapse_energy(hardware, byte, synapse)
    parts, rate = always + by_spikes, 1 - totals.activation_sparsity

    def dense(passes: int, bits: int) -> DenseEnergy:
        costs = [_dense_energy(hardware, byte, synapse, passes, bits, steps) for synapse in synapses]
        written = EnergyParts(spikes=NJ * byte * passes * bits / 8 * sum(each.neurons for each in layers))
        found = sum(costs, written)
        known = totals.membrane_updates > 0 and by_spikes.total > 0
        limit = max(found.total - always.total, 0.0) / by_spikes.total * rate if known else None
        return DenseEnergy(passes=passes, activation_bits=bits, parts=found, break_even_rate=limit)

    widest = 8 * max(WIDTHS[synapse.stored_as] for synapse in synapses)
    networks = [dense(steps, widest)]
    if steps > 1:
        networks.append(dense(1, math.ceil(math.log2(steps + 1))))
    return Energy(
        hardware=hardware,
        memory_pj_per_byte=byte,
        parts=parts,
        total_nj=parts.total,
        rate=rate,
        dense=tuple(networks),
    )


def _synapse_energy(hardware: Hardware, byte: float, synapse: SynapseCost) -> EnergyParts:
    width = synapse.stored_as
    return EnergyParts(
        accumulates=NJ * hardware.accumulate(width) * synapse.accumulates,
        multiply_accumulates=NJ * hardware.multiply_accumulate(width) * synapse.multiply_accumulates,
        weights=NJ * byte * WIDTHS[width] * synapse.weights_read,
        spikes=NJ * byte * synapse.active_inputs * synapse.input_bits / 8,
    )


def _dense_energy(
    hardware: Hardware, byte: float, synapse: SynapseCost, passes: int, bits: int, steps: int
) -> EnergyParts:
    """Every input meets every weight; a pass reads each weight and each activation once."""
    width = synapse.stored_as
    operations = synapse.dense_operations // steps * passes
    return EnergyParts(
        multiply_accumulates=NJ * hardware.multiply_accumulate(width) * operations,
        weights=NJ * byte * WIDTHS[width] * synapse.weights * passes,
        spikes=NJ * byte * synapse.inputs * bits / 8 * passes,
    )
