"""Constants as text: the bytes of the smallest integers that are exact, or else of float32, in base64."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]

FINEST = 40  # bits behind the point of integers that are tried
KINDS = {"Int8Array": "<i1", "Int16Array": "<i2"}


class View(NamedTuple):
    """Where the elements of a part of an array lie: the first, and the distance to the next along each axis."""

    first: int
    strides: tuple[int, ...]


def literal(values: Floats) -> str:
    """A JavaScript expression for an array; a·2^s as integers of 8 or 16 bits where they are exact."""
    scaled = values.astype(np.float64)
    largest = float(np.abs(scaled).max(initial=0.0))
    for bits in range(-FINEST, FINEST):
        integers = scaled * 2.0**bits
        if largest * 2.0**bits >= 2**15:
            break
        if (integers == np.rint(integers)).all():
            kind = "Int8Array" if largest * 2.0**bits < 2**7 else "Int16Array"
            return _call(integers.astype(KINDS[kind]), kind, 2.0**-bits)
    return _call(values.astype("<f4"), "Float32Array", 1.0)


def doubles(values: NDArray[np.float64]) -> str:
    """A JavaScript expression for an array of float64."""
    text = b64encode(np.ascontiguousarray(values, "<f8").tobytes()).decode()
    return f"new Float64Array(Uint8Array.from(atob('{text}'), (letter) => letter.charCodeAt(0)).buffer)"


def broadcast(shape: Sequence[int], to: Sequence[int]) -> View:
    """An array of ``shape`` seen as one of another."""
    whole = memory(shape)
    return view(whole, np.broadcast_to(whole, tuple(to)))


def memory(shape: Sequence[int]) -> Bytes:
    """An array of bytes, whose strides count elements."""
    return np.empty(tuple(shape), np.int8)


def view(whole: Bytes, part: Bytes) -> View:
    """Numpy's own answer to where a part of an array lies."""
    return View(part.ctypes.data - whole.ctypes.data, part.strides)


def _call(array: NDArray, kind: str, unit: float) -> str:
    return f"constant('{b64encode(np.ascontiguousarray(array).tobytes()).decode()}', {kind}, {unit!r})"
