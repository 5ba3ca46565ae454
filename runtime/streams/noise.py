"""Noise of a stochastic file on a stream: a number for each (seed, window, step, layer, neuron) in any chunking."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.noise import draw_noise
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]
Noise = Callable[[int, int, int], Mapping[str, Floats]]  # window, first step, steps -> [steps, 1, …] by name

WINDOWS = 2**32  # the generator's counter: the noise of a stream begins anew after so many windows


def stream_noise(program: Program, seed: int) -> Noise:
    """A function of (window, first step, steps) that gives the noise [steps, 1, …] of every noisy layer."""

    def draw(window: int, step: int, steps: int) -> Mapping[str, Floats]:
        return draw_noise(program, seed, [window % WINDOWS], step, steps)

    return draw if program.noises else lambda window, step, steps: {}
