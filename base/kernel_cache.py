"""Where numba's compiled kernels are kept: a private folder for each version of what is compiled in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import llvmlite  # type: ignore[import-untyped]
import numba
import numpy as np

from axonnx.base.private_folders import private_folder


@cache
def kernel_folder(sources: tuple[Path, ...]) -> Path:
    """The folder of the kernels in these files; the files hold all constants and helpers that are compiled in.

    numba looks at the file of a function, not at the files of what it calls; the folder's name does.
    """
    return private_folder(f"kernels-{digest(sources)[:16]}")


def digest(sources: Iterable[Path]) -> str:
    """Of the files and of the compilers."""
    versions = f"{numba.__version__} {llvmlite.__version__} {np.__version__}"
    total = hashlib.sha256(versions.encode())
    for source in sources:
        total.update(f"\n{source.name} ".encode() + hashlib.sha256(source.read_bytes()).digest())
    return total.hexdigest()
