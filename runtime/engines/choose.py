"""Which engine runs a file: the one that was named, or the fastest there is; to the same bits."""

from __future__ import annotations

from typing import Literal

from axonnx.native import Core, find_core
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.step_graph import StepGraph

EngineName = Literal["auto", "native", "numpy", "ort"]
ENGINES: tuple[EngineName, ...] = ("auto", "native", "numpy", "ort")

MEASURING = ("auto", "native", "numpy")  # those that count what they do


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: the fastest that counts, with the same counts as all."""
    if name == "numpy" or (name == "auto" and slower_because() is not None):
        return NumpyEngine(program)
    return NativeEngine(program)


def make_engine(name: EngineName, program: Program, graph: StepGraph, threads: int) -> Engine:
    """The engine of that name; auto: native, or onnxruntime where the package has no native core."""
    if name == "numpy":
        return NumpyEngine(program)
    if name == "native" or (name == "auto" and slower_because() is None):
        return NativeEngine(program, threads)
    from axonnx.runtime.engines.ort_engine import OrtEngine  # takes its time to import

    return OrtEngine(program, graph, threads)


def native_engines(program: Program) -> list[Engine]:
    """The native engine, if the package has its core."""
    return [NativeEngine(program)] if slower_because() is None else []


def slower_because() -> str | None:
    """Why ``auto`` cannot be the native engine, and what to do; None where it is."""
    found = find_core()
    return None if isinstance(found, Core) else found
