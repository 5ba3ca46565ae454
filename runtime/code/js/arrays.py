"""Constants as text: the bytes of the smallest integers that are exact, or else of float32, in base64."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.code.arrays import Floats, smallest

KINDS = {1: "Int8Array", 2: "Int16Array", 4: "Float32Array"}  # by the bytes of an element


def literal(values: Floats) -> str:
    """A JavaScript expression for an array; a·2^s as integers of 8 or 16 bits where they are exact."""
    stored = smallest(values)
    text = b64encode(stored.values.tobytes()).decode()
    return f"constant('{text}', {KINDS[stored.values.itemsize]}, {stored.unit!r})"


def doubles(values: NDArray[np.float64]) -> str:
    """A JavaScript expression for an array of float64."""
    text = b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
    return f"new Float64Array(Uint8Array.from(atob('{text}'), (letter) => letter.charCodeAt(0)).buffer)"
