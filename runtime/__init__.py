"""Run an exported file on events, without torch.

``load("model.onnx")`` returns a ``Model``. ``model.run(x)`` and ``model.step(state, x)`` run it on arrays, and
``model.session()`` runs it on a stream of events. Names are imported on first use, so ``import axonnx.runtime`` is
fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonnx.base.errors import AxonnxError
    from axonnx.runtime.engines.interface import Activity, Chunk, Engine
    from axonnx.runtime.engines.state import State
    from axonnx.runtime.format.contract import Contract
    from axonnx.runtime.format.model_file import ModelFile, read_model_file
    from axonnx.runtime.model import Model, load
    from axonnx.runtime.program.compilation import compile_file
    from axonnx.runtime.program.instructions import Program
    from axonnx.runtime.result import RunResult
    from axonnx.runtime.streams.decision import Decision
    from axonnx.runtime.streams.session import Session
    from axonnx.runtime.streams.session_state import SessionState

_HOMES = {
    "Activity": "runtime.engines.interface",
    "AxonnxError": "base.errors",
    "Chunk": "runtime.engines.interface",
    "Contract": "runtime.format.contract",
    "Decision": "runtime.streams.decision",
    "Engine": "runtime.engines.interface",
    "Model": "runtime.model",
    "ModelFile": "runtime.format.model_file",
    "Program": "runtime.program.instructions",
    "RunResult": "runtime.model",
    "Session": "runtime.streams.session",
    "SessionState": "runtime.streams.session_state",
    "State": "runtime.engines.state",
    "compile_file": "runtime.program.compilation",
    "load": "runtime.model",
    "read_model_file": "runtime.format.model_file",
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
    "read_model_file",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"axonnx.{_HOMES[name]}"), name)
