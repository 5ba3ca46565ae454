"""Compiled passes, where there are any: numba is an extra, and it takes its time to begin."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Final

WORTH: Final = 2**16  # events: with fewer, numpy is done before a kernel is loaded


@cache
def kernels(name: str) -> ModuleType | None:
    """The compiled passes of module ``name``, or None where numba is not installed."""
    try:
        return import_module(f"axonnx.runtime.kernels.{name}")
    except ModuleNotFoundError as missing:
        if missing.name != "numba":
            raise
        return None
