"""Noise of a stochastic file on a stream: a number for each (seed, window, step, layer, neuron) in any chunking."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.program import Program
from axonnx.runtime.windows import Noise

Floats = NDArray[np.float32]


def stream_noise(program: Program, seed: int) -> Noise:
    """A function of (window, first step, steps) that gives the noise [steps, 1, …] of every noisy layer."""

    def draw(window: int, step: int, steps: int) -> Mapping[str, Floats]:
        found = {}
        for number, name in enumerate(program.noises):
            shape = program.buffers[name].shape
            rows = [
                np.random.default_rng([seed, window, at, number]).standard_normal((1, *shape), np.float32)
                for at in range(step, step + steps)
            ]
            found[name] = np.stack(rows)
        return found

    return draw
