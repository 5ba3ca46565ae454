"""The engine that measures a file: one that counts what it does."""

from __future__ import annotations

from axonnx.runtime.engine import Engine
from axonnx.runtime.errors import AxonnxError
from axonnx.runtime.numpy_engine import NumpyEngine
from axonnx.runtime.program import Program

MEASURING = ("auto", "numpy", "numba")


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: numba where it is installed, numpy elsewhere, with the same counts."""
    if name != "numpy":
        try:
            from axonnx.runtime.numba_engine import NumbaEngine

            return NumbaEngine(program)
        except ModuleNotFoundError:
            if name == "numba":
                raise AxonnxError("--engine numba: numba is not installed; pip install 'axonnx[fast]'") from None
    return NumpyEngine(program)
