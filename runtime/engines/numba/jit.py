"""How our kernels are compiled: once, without the interpreter lock, kept on disk for the next process.

Floating point stays as written: no fast-math, no contraction into fused multiply-adds, no reordering.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.extending

from axonnx.base.kernel_cache import kernel_folder

Function = TypeVar("Function", bound=Callable[..., Any])
Long = Any  # an int64 inside compiled code, whichever of Python's and numpy's integers it came from
# Kernels make no arrays, so nothing needs counting references: without "_nrt" every call would begin and end with it.
OPTIONS = {"nogil": True, "_nrt": False, "fastmath": False, "boundscheck": False, "error_model": "numpy"}

# Around the kernels, and not compiled.
NOT_COMPILED = {"engine"}
CONSTANTS = ("reference/noise", "reference/normal_table", "table/rows")  # modules whose numbers are compiled in


def intrinsic(function: Callable[..., Any]) -> Any:
    """``function`` as an operation that writes LLVM's instructions itself."""
    return numba.extending.intrinsic(function)


def inlined(function: Function) -> Function:
    """``function`` compiled into whatever calls it."""
    return cast(Function, numba.njit(forceinline=True, **OPTIONS)(function))


def compiled(function: Function) -> Function:
    """``function`` compiled at its first call, or taken from the disk."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(kernel_folder(sources()))
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def sources() -> tuple[Path, ...]:
    """The files of the kernels, and those that their constants come from."""
    here = Path(__file__).parent
    kernels = (path for path in here.glob("*.py") if path.stem not in NOT_COMPILED)
    return tuple(sorted([*kernels, *(here.parent / f"{name}.py" for name in CONSTANTS)]))
