"""Train binary and spiking networks, ship them as one ONNX file, run that file on events with the same bits.

    run = axonnx.Run.train("digits-saccade")           # a trained folder
    model = run.export("digits.onnx")                  # one file
    model = axonnx.load("digits.onnx")                 # no torch needed from here on
    print(model.predict("recording.npz").label)

``Run`` is a trained folder and ``Model`` a file; everything else is a method of the two, or a function beside them.
Functions take plain arguments and give values; nothing is printed. A name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from axonnx.base.errors import AxonnxError
    from axonnx.base.progress import Progress
    from axonnx.earlier_names import (
        export_network,
        export_run,
        open_run,
        profile_file,
        report_file,
        train_run,
        verify_file,
    )
    from axonnx.examination import examine
    from axonnx.export.convert.bayesian import bayesian, regulariser
    from axonnx.export.convert.bayesian import regulariser as regularizer
    from axonnx.loading import describe_data, load_data
    from axonnx.model import Model, load, write_events
    from axonnx.runtime.readers import read_events
    from axonnx.train.callbacks import Callback, LightningLogger, MLflow, TensorBoard, WandB
    from axonnx.trained_run import Run, import_network

    __version__: str
    completion_script: Any
    run_demo: Any

_HOMES = {
    "AxonnxError": "base.errors",
    "Callback": "train.callbacks",
    "LightningLogger": "train.callbacks",
    "MLflow": "train.callbacks",
    "Model": "model",
    "Progress": "base.progress",
    "Run": "trained_run",
    "TensorBoard": "train.callbacks",
    "WandB": "train.callbacks",
    "bayesian": "export.convert.bayesian",
    "completion_script": "cli.tools",
    "describe_data": "loading",
    "examine": "examination",
    "import_network": "trained_run",
    "load": "model",
    "load_data": "loading",
    "read_events": "runtime.readers",
    "regulariser": "export.convert.bayesian",
    "regularizer": "export.convert.bayesian",
    "run_demo": "cli.tools",
    "write_events": "model",
}
# Functions of the version before; they work for one more, and warn.
_EARLIER = ("export_network", "export_run", "open_run", "profile_file", "report_file", "train_run", "verify_file")

__all__ = [
    "AxonnxError",
    "Callback",
    "LightningLogger",
    "MLflow",
    "Model",
    "Progress",
    "Run",
    "TensorBoard",
    "WandB",
    "__version__",
    "bayesian",
    "completion_script",
    "describe_data",
    "examine",
    "export_network",
    "export_run",
    "import_network",
    "load",
    "load_data",
    "open_run",
    "profile_file",
    "read_events",
    "regulariser",
    "regularizer",
    "report_file",
    "run_demo",
    "train_run",
    "verify_file",
    "write_events",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("axonnx")
    home = "earlier_names" if name in _EARLIER else _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"axonnx.{home}"), name)


def __dir__() -> list[str]:
    return [name for name in __all__ if name not in _EARLIER]
