"""How kernels of the training code are compiled: without the interpreter lock, and kept on disk.

numba is an extra (``axonnx[fast]``); nothing here is imported where it is not installed. Floating point stays as
written: no fused multiply-adds and no reordering, except in sums that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
# Kernels make no arrays, so nothing needs counting references: without "_nrt" every call would begin and end with it.
OPTIONS = {"nogil": True, "_nrt": False, "boundscheck": False, "error_model": "numpy"}


def inlined(function: Function) -> Function:
    """``function`` compiled into the kernel that calls it, which must stand in the same file.

    numba recompiles a kernel when its own file has changed; it does not look at others.
    """
    return cast(Function, numba.njit(forceinline=True, **OPTIONS)(function))


def inlined_sum(function: Function) -> Function:
    """As ``inlined``, with additions in whatever order is fastest."""
    return cast(Function, numba.njit(forceinline=True, fastmath={"reassoc", "nsz"}, **OPTIONS)(function))


def compiled(function: Function) -> Function:
    """``function`` compiled at its first call, or taken from the disk: beside the source, or the user's own cache."""
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # neither can be written to
        return cast(Function, numba.njit(**OPTIONS)(function))
