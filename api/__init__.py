"""Train binary and spiking networks, ship them as one ONNX file, run that file on events with the same bits.

    run = axonnx.train_run("digits-saccade")          # a run folder
    axonnx.export_run(run.folder, "digits.onnx")      # one file
    model = axonnx.load("digits.onnx")                # no torch needed from here on
    print(model.predict(axonnx.read_events("recording.npz")).label)

Functions take plain arguments and give values; nothing is printed. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonnx.base.errors import AxonnxError
    from axonnx.convert.bayesian import bayesian, regulariser
    from axonnx.convert.bayesian import regulariser as regularizer
    from axonnx.convert.importing import import_network
    from axonnx.export.run import export_network, export_run
    from axonnx.export.verify.stages import verify_file
    from axonnx.module_model import Model
    from axonnx.profiling import profile_file
    from axonnx.reporting import report_file
    from axonnx.runtime.model import load
    from axonnx.runtime.readers import read_events
    from axonnx.train.callbacks import Callback
    from axonnx.train.run import train_run
    from axonnx.train.trained import open_run

    __version__: str

_HOMES = {
    "AxonnxError": "axonnx.base.errors",
    "Callback": "axonnx.train.callbacks",
    "Model": "axonnx.module_model",
    "bayesian": "axonnx.convert.bayesian",
    "export_network": "axonnx.export.run",
    "export_run": "axonnx.export.run",
    "import_network": "axonnx.convert.importing",
    "load": "axonnx.runtime.model",
    "open_run": "axonnx.train.trained",
    "profile_file": "axonnx.profiling",
    "read_events": "axonnx.runtime.readers",
    "regulariser": "axonnx.convert.bayesian",
    "regularizer": "axonnx.convert.bayesian",
    "report_file": "axonnx.reporting",
    "train_run": "axonnx.train.run",
    "verify_file": "axonnx.export.verify.stages",
}

__all__ = [
    "AxonnxError",
    "Callback",
    "Model",
    "__version__",
    "bayesian",
    "export_network",
    "export_run",
    "import_network",
    "load",
    "open_run",
    "profile_file",
    "read_events",
    "regulariser",
    "regularizer",
    "report_file",
    "train_run",
    "verify_file",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("axonnx")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
