"""The engine of a file, by name."""

from __future__ import annotations

import os

from axonnx.runtime.compile_program import compile_file
from axonnx.runtime.engine import Engine
from axonnx.runtime.numpy_engine import NumpyEngine

ENGINES = ("auto", "numpy", "numba", "ort")


def open_engine(path: str | os.PathLike[str], name: str = "auto") -> Engine:
    """What runs the file at ``path``."""
    return NumpyEngine(compile_file(path))
