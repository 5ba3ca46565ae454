"""How kernels of the training code are compiled: without the interpreter lock, and kept on disk.

numba comes with ``axonnx[train]``; nothing here is imported where it is not installed. Floating point stays as
written: no fused multiply-adds and no reordering, except in sums that ask for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

from axonnx.base.private_folders import private_folder

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
    numba.config.CACHE_DIR = str(kernel_folder())
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    except RuntimeError:  # nothing can be kept
        return cast(Function, numba.njit(**OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def kernel_folder() -> Path:
    """Return the private folder of compiled kernels for these sources and compilers.

    numba checks the file of a function but not the files of what it calls; the folder's name covers both.
    """
    total = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {np.__version__}".encode())
    for source in sources():
        total.update(f"\n{source.name} ".encode() + hashlib.sha256(source.read_bytes()).digest())
    return private_folder(f"kernels-{total.hexdigest()[:16]}")


@cache
def sources() -> tuple[Path, ...]:
    """The files of the kernels, and those that their constants come from."""
    here = Path(__file__).parent
    own = (here / f"{name}.py" for name in ("compiling", *KERNELS))
    return (*own, here.parent / "maths" / "normal.py")
