"""Fingerprints of data: equal contents give equal digests, in every process and on every machine."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes hashed in one go; a memory-mapped array need not fit into memory.
BLOCK = 1 << 26


def digest_of(description: Any, *arrays: NDArray[Any] | None) -> str:
    """sha256 of a JSON-like description and of the arrays' types, shapes and contents."""
    state = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for array in arrays:
        state.update(b"none" if array is None else f"{array.dtype.descr}{array.shape}".encode())
        if array is not None:
            _feed(state, array)
    return state.hexdigest()


def _feed(state: Any, array: NDArray[Any]) -> None:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(flat), BLOCK):
        state.update(flat[start : start + BLOCK])
