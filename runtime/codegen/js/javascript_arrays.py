"""Constants as text: the bytes of the smallest integers that are exact, or else of float32, in base64."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from numpy.typing import NDArray

from axonnx.runtime.codegen.array_layout import Floats, smallest

KINDS = {"i1": "Int8Array", "i2": "Int16Array", "i4": "Int24", "f4": "Float32Array"}


def literal(values: Floats) -> str:
    """A JavaScript expression for an array; a·2^s as integers of 8, 16 or 24 bits where they are exact."""
    stored = smallest(values, below=2**23)
    kind, data = KINDS[stored.values.dtype.str[1:]], stored.values
    if kind == "Int24":
        data = data.reshape(-1, 1).view(np.uint8)[:, :3]  # the top byte says nothing
    return f"constant('{b64encode(data.tobytes()).decode()}', {kind}, {stored.unit!r})"


def doubles(values: NDArray[np.float64]) -> str:
    """A JavaScript expression for an array of float64."""
    text = b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
    return f"new Float64Array(Uint8Array.from(atob('{text}'), (letter) => letter.charCodeAt(0)).buffer)"
