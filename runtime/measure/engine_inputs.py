"""Inputs for comparing engines: a user's recordings or frames, or numbers that expose differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.engines.state import State
from axonnx.runtime.format.contract import Contract
from axonnx.runtime.format.names import MEMBRANE
from axonnx.runtime.format.network_input import to_input
from axonnx.runtime.measure.samples import Samples, choose_samples
from axonnx.runtime.program.instructions import Neurons, Program

Floats = NDArray[np.float32]
KINDS = ("sparse", "dense", "silence", "all at once")
SPARSE = 0.05
TRIES = 2  # corrections towards a threshold; rounding may make the first one miss


@dataclass(frozen=True, eq=False)
class EngineInput:
    """A network input [T, B, …] (T = 1 for images), its description, and its sha256 if it was read from files."""

    source: str
    x: Floats
    sha256: str | None = None


def generated(contract: Contract, seed: int) -> EngineInput:
    """Generate one sample of each of ``KINDS``: few non-zero values, random values, zeros, and largest values."""
    x = to_input(generated_values(contract, seed), contract.input)
    return EngineInput(f"generated with seed {seed}: {', '.join(KINDS)}", x)


def generated_values(contract: Contract, seed: int) -> NDArray[np.int64]:
    """Return the same as integers [T, kinds, *shape], before they become the network's input."""
    entering, random = contract.input, np.random.default_rng(seed)
    shape = (entering.steps or 1, *entering.shape)
    lowest = 0 if entering.binning is not None or entering.scaled_to is not None else -entering.largest
    anything = random.integers(lowest, entering.largest, (2, *shape), endpoint=True)
    few = anything[0] * (random.random(shape) < SPARSE)
    return entering.centre + np.stack([few, anything[1], np.zeros_like(few), np.full_like(few, entering.largest)], 1)


def input_of(samples: Samples, contract: Contract, limit: int) -> EngineInput:
    """Take ``limit`` samples as the network's input."""
    frames = some_frames(samples, limit)
    return EngineInput(samples.source, to_input(frames.swapaxes(0, 1), contract.input), samples.sha256)


def some_frames(samples: Samples, limit: int) -> NDArray[np.integer]:
    """Return ``limit`` samples [N, T, …]; no more pieces are read than needed."""
    pieces = choose_samples(np.zeros(samples.count), limit)
    return np.concatenate([batch for piece in pieces.tolist() for batch, _ in samples.some(piece, piece + 1)])[:limit]


def on_thresholds(program: Program, x: Floats, noise: Mapping[str, Floats]) -> tuple[State, int]:
    """Return a state whose first step of ``x`` puts membranes exactly on their thresholds, and their number.

    The search goes layer by layer. Without earlier spikes a membrane is c·h + d for every kind of neuron. So h changes
    by the missing amount over c until the float32 sum equals the threshold.
    """
    engine = NumpyEngine(program)
    state, first = engine.initial_state(x.shape[1]), {name: drawn[:1] for name, drawn in noise.items()}
    arrays, ties = dict(state.arrays), 0
    for neurons in program.instructions:
        name = MEMBRANE + neurons.layer if isinstance(neurons, Neurons) else ""
        if not isinstance(neurons, Neurons) or name not in arrays or "threshold" not in neurons.parameters:
            continue

        def reached(membrane: Floats, name: str = name) -> Floats:
            traces = engine.advance(State(0, {**arrays, name: membrane}), x[:1], first, trace=True).traces
            found: Floats = traces[name][0]
            return found

        threshold, before = program.constants[neurons.parameters["threshold"]], arrays[name]
        now = reached(before)
        slope = reached(np.ones_like(before)) - now
        for _ in range(TRIES):
            with np.errstate(divide="ignore", invalid="ignore"):
                missing = np.nan_to_num((threshold - now) / slope, nan=0.0, posinf=0.0, neginf=0.0)
            arrays[name] = arrays[name] + missing.astype(np.float32)
            now = reached(arrays[name])
        arrays[name] = np.where(now == threshold, arrays[name], before)
        ties += int((now == threshold).sum())
    return State(0, arrays), ties
