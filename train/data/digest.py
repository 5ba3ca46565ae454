"""Fingerprints of data: equal contents give equal digests, in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Bytes hashed in one go; a memory-mapped array need not fit into memory.
BLOCK = 1 << 26


class Pieces(NamedTuple):
    """An array of this type and shape that comes in pieces, one after the other along its first axis."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    parts: Iterable[NDArray[Any]]


def digest_of(description: Any, *arrays: NDArray[Any] | Pieces | None) -> str:
    """sha256 of a JSON-like description and of the arrays' types, shapes and contents."""
    state = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for array in arrays:
        state.update(b"none" if array is None else f"{array.dtype.descr}{array.shape}".encode())
        for part in array.parts if isinstance(array, Pieces) else () if array is None else (array,):
            _feed(state, part)
    return state.hexdigest()


def _feed(state: Any, array: NDArray[Any]) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), BLOCK):
        state.update(flat[start : start + BLOCK])
