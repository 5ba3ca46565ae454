"""How our kernels are compiled: once, without the interpreter lock, kept on disk for the next process.

Floating point stays as written: no fast-math, no contraction into fused multiply-adds, no reordering.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numba.extending

Function = TypeVar("Function", bound=Callable[..., Any])
Long = Any  # an int64 inside compiled code, whichever of Python's and numpy's integers it came from
# Kernels make no arrays, so nothing needs counting references: without "_nrt" every call would begin and end with it.
OPTIONS = {"nogil": True, "_nrt": False, "fastmath": False, "boundscheck": False, "error_model": "numpy"}

NOT_COMPILED = {
    "numba_bounds",
    "numba_engine",
    "numba_layout",
    "numba_plan",
    "numba_pools",
    "numba_storage",
}  # around the kernels


def intrinsic(function: Callable[..., Any]) -> Any:
    """``function`` as an operation that writes LLVM's instructions itself."""
    return numba.extending.intrinsic(function)


def inlined(function: Function) -> Function:
    """``function`` compiled into whatever calls it."""
    return cast(Function, numba.njit(forceinline=True, **OPTIONS)(function))


def compiled(function: Function) -> Function:
    """``function`` compiled at its first call, or taken from the disk."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(cache_folder())
    try:
        return cast(Function, numba.njit(cache=True, **OPTIONS)(function))
    finally:
        numba.config.CACHE_DIR = before


@cache
def cache_folder() -> Path:
    """Where compiled code is kept: one folder for each version of the kernels' sources and of numba.

    numba looks at the file of a function, not at the files of what it calls; the folder's name does.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for source in sorted(Path(__file__).parent.glob("numba_*.py")):
        if source.stem not in NOT_COMPILED:
            digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    home = os.environ.get("AXONNX_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for parent in (Path(home).expanduser() / "axonnx", Path(tempfile.gettempdir()) / f"axonnx-{os.getuid()}"):
        try:
            (parent / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError:
            continue
        if os.access(parent / name, os.W_OK):
            return parent / name
    return Path(tempfile.mkdtemp(prefix="axonnx-"))
