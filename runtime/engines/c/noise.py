"""Noise by the compiled library, to the bits of ``reference.noise``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.engines.c.library import compiled_noise


def fill_normals(out: NDArray[np.float32], seed: int, samples: NDArray[np.uint64], first_step: int, layer: int) -> None:
    """Fill [steps, samples, count]."""
    fill = compiled_noise().axonnx_normals
    fill(out.ctypes.data, *out.shape, seed, samples.ctypes.data, first_step, layer)
