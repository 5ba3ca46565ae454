"""The engine that measures a file: one that counts what it does."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.reference.interface import Engine
from axonnx.runtime.engines.reference.numpy_engine import NumpyEngine
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.step_graph import StepGraph

EngineName = Literal["auto", "numba", "numpy", "ort"]
ENGINES: tuple[EngineName, ...] = ("auto", "numba", "numpy", "ort")

MEASURING = ("auto", "numpy", "numba")


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: numba where it is installed, numpy elsewhere, with the same counts."""
    if name != "numpy":
        try:
            from axonnx.runtime.engines.numba.engine import NumbaEngine

            return NumbaEngine(program)
        except ModuleNotFoundError:
            if name == "numba":
                raise AxonnxError("engine numba: numba is not installed; pip install 'axonnx[fast]'") from None
    return NumpyEngine(program)


def make_engine(name: EngineName, program: Program, graph: StepGraph, threads: int) -> Engine:
    """Engines are imported only when they are wanted: numba and onnxruntime take their time."""
    if name == "numpy":
        from axonnx.runtime.engines.reference.numpy_engine import NumpyEngine

        return NumpyEngine(program)
    if name == "ort" or (name == "auto" and find_spec("numba") is None):
        from axonnx.runtime.engines.ort_engine import OrtEngine

        return OrtEngine(program, graph, threads)
    if find_spec("numba") is None:
        raise AxonnxError("the numba engine needs numba: pip install 'axonnx[fast]', or choose another engine")
    from axonnx.runtime.engines.numba.engine import NumbaEngine

    events = NumbaEngine(program, threads)
    if name == "numba":
        return events
    from axonnx.runtime.engines.auto_engine import AutoEngine
    from axonnx.runtime.engines.ort_engine import OrtEngine

    return AutoEngine(events, OrtEngine(program, graph, threads))
