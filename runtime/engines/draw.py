"""The noise of a program's layers; compiled where C or numba is there, to the bits of ``reference.noise``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from axonnx.base.c_compiler import find_compiler
from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.reference.noise import check_key, layer_key, plain_normals
from axonnx.runtime.engines.reference.normal_table import coefficients
from axonnx.runtime.program.instructions import Program

Floats = NDArray[np.float32]


def draw_noise(program: Program, seed: int, samples: Sequence[int], first_step: int, steps: int) -> dict[str, Floats]:
    """The noise [T, B, …] of every noisy layer, for the given samples and the steps from ``first_step`` on."""
    found = {}
    for name in program.noises:
        shape = program.buffers[name].shape
        flat = normals(seed, samples, first_step, steps, layer_key(name), int(np.prod(shape, dtype=np.int64)))
        found[name] = flat.reshape(steps, len(samples), *shape)
    return found


def normals(seed: int, samples: Sequence[int], first_step: int, steps: int, layer: int, count: int) -> Floats:
    """[steps, samples, count] standard normals; compiled by C or numba where they are there, to the same bits."""
    check_key(seed, samples, first_step + steps)
    out, names = np.empty((steps, len(samples), count), np.float32), np.asarray(samples, np.uint64)
    if find_compiler() is not None:
        with suppress(AxonnxError):  # a compiler that cannot compile it
            from axonnx.runtime.engines.c.noise import fill_normals as fill_in_c

            fill_in_c(out, seed, names, first_step, layer)
            return out
    try:
        from axonnx.runtime.engines.numba.noise import fill_normals
    except ImportError:
        return plain_normals(seed, samples, first_step, steps, layer, count)
    fill_normals(out, np.uint64(seed), names, np.uint64(first_step), np.uint64(layer), coefficients())
    return out
