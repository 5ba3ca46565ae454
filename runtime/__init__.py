"""Run an exported file on events, without torch.

``load("model.onnx")`` gives a ``Model``; ``model.run(x)`` and ``model.step(state, x)`` run it, ``model.session()`` runs
it on a stream of events. Names are imported when they are first used, so that ``import axonnx.runtime`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonnx.runtime.compile_program import compile_file
    from axonnx.runtime.contract import Contract
    from axonnx.runtime.decision import Decision
    from axonnx.runtime.engine import Activity, Chunk, Engine
    from axonnx.runtime.errors import AxonnxError
    from axonnx.runtime.model import Model, RunResult, load
    from axonnx.runtime.model_file import ModelFile, load_model
    from axonnx.runtime.program import Program
    from axonnx.runtime.session import Session
    from axonnx.runtime.session_state import SessionState
    from axonnx.runtime.state import State

_HOMES = {
    "Activity": "engine",
    "AxonnxError": "errors",
    "Chunk": "engine",
    "Contract": "contract",
    "Decision": "decision",
    "Engine": "engine",
    "Model": "model",
    "ModelFile": "model_file",
    "Program": "program",
    "RunResult": "model",
    "Session": "session",
    "SessionState": "session_state",
    "State": "state",
    "compile_file": "compile_program",
    "load": "model",
    "load_model": "model_file",
}

__all__ = [
    "Activity",
    "AxonnxError",
    "Chunk",
    "Contract",
    "Decision",
    "Engine",
    "Model",
    "ModelFile",
    "Program",
    "RunResult",
    "Session",
    "SessionState",
    "State",
    "compile_file",
    "load",
    "load_model",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
