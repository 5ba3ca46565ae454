"""Which engine runs a file: the one that was named, or the fastest there is; to the same bits."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

from axonnx.base.c_compiler import find_compiler
from axonnx.base.errors import AxonnxError
from axonnx.runtime.engines.reference.interface import Engine
from axonnx.runtime.engines.reference.numpy_engine import NumpyEngine
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.step_graph import StepGraph

EngineName = Literal["auto", "c", "numba", "numpy", "ort"]
ENGINES: tuple[EngineName, ...] = ("auto", "c", "numba", "numpy", "ort")

MEASURING = ("auto", "numpy", "c", "numba")  # those that count what they do


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: the fastest that counts, with the same counts as all."""
    if name == "numpy":
        return NumpyEngine(program)
    if name == "auto":
        return compiled_engine(program)[0] or NumpyEngine(program)
    return _named(name, program, 1)


def make_engine(name: EngineName, program: Program, graph: StepGraph, threads: int) -> Engine:
    """Engines are imported only when they are wanted: numba and onnxruntime take their time."""
    if name == "numpy":
        return NumpyEngine(program)
    if name in ("c", "numba"):
        return _named(name, program, threads)
    from axonnx.runtime.engines.ort_engine import OrtEngine

    dense = OrtEngine(program, graph, threads)
    if name == "ort":
        return dense
    events, note = compiled_engine(program, threads)
    if events is None:
        return dense
    from axonnx.runtime.engines.auto_engine import AutoEngine

    return AutoEngine(events, dense, note)


def compiled_engine(program: Program, threads: int = 1) -> tuple[Engine | None, str | None]:
    """C where there is a compiler, numba elsewhere, None without both; and why it is not C, in one line."""
    try:
        return _named("c", program, threads), None
    except AxonnxError as fault:
        note = f"engine c is not used: {fault}"
    return (None if find_spec("numba") is None else _named("numba", program, threads)), note


def compiled_engines(program: Program) -> list[Engine]:
    """Every compiled engine that this machine has; the fastest last."""
    found = [_named("numba", program, 1)] if find_spec("numba") is not None else []
    if find_compiler() is not None:
        found.append(_named("c", program, 1))
    return found


def _named(name: str, program: Program, threads: int) -> Engine:
    if name == "c":
        from axonnx.runtime.engines.c.engine import CEngine

        return CEngine(program, threads)
    if find_spec("numba") is None:
        raise AxonnxError("the numba engine needs numba: pip install 'axonnx[fast]', or choose another engine")
    from axonnx.runtime.engines.numba.engine import NumbaEngine

    return NumbaEngine(program, threads)
