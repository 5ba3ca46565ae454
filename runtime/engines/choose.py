"""The engine that measures a file: one that counts what it does."""

from __future__ import annotations

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.reference.interface import Engine
from axonnx.runtime.engines.reference.numpy_engine import NumpyEngine
from axonnx.runtime.program.instructions import Program

MEASURING = ("auto", "numpy", "numba")


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: numba where it is installed, numpy elsewhere, with the same counts."""
    if name != "numpy":
        try:
            from axonnx.runtime.engines.numba.engine import NumbaEngine

            return NumbaEngine(program)
        except ModuleNotFoundError:
            if name == "numba":
                raise AxonnxError("--engine numba: numba is not installed; pip install 'axonnx[fast]'") from None
    return NumpyEngine(program)
