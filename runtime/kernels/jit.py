"""How passes over events are compiled: for one stated type, without the interpreter lock, kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types

from axonnx.base.kernel_cache import kernel_folder
from axonnx.runtime.events.arrays import EVENT

Function = TypeVar("Function", bound=Callable[..., Any])
# Kernels make no arrays, so nothing needs counting references.
OPTIONS = {"nogil": True, "_nrt": False, "boundscheck": False, "error_model": "numpy"}
AROUND = ("__init__", "choice")  # nothing of theirs is compiled in

RECORD = numba.from_dtype(EVENT)


def given(kind: Any) -> Any:
    """An array that is only read: numba takes any contiguous one for it."""
    return types.Array(kind, 1, "C", readonly=True)


def kept(kind: Any) -> Any:
    """An array that is written to."""
    return types.Array(kind, 1, "C")


def compiled(result: Any, *arguments: Any) -> Callable[[Function], Function]:
    """The function compiled for these types when its module is imported, or taken from the disk."""

    def compile_now(function: Function) -> Function:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(kernel_folder(sources()))
        try:
            return cast(Function, numba.njit([result(*arguments)], cache=True, **OPTIONS)(function))
        finally:
            numba.config.CACHE_DIR = before

    return compile_now


def inlined(function: Function) -> Function:
    """The function compiled into whatever calls it."""
    return cast(Function, numba.njit(forceinline=True, **OPTIONS)(function))


@cache
def sources() -> tuple[Path, ...]:
    """The files of the kernels, and those that their constants come from."""
    here = Path(__file__).parent
    kernels = sorted(path for path in here.glob("*.py") if path.stem not in AROUND)
    return (*kernels, here.parent / "events" / "arrays.py")
