"""Input that engines are compared on: a user's recordings or frames, or numbers made to find differences."""

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
from axonnx.runtime.measure.sample_choice import choose_samples
from axonnx.runtime.measure.samples import Samples
from axonnx.runtime.program.instructions import Neurons, Program

Floats = NDArray[np.float32]
KINDS = ("sparse", "dense", "silence", "all at once")
SPARSE = 0.05
TRIES = 2  # steps towards a threshold; the sum is rounded, so the first one may miss it


@dataclass(frozen=True, eq=False)
class EngineInput:
    """Network input [T, B, …] (T = 1 for images), what it is, and its sha256 where it was read from files."""

    source: str
    x: Floats
    sha256: str | None = None


def generated(contract: Contract, seed: int) -> EngineInput:
    """One sample of each of ``KINDS``: few numbers, all cells any number, none, all the largest."""
    entering, random = contract.input, np.random.default_rng(seed)
    shape = (entering.steps or 1, *entering.shape)
    lowest = 0 if entering.binning is not None else -entering.largest
    anything = random.integers(lowest, entering.largest, (2, *shape), endpoint=True)
    few = anything[0] * (random.random(shape) < SPARSE)
    kinds = np.stack([few, anything[1], np.zeros(shape), np.full(shape, entering.largest)], 1)
    x = kinds.astype(np.float32) * np.float32(entering.unit)
    return EngineInput(f"generated with seed {seed}: {', '.join(KINDS)}", x)


def input_of(samples: Samples, contract: Contract, limit: int) -> EngineInput:
    """Take ``limit`` samples as the network's input; no more pieces are read than needed."""
    pieces = choose_samples(np.zeros(samples.count), limit)
    frames = np.concatenate([batch for piece in pieces.tolist() for batch, _ in samples.some(piece, piece + 1)])[:limit]
    return EngineInput(samples.source, to_input(frames.swapaxes(0, 1), contract.input), samples.sha256)


def on_thresholds(program: Program, x: Floats, noise: Mapping[str, Floats]) -> tuple[State, int]:
    """A state from which the first step of ``x`` leaves membranes exactly on their thresholds, and how many.

    Layer by layer: without spikes before it a membrane is c·h + d, whatever the neurons are, so h moves by what is
    missing over c until the sum in float32 is the threshold.
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
