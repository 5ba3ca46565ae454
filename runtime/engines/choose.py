"""Which engine runs a file: the one that was named, or the fastest there is; to the same bits."""

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

MEASURING = ("auto", "native", "numpy")  # those that count what they do


class SlowEngineWarning(UserWarning):
    """The package has no native core, so a slower engine runs."""


def measuring_engine(program: Program, name: str = "auto") -> Engine:
    """The engine of that name; auto: the fastest that counts, with the same counts as all."""
    if name == "numpy" or (name == "auto" and not _native_runs()):
        return NumpyEngine(program)
    return NativeEngine(program)


def make_engine(name: EngineName, program: Program, graph: StepGraph, threads: int) -> Engine:
    """The engine of that name; auto: native, or onnxruntime where the package has no native core."""
    if name == "numpy":
        return NumpyEngine(program)
    if name == "native" or (name == "auto" and _native_runs()):
        return NativeEngine(program, threads)
    from axonnx.runtime.engines.ort_engine import OrtEngine  # takes its time to import

    return OrtEngine(program, graph, threads)


def native_engines(program: Program) -> list[Engine]:
    """The native engine, if the package has its core."""
    return [NativeEngine(program)] if isinstance(find_core(), Core) else []


@cache
def _native_runs() -> bool:
    """Whether there is a native core; where there is none, a warning says why, once."""
    found = find_core()
    if isinstance(found, str):
        warnings.warn(found, SlowEngineWarning, stacklevel=4)
    return isinstance(found, Core)
