"""Choose the engine that runs a file: the requested one, or the fastest available. All give the same bits."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Literal

from axonnx.native import Core, find_core
from axonnx.runtime.engines.interface import Engine
from axonnx.runtime.engines.native_engine import NativeEngine
from axonnx.runtime.engines.numpy_engine import NumpyEngine
from axonnx.runtime.program.instructions import Program
from axonnx.runtime.program.step_graph import StepGraph

EngineName = Literal["auto", "native", "numpy", "ort"]
ENGINES: tuple[EngineName, ...] = ("auto", "native", "numpy", "ort")

MEASURING = ("auto", "native", "numpy")  # engines that count spikes and operations


class SlowEngineWarning(UserWarning):
    """Warns that the package has no native core, so a slower engine runs."""


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """Return the engine of that name; ``"auto"`` selects the fastest engine that counts spikes and operations."""
    if name == "numpy" or (name == "auto" and not _native_runs()):
        return NumpyEngine(program)
    return NativeEngine(program)


def make_engine(name: EngineName, program: Program, graph: StepGraph, threads: int) -> Engine:
    """Return the engine of that name; ``"auto"`` selects native, or onnxruntime if there is no native core."""
    if name == "numpy":
        return NumpyEngine(program)
    if name == "native" or (name == "auto" and _native_runs()):
        return NativeEngine(program, threads)
    from axonnx.runtime.engines.ort_engine import OrtEngine  # slow to import

    return OrtEngine(program, graph, threads)


def native_engines(program: Program) -> list[Engine]:
    """Return the native engine in a list, or an empty list if the package has no native core."""
    return [NativeEngine(program)] if isinstance(find_core(), Core) else []


@cache
def _native_runs() -> bool:
    """Return whether there is a native core; if not, warn once and state the reason."""
    found = find_core()
    if isinstance(found, str):
        warnings.warn(found, SlowEngineWarning, stacklevel=4)
    return isinstance(found, Core)
