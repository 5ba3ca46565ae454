"""How kernels of the training code are compiled: without the interpreter lock, and kept on disk.

numba is an extra (``axonnx[fast]``); nothing here is imported where it is not installed. Floating point stays as
written: no fused multiply-adds and no reordering, except in sums that ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from axonnx.base.kernel_cache import kernel_folder

Function = TypeVar("Function", bound=Callable[..., Any])
# Kernels make no arrays, so nothing needs counting references: without "_nrt" every call would begin and end with it.
KERNELS = ("lif_kernels", "moment_kernels")
OPTIONS = {"nogil": True, "_nrt": False, "boundscheck": False, "error_model": "numpy"}


def inlined(function: Function) -> Function:
    """``function`` compiled into the kernel that calls it."""
    return cast(Function, numba.njit(forceinline=True, **OPTIONS)(function))


def inlined_sum(function: Function) -> Function:
    """As ``inlined``, with additions in whatever order is fastest."""
    return cast(Function, numba.njit(forceinline=True, fastmath={"reassoc", "nsz"}, **OPTIONS)(function))


def compiled(function: Function) -> Function:
    """``function`` compiled at its first call, or taken from the disk; ``AXONNX_CACHE_DIR`` says where."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(kernel_folder(sources()))
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # nothing can be kept
        return cast(Function, numba.njit(**OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def sources() -> tuple[Path, ...]:
    """The files of the kernels, and those that their constants come from."""
    here = Path(__file__).parent
    own = (here / f"{name}.py" for name in ("compiling", *KERNELS))
    return (*own, here.parent / "maths" / "normal.py")
