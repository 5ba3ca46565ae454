"""What every target needs of arrays: the smallest integers that are exact, and where the parts of an array lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]

FINEST = 40  # bits behind the point of integers that are tried
KINDS = {"<i1": 2**7, "<i2": 2**15, "<i4": 2**31}  # and what their numbers are below


class View(NamedTuple):
    """Where the elements of a part of an array lie: the first, and the distance to the next along each axis."""

    first: int
    strides: tuple[int, ...]


class Stored(NamedTuple):
    """An array in units of a power of two."""

    values: NDArray[Any]
    unit: float


def smallest(values: Floats, below: int = 2**15) -> Stored:
    """Integers ``below`` a limit, in the fewest bytes, and their unit where they are exact; else the floats."""
    scaled = values.astype(np.float64)
    largest = float(np.abs(scaled).max(initial=0.0))
    for bits in range(-FINEST, FINEST):
        integers = scaled * 2.0**bits
        if largest * 2.0**bits >= below:
            break
        if (integers == np.rint(integers)).all():
            kind = next(kind for kind, limit in KINDS.items() if largest * 2.0**bits < limit)
            return Stored(np.ascontiguousarray(integers.astype(kind)), 2.0**-bits)
    return Stored(np.ascontiguousarray(values, "<f4"), 1.0)


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


def moved_parts(kind: str, how: Any, x: Bytes, out: Bytes, start: int) -> tuple[Bytes, Bytes]:
    """The part of a move's result that an operand fills, and the part of the operand that fills it.

    ``start`` is where the operand begins among those that are joined.
    """
    if kind == "Concat":
        return out[(slice(None),) * how + (slice(start, start + x.shape[how]),)], x[...]
    if kind == "Pad":
        inner = [slice(before, before + size) for (before, _), size in zip(how, x.shape, strict=True)]
        return out[tuple(inner)], x[...]
    if kind == "Slice":
        return out[...], x[how]
    if kind == "Transpose":
        return out[...], x.transpose(how)
    return out[...], np.broadcast_to(x, out.shape)
